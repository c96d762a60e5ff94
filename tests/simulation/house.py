"""A whole house in one process on virtual time: table replicas, wallet, deck, history and bots, with seeded crashes.

The services are the real ones with their real SQL (SQLite in memory); only the network, the clock and the tables'
store are the simulation's own. The same seed gives the same run, event for event.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any

from fivedraw.table.v1 import table_pb2, table_service_pb2
from fivedraw.wallet.v1 import wallet_service_pb2

from services.deck.decks import Decks
from services.deck.grpc_api import DeckApi
from services.history.record import LogCutError
from services.history.writing import FinishedHand, HandLog, HandNotFoundError, HandWriter
from services.runtime.auth import Identity, acting_as
from services.runtime.clock import Clock
from services.runtime.database import Database
from services.runtime.errors import Fault
from services.runtime.sealing import Sealer
from services.runtime.tasks import WriteHand
from services.table.effects import Effects
from services.table.grpc_api import TableApi
from services.table.house import House
from services.table.log_api import LogApi
from services.table.memory_store import MemoryStore
from services.table.parts import Parts
from services.table.registry import Registry
from services.wallet import auditing
from services.wallet.grpc_api import TableLedgerApi, WalletApi
from services.wallet.ledger import Ledger
from tests.simulation.ports import DECK_METHODS, LEDGER_METHODS, Network, SimulatedPeer

OPERATOR = Identity("person", "the-operator", frozenset({"operator"}))
HISTORY = Identity("service", "history")
KEY = [("sim", bytes(range(32)))]
BANKROLL = 10_000_000


@dataclass
class Replica:
    """One table process."""

    house: House
    api: TableApi
    log: LogApi
    dead: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class Seen:
    """What one watcher got: its sequence must have no gap within an epoch, and no card that is not its own."""

    epoch: int = 0
    sequence: int = 0
    gaps: list[str] = field(default_factory=list)
    events: int = 0
    snapshots: int = 0


class SimulatedHouse:
    """Everything, wired together. `crash` and `roll_back` are the faults; `check` is the verdict."""

    def __init__(self, clock: Clock, seed: int, *, replicas: int = 2, loss: float = 0.0) -> None:
        self.clock = clock
        self.rng = random.Random(seed)
        self.network = Network(random.Random(seed + 1), loss)
        self.store = MemoryStore(clock)
        self.databases = {name: Database("sqlite://", inline=True) for name in ("table", "wallet", "deck", "history")}
        self.sealer = Sealer(KEY)
        entropy = random.Random(seed + 2)
        self.decks = Decks(self.databases["deck"], clock, self.sealer, entropy=entropy.randbytes)
        self.ledger = Ledger(self.databases["wallet"], clock)
        self.auditor = auditing.Auditor(self.databases["wallet"], clock)
        self.wallet = WalletApi(self.ledger, self.auditor)
        self.registry = Registry(self.databases["table"])
        self.pending_tasks: list[WriteHand] = []
        self.writer = HandWriter(self.databases["history"], self, clock)
        self.replicas: list[Replica] = []
        self.replica_count = replicas
        self.errors: list[str] = []
        self.ids = 0

    async def start(self) -> None:
        for name, database in self.databases.items():
            await database.migrate(name)
        self.decks.self_test()
        for _ in range(self.replica_count):
            await self.add_replica()

    async def add_replica(self) -> Replica:
        ledger = SimulatedPeer(self.network, [TableLedgerApi(self.ledger), self.wallet], LEDGER_METHODS)
        decks = SimulatedPeer(self.network, [DeckApi(self.decks)], DECK_METHODS)
        effects = Effects(
            ledger,  # type: ignore[arg-type]
            decks,  # type: ignore[arg-type]
            registry=self.registry,
            store=self.store,
            clock=self.clock,
            tasks=self,
        )
        commit_ids = random.Random(self.rng.random())
        parts = Parts(
            self.store,
            self.registry,
            ledger,  # type: ignore[arg-type]
            decks,  # type: ignore[arg-type]
            effects,
            self.sealer,
            self.clock,
            lambda: commit_ids.randbytes(12).hex(),
        )
        house = House(parts)
        await house.start()
        replica = Replica(house, TableApi(house, self.sealer), LogApi(house, self.sealer))
        self.replicas.append(replica)
        return replica

    async def crash(self, replica: Replica) -> None:
        """Ends a table process in the middle of whatever it does, and starts another a second later."""
        self.replicas.remove(replica)
        replica.dead.set()
        await replica.house.stop()
        await asyncio.sleep(1)
        await self.add_replica()

    async def stop(self) -> None:
        for replica in list(self.replicas):
            await replica.house.stop()
        self.replicas.clear()

    def any_replica(self) -> Replica:
        return self.rng.choice(self.replicas)

    async def as_person(self, identity: Identity, method: str, request: Any) -> Any:
        with acting_as(identity):
            return await getattr(self.any_replica().api, method)(request, None)

    async def cashier(self, method: str, request: Any) -> Any:
        with acting_as(OPERATOR):
            return await getattr(self.wallet, method)(request, None)

    def next_id(self) -> str:
        self.ids += 1
        return f"id-{self.ids}"

    # The history's side: a broker that may lose tasks, and a worker that is called when the simulation says so.

    def send(self, task: WriteHand) -> bool:
        if self.rng.random() >= self.network.loss:
            self.pending_tasks.append(task)
        return True

    def close(self) -> None:
        pass

    async def read(self, hand: FinishedHand) -> HandLog | None:
        request = table_service_pb2.ReadHandLogRequest(hand=_unwritten(hand))
        with acting_as(HISTORY):
            try:
                answer = await self.any_replica().log.ReadHandLog(request, None)
            except Fault as fault:
                if fault.reason in ("HAND_NOT_FOUND", "TABLE_NOT_FOUND"):
                    return None
                raise
        return HandLog(answer.table, answer.events)

    async def confirm(self, hand: FinishedHand) -> None:
        request = table_service_pb2.ConfirmHandWrittenRequest(hand=_unwritten(hand))
        with acting_as(HISTORY):
            await self.any_replica().log.ConfirmHandWritten(request, None)

    async def list_unwritten(self, older_than_seconds: int, limit: int) -> list[FinishedHand]:
        request = table_service_pb2.ListUnwrittenHandsRequest(page_size=limit, older_than_seconds=older_than_seconds)
        with acting_as(HISTORY):
            answer = await self.any_replica().log.ListUnwrittenHands(request, None)
        return [FinishedHand(each.table, each.epoch, each.hand) for each in answer.hands]

    async def work(self) -> None:
        """Writes the histories that were asked for."""
        tasks, self.pending_tasks = self.pending_tasks, []
        for task in tasks:
            try:
                await self.writer.write_hand(FinishedHand(*task))
            except (Fault, LogCutError, HandNotFoundError):
                # The table is out of reach, or the store has lost the log: the beat sends it again.
                self.network.lost += 1

    async def keep_working(self) -> None:
        """Writes histories once a second."""
        while True:
            await asyncio.sleep(1)
            if self.replicas:
                await self.work()

    async def work_all(self) -> list[FinishedHand]:
        """Writes everything that is due, as the beat would; returns what could not be written."""
        self.pending_tasks = []
        failed = []
        for hand in await self.list_unwritten(0, 1000):
            try:
                await self.writer.write_hand(hand)
            except HandNotFoundError:
                failed.append(hand)
        return failed

    # Tables and players.

    async def open_table(self, table_id: str, rulebook: str, **overrides: Any) -> None:
        options = table_pb2.GameOptions(**overrides)
        options.hand_interval.FromMilliseconds(500)
        request = table_service_pb2.CreateTableRequest(
            request_id=self.next_id(),
            table_id=table_id,
            rulebook=f"rulebooks/{rulebook}",
            currency="CHIPS",
            overrides=options,
        )
        await self.as_person(OPERATOR, "CreateTable", request)

    async def make_player(self, name: str) -> Identity:
        create = wallet_service_pb2.CreatePlayerRequest(request_id=self.next_id(), player_id=name, display_name=name)
        await self.cashier("CreatePlayer", create)
        deposit = wallet_service_pb2.DepositRequest(
            request_id=self.next_id(), player=f"players/{name}", currency="CHIPS", amount_minor=BANKROLL
        )
        await self.cashier("Deposit", deposit)
        return Identity("person", name, frozenset({"player"}))

    async def check(self) -> list[str]:
        """Everything that is wrong with the money; nothing should be."""
        faults = []
        summary = await self.cashier("GetLedgerSummary", wallet_service_pb2.GetLedgerSummaryRequest())
        faults += [f"imbalance {each.currency} {each.amount_minor}" for each in summary.imbalance if each.amount_minor]
        report = await self.auditor.audit()
        faults += [str(fault) for fault in report.faults]
        return faults


def _unwritten(hand: FinishedHand) -> table_service_pb2.UnwrittenHand:
    return table_service_pb2.UnwrittenHand(table=hand.table, epoch=hand.epoch, hand=hand.hand)


def note(seen: Seen, response: table_service_pb2.WatchTableResponse, player: str) -> None:
    """Counts a watcher's sequence."""
    if response.HasField("snapshot"):
        seen.snapshots += 1
        seen.epoch, seen.sequence = response.snapshot.table.epoch, response.snapshot.sequence
    for event in response.events:
        seen.events += 1
        if (event.epoch, event.sequence) != (seen.epoch, seen.sequence + 1):
            seen.gaps.append(f"{player}: {event.epoch}.{event.sequence} after {seen.epoch}.{seen.sequence}")
        seen.epoch, seen.sequence = event.epoch, event.sequence
