"""All bots of a run: opens tables and accounts, seats the bots, and knows what they saw together."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from fivedraw.table.v1 import table_pb2
from fivedraw_client import Client, ConflictError, Endpoints, FivedrawError, RetryPolicy, TableStream
from google.protobuf import duration_pb2

from services.cli.bots.bank import Bank
from services.cli.bots.guard import CardGuard
from services.cli.bots.pace import Pace
from services.cli.bots.player import REOPEN_SECONDS, BotPlayer
from services.cli.bots.record import TableRecord

RULEBOOKS: Final = ("house", "clocked", "casadela", "openers", "american")
CURRENCY: Final = "EUR"
OPERATOR: Final = "bots-operator"
SPECTATOR: Final = "bots-spectator"
PLAYERS_DEFAULT: Final = 5

# A crew outlives restarts of the house, however slow.
PATIENT: Final = RetryPolicy(attempts=60, first_delay=0.05, last_delay=1.0)

# Makes a token: subject, role.
Mint = Callable[[str, str], str]


@dataclass(frozen=True, slots=True)
class BotTable:
    """A table to be played: its id, the rulebook it is opened with if it is new, and how many bots sit down."""

    table_id: str
    rulebook: str
    players: int

    @property
    def name(self) -> str:
        """`tables/{table}`."""
        return f"tables/{self.table_id}"


def plan(tables: int, players: int, rulebooks: Sequence[str] = RULEBOOKS) -> list[BotTable]:
    """`tables` tables that take the rulebooks in turn; their ids are the same in every run."""
    return [
        BotTable(f"bots-{number + 1}-{rulebook}", rulebook, players)
        for number in range(tables)
        for rulebook in (rulebooks[number % len(rulebooks)],)
    ]


class TableWatch:
    """A mere spectator of one table, who counts its hands and checks its public stream."""

    def __init__(self, client: Client, record: TableRecord) -> None:
        self.stream: TableStream = client.watch(record.table)
        self.guard = CardGuard()
        self.record = record
        self.errors = 0
        self.last_error = ""

    async def run(self) -> None:
        """Watches until it is cancelled."""
        while True:
            try:
                async for update in self.stream:
                    self.guard.look(update, 0)
                    self.record.see(update)
            except FivedrawError as error:
                self.errors += 1
                self.last_error = f"{type(error).__name__} {error}"
                await asyncio.sleep(REOPEN_SECONDS)


class Crew:
    """Bots at tables. `open()` prepares, `run()` plays until it is cancelled; then the figures tell how it went.

    Each of `endpoints` serves a share of the bots, as several table replicas would.
    """

    def __init__(
        self, endpoints: Sequence[Endpoints], mint: Mint, tables: Iterable[BotTable], *, pace: Pace, seed: int
    ) -> None:
        self._endpoints = list(endpoints)
        self._mint = mint
        self._plan = list(tables)
        self._pace = pace
        self._rng = random.Random(seed)
        self._clients: list[Client] = []
        self.records: list[TableRecord] = []
        self.bots: list[BotPlayer] = []
        self.watches: list[TableWatch] = []

    async def open(self) -> None:
        """Opens tables and accounts that are not there yet. Raises a `FivedrawError`."""
        operator = self._client(OPERATOR, "operator", 0)
        bank = Bank(operator, CURRENCY)
        for place, table in enumerate(self._plan):
            await self._open_table(operator, table)
            record = TableRecord(table.name, table.rulebook)
            self.records.append(record)
            self.watches.append(TableWatch(self._client(SPECTATOR, "player", place), record))
            for number in range(1, table.players + 1):
                self.bots.append(await self._seat(table, number, bank, record))

    async def run(self) -> None:
        """Plays until cancelled, also when there is no table (left) to play at."""
        async with asyncio.TaskGroup() as tasks:
            for watch in self.watches:
                tasks.create_task(watch.run())
            for bot in self.bots:
                tasks.create_task(bot.run())
        await asyncio.Event().wait()

    async def close(self) -> None:
        """Closes all connections."""
        for client in self._clients:
            await client.close()

    # Figures

    @property
    def hands(self) -> int:
        """Hands that were finished while the crew watched."""
        return sum(record.hands_finished for record in self.records)

    @property
    def actions(self) -> int:
        """Actions that the crew saw taken, its own and others'."""
        return sum(record.actions for record in self.records)

    @property
    def errors(self) -> int:
        """What should not have happened to a bot or watcher."""
        return sum(bot.errors for bot in self.bots) + sum(watch.errors for watch in self.watches)

    def hands_by_rulebook(self) -> dict[str, int]:
        """Finished hands by rulebook."""
        hands: Counter[str] = Counter()
        for record in self.records:
            hands[record.rulebook] += record.hands_finished
        return dict(hands)

    def refusals(self) -> dict[str, int]:
        """Refusals by reason, over all bots."""
        total: Counter[str] = Counter()
        for bot in self.bots:
            total.update(bot.refusals)
        return dict(total.most_common())

    def own_actions(self) -> dict[str, int]:
        """Actions taken by the bots, by kind."""
        total: Counter[str] = Counter()
        for bot in self.bots:
            total.update(bot.actions)
        return dict(total.most_common())

    def outcomes(self) -> dict[str, int]:
        """Ends of hands, by kind."""
        total: Counter[str] = Counter()
        for record in self.records:
            total.update(record.outcomes)
        return dict(total.most_common())

    def gaps(self) -> list[str]:
        """Every broken promise of a stream's sequence."""
        streams = [(bot.stream, bot.client.player) for bot in self.bots]
        streams += [(watch.stream, "spectator") for watch in self.watches]
        return [f"{stream.table} seen by {viewer}: {gap}" for stream, viewer in streams for gap in stream.violations]

    def leaks(self) -> list[str]:
        """Every card that a viewer was told and may not see."""
        told = [(bot.guard, bot.client.player) for bot in self.bots]
        told += [(watch.guard, "spectator") for watch in self.watches]
        return [f"{viewer}: {leak}" for guard, viewer in told for leak in guard.leaks]

    def faults(self) -> list[str]:
        """Everything else that must never be: a hand begun twice, a card dealt twice."""
        return [fault for record in self.records for fault in record.faults]

    def last_errors(self) -> list[str]:
        """The last error of each bot and watcher that had one."""
        told = [bot.last_error for bot in self.bots] + [watch.last_error for watch in self.watches]
        return [error for error in told if error]

    # Preparation

    def _client(self, subject: str, role: str, place: int) -> Client:
        client = Client(
            self._endpoints[place % len(self._endpoints)],
            lambda: self._mint(subject, role),
            player=f"players/{subject}" if role == "player" else "",
            policy=PATIENT,
            rng=random.Random(self._rng.getrandbits(64)),
        )
        self._clients.append(client)
        return client

    async def _open_table(self, operator: Client, table: BotTable) -> None:
        interval = duration_pb2.Duration()
        interval.FromMilliseconds(self._pace.hand_interval_ms)
        try:
            await operator.create_table(
                table.table_id,
                rulebook=f"rulebooks/{table.rulebook}",
                currency=CURRENCY,
                display_name=f"Bots {table.table_id.removeprefix('bots-')}",
                overrides=table_pb2.GameOptions(hand_interval=interval),
                request_id=f"bots-open-{table.table_id}",
            )
        except ConflictError:
            # It was opened by an earlier run, at another pace.
            await operator.get_table(table.name)

    async def _seat(self, table: BotTable, number: int, bank: Bank, record: TableRecord) -> BotPlayer:
        subject = f"{table.table_id}-{number}"
        await bank.open_account(subject, subject)
        return BotPlayer(
            self._client(subject, "player", number),
            table.name,
            pace=self._pace,
            bank=bank,
            record=record,
            rng=random.Random(self._rng.getrandbits(64)),
            over_stream=number % 2 == 0,
        )
