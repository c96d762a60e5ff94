"""One table's life on a ledger beside its model: new batches, old ones again, changed ones, hang-ups, lost commits."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

from sqlalchemy.exc import OperationalError

from services.runtime.clock import SystemClock
from services.runtime.database import Database
from services.wallet.ledger import Ledger
from tests.property.wallet.driver import Driver, random_operation
from tests.property.wallet.model import Model

# These have no batch id of their caller's.
NAMELESS = ("freeze", "fence", "expire")


@dataclass
class Writers:
    """Two processes' worth of ledgers on one database, each losing some of its commits to a broken connection."""

    url: str
    chance: random.Random
    lost_share: float = 0.02
    # How much is sent to the second process. On SQLite the two wait for each other's locks by sleeping.
    second_share: float = 0.5
    group_max: int = 16
    # Operations lived through, and whether lives are to end where they are.
    operations: int = 0
    is_over: bool = False
    # Calls made: new operations, repeated ones, and those that were hung up on.
    calls: int = 0
    lost: int = 0
    databases: list[Database] = field(default_factory=list)
    ledgers: list[Ledger] = field(default_factory=list)

    async def open(self) -> None:
        for shard in (0, 8):
            database = Database(self.url, isolation="READ COMMITTED", pool_size=4)
            if not self.databases:
                await database.migrate("wallet")
            lanes = 1 if database.is_sqlite else 2
            ledger = Ledger(
                database,
                SystemClock(),
                group_max=self.group_max,
                shard=shard,
                lanes=lanes,
                crowd_min=2,
                failpoint=self._lose_connection,
            )
            self.databases.append(database)
            self.ledgers.append(ledger)

    async def close(self) -> None:
        for ledger in self.ledgers:
            await ledger.close()
        for database in self.databases:
            await database.close()

    def pick(self, chance: random.Random, drivers: list[Driver]) -> Driver:
        """Whose call it is."""
        self.calls += 1
        return drivers[chance.random() < self.second_share]

    def _lose_connection(self, name: str) -> None:
        if name == "written" and self.chance.random() < self.lost_share:
            self.lost += 1
            raise OperationalError("the connection was lost", None, ConnectionError("injected"))


async def live(writers: Writers, table: str, chance: random.Random, operations: int) -> set[str]:
    """Plays a table's random life; returns which answers it met. Raises `AssertionError` at the first difference."""
    drivers = [Driver(ledger, table) for ledger in writers.ledgers]
    model = Model()
    await drivers[0].begin(model)
    said: list[tuple[str, tuple]] = []
    answers = set()
    for number in range(operations):
        operation = random_operation(chance, model, drivers[0])
        if writers.is_over:
            break
        writers.operations += 1
        batch_id = f"{table} {number}"
        if said and chance.random() < 0.1:
            # An old id with new content.
            batch_id = chance.choice(said)[0]
        beside = [_repeat(chance, writers, drivers, model, said) for _ in range(chance.choice((0, 0, 1, 2))) if said]
        if chance.random() < 0.1:
            await _hang_up(chance, writers.pick(chance, drivers), batch_id, operation)
        answer, *_ = await asyncio.gather(writers.pick(chance, drivers).say(batch_id, *operation), *beside)
        expected = model.apply(batch_id, *operation)
        if answer != expected:
            raise AssertionError(f"{batch_id}: {operation} gave {answer}, not {expected}")
        answers.add(answer.partition(" ")[0])
        if operation[0] not in NAMELESS and answer != "BATCH_CONFLICT":
            said.append((batch_id, operation))
    found = await drivers[1].differences(model)
    if found:
        raise AssertionError(f"{table}: {found}")
    return answers


async def _repeat(
    chance: random.Random, writers: Writers, drivers: list[Driver], model: Model, said: list[tuple[str, tuple]]
) -> None:
    """A duplicate that arrives late: the stored answer, whatever happened since."""
    batch_id, operation = chance.choice(said)
    stored = model.answers[batch_id][1]
    answer = await writers.pick(chance, drivers).say(batch_id, *operation)
    if answer != stored:
        raise AssertionError(f"again {batch_id}: {operation} gave {answer}, not {stored}")


async def _hang_up(chance: random.Random, driver: Driver, batch_id: str, operation: tuple) -> None:
    """Sends the batch and goes away; it may be in or not, and is then sent again under the same id."""
    task = asyncio.create_task(driver.say(batch_id, *operation))
    for _ in range(chance.choice((1, 2, 5))):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
