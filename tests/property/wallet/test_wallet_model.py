"""The ledger against a plain model of it: concurrent clients, retries, duplicates, reorderings, disconnects.

Each table has one model, and its operations are sent one after the other as a table service sends them; but many tables
share the commits, old batches are sent again between and beside new ones, two processes write, and callers
hang up without knowing whether their batch was taken.
"""

from __future__ import annotations

import asyncio
import random

import pytest

from services.runtime.clock import SystemClock
from services.runtime.database import Database
from services.wallet.auditing import Auditor
from services.wallet.ledger import Ledger
from tests.property.wallet.driver import Driver, random_operation
from tests.property.wallet.model import Model

TABLES = 5
OPERATIONS = 90


@pytest.mark.parametrize("seed", [20260101])
async def test_the_ledger_does_what_its_model_does(database_url, seed):
    ledgers = []
    for shard in range(2):
        database = Database(database_url, isolation="READ COMMITTED", pool_size=4)
        if not ledgers:
            await database.migrate("wallet")
        lanes = 1 if database.is_sqlite else 2
        ledgers.append((database, Ledger(database, SystemClock(), group_max=7, shard=4 * shard, lanes=lanes)))
    try:
        tables = (_live(ledgers, f"t{number}", random.Random(f"{seed} {number}")) for number in range(TABLES))
        reasons = set().union(*await asyncio.gather(*tables))
        auditor = Auditor(ledgers[0][0], SystemClock())
        await auditor.seal()
        assert (await auditor.audit()).faults == ()
        # A run that never gets into a corner proves little.
        assert {"OK", "BATCH_CONFLICT", "HAND_CLOSED", "INSUFFICIENT_FUNDS", "STACK_LOCKED"} <= reasons
    finally:
        for database, ledger in ledgers:
            await ledger.close()
            await database.close()


async def _live(ledgers: list[tuple[Database, Ledger]], table: str, chance: random.Random) -> set[str]:
    drivers = [Driver(ledger, table) for _, ledger in ledgers]
    model = Model()
    await drivers[0].begin(model)
    said: list[tuple[str, tuple]] = []
    reasons = set()
    for number in range(OPERATIONS):
        operation = random_operation(chance, model, drivers[0])
        batch_id = f"{table} {number}"
        if said and chance.random() < 0.1:
            # An old id with new content.
            batch_id = chance.choice(said)[0]
        beside = [_repeat(chance, drivers, model, said) for _ in range(chance.choice((0, 0, 1, 2))) if said]
        if chance.random() < 0.1:
            await _hang_up(chance, chance.choice(drivers), batch_id, operation)
        answer, *_ = await asyncio.gather(chance.choice(drivers).say(batch_id, *operation), *beside)
        expected = model.apply(batch_id, *operation)
        assert answer == expected, f"{table} step {number} {batch_id}: {operation}"
        reasons.add(answer.partition(" ")[0])
        if operation[0] not in ("freeze", "fence") and answer != "BATCH_CONFLICT":
            said.append((batch_id, operation))
    assert await drivers[1].differences(model) == []
    return reasons


async def _repeat(chance: random.Random, drivers: list[Driver], model: Model, said: list[tuple[str, tuple]]) -> None:
    """A duplicate that arrives late: the stored answer, whatever happened since."""
    batch_id, operation = chance.choice(said)
    stored = model.answers[batch_id][1]
    assert await chance.choice(drivers).say(batch_id, *operation) == stored, f"again: {batch_id} {operation}"


async def _hang_up(chance: random.Random, driver: Driver, batch_id: str, operation: tuple) -> None:
    """Sends the batch and goes away; it may be in or not, and is then sent again under the same id."""
    task = asyncio.create_task(driver.say(batch_id, *operation))
    for _ in range(chance.choice((1, 2, 5))):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
