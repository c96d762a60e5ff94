"""Wallet, deck, history and any number of table processes on one Redis, in this process, all over real gRPC."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import grpc
from fivedraw.deck.v1 import deck_service_pb2_grpc
from fivedraw.history.v1 import history_service_pb2_grpc
from fivedraw.table.v1 import table_pb2, table_service_pb2_grpc
from fivedraw.table.v1 import table_service_pb2 as pb
from fivedraw.wallet.v1 import wallet_service_pb2, wallet_service_pb2_grpc

from services.deck import grpc_api as deck_api
from services.deck.decks import Decks
from services.history import grpc_api as history_api
from services.history.peers import DeckProofs, TableLog
from services.history.reading import HandReader
from services.history.writing import FinishedHand, HandWriter
from services.runtime.clock import SystemClock
from services.runtime.database import Database
from services.runtime.redis import connect as connect_redis
from services.runtime.sealing import Sealer
from services.runtime.server import RunningServer
from services.runtime.tasks import RecordingSender
from services.table import grpc_api as table_api
from services.table import replica_api
from services.table.effects import Effects
from services.table.house import House
from services.table.parts import Parts
from services.table.ports import RpcDeck, RpcLedger
from services.table.redis_store import RedisStore
from services.table.registry import Registry
from services.table.replicas import Replicas
from services.wallet import grpc_api as wallet_api
from services.wallet.auditing import Auditor
from services.wallet.ledger import Ledger
from tests.servers import SEALING_KEY

SERVICES = ("table", "wallet", "deck", "history")
WAIT_SECONDS = 30
CALL_SECONDS = 15
BANKROLL = 1_000_000

_ids = itertools.count(1)


def next_id() -> str:
    """An id that no request of this test process has used."""
    return f"id-{next(_ids)}"


async def until(condition: Callable[[], Awaitable[Any]]) -> Any:
    """Asks again and again until the answer is true, and returns it."""
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            answer = await condition()
            if answer:
                return answer
            await asyncio.sleep(0.01)


@dataclass
class TableProcess:
    """One table process: its server, its tables, its connection to Redis."""

    server: RunningServer
    house: House
    store: RedisStore
    replicas: Replicas


class RunningHouse:
    """The whole house. `stub(...)` calls the table service, `wallet(...)` and the like the others."""

    def __init__(self, stack: AsyncExitStack, urls: dict[str, str], redis_url: str, fixtures: dict[str, Any]) -> None:
        self._stack = stack
        self._urls = urls
        self._redis_url = redis_url
        self._make_settings = fixtures["make_settings"]
        self._serve = fixtures["serve"]
        self._channel = fixtures["channel"]
        self._token = fixtures["token"]
        self.clock = SystemClock()
        self.sealer = Sealer([("test", SEALING_KEY)])
        self.tasks = RecordingSender()
        self.databases: dict[str, Database] = {}
        self.processes: list[TableProcess] = []
        self._stubs: dict[Any, Any] = {}

    async def start(self, processes: int = 1, **settings: Any) -> None:
        for name in SERVICES:
            database = Database(self._urls[name], isolation="SERIALIZABLE" if name == "table" else "READ COMMITTED")
            self._stack.push_async_callback(database.close)
            await database.migrate(name)
            self.databases[name] = database
        self.ledger = Ledger(self.databases["wallet"], self.clock)
        self._stack.push_async_callback(self.ledger.close)
        self.auditor = Auditor(self.databases["wallet"], self.clock)
        self.decks = Decks(self.databases["deck"], self.clock, self.sealer)
        self._stack.push_async_callback(self.decks.close)
        self.decks.self_test()
        given = self._make_settings(**settings)
        self.wallet_server = await self._serve(
            given, partial(wallet_api.register, self.ledger, self.auditor), name="wallet"
        )
        self.deck_server = await self._serve(given, partial(deck_api.register, self.decks), name="deck")
        for _ in range(processes):
            await self.add_process(**settings)
        reader = HandReader(
            self.databases["history"], self.sealer, self.clock, proofs=DeckProofs(self.channel("deck", "history"))
        )
        self.history_server = await self._serve(
            given, lambda server: history_api.add_to(server, reader), name="history"
        )
        self.writer = HandWriter(
            self.databases["history"], TableLog(self.channel(self.processes[0].server, "history")), self.clock
        )

    async def add_process(self, **settings: Any) -> TableProcess:
        """One more table process on the same Redis, registry and peers."""
        client = connect_redis(self._redis_url, pool_size=16)
        self._stack.push_async_callback(client.aclose)
        store = RedisStore(client)
        self._stack.callback(store.close)
        registry = Registry(self.databases["table"])
        ledger, decks = RpcLedger(self.channel("wallet", "table")), RpcDeck(self.channel("deck", "table"))
        effects = Effects(ledger, decks, registry=registry, store=store, clock=self.clock, tasks=self.tasks)
        house = House(Parts(store, registry, ledger, decks, effects, self.sealer, self.clock))
        await house.start()
        self._stack.push_async_callback(house.stop)
        replicas = Replicas(client, self.clock, lambda: house.tables_at_hand)
        await replicas.beat()

        def register(grpc_server: grpc.aio.Server) -> list[str]:
            return [
                *table_api.register(house, self.sealer, grpc_server),
                replica_api.register(replicas, grpc_server),
            ]

        server = await self._serve(self._make_settings(**settings), register, name="table")
        process = TableProcess(server, house, store, replicas)
        self.processes.append(process)
        return process

    def channel(self, server: RunningServer | str, as_service: str | None = None, **options: Any) -> grpc.aio.Channel:
        if isinstance(server, str):
            server = self.wallet_server if server == "wallet" else self.deck_server
        return self._channel(server, as_service=as_service, **options)

    def stub(self, who: str = "", *roles: str, process: int = 0) -> Any:
        """The table service as somebody sees it; nobody without a name."""
        return self._stub(table_service_pb2_grpc.TableServiceStub, self.processes[process].server, who, roles)

    def log(self, as_service: str = "history") -> Any:
        server = self.processes[0].server
        return self._stub(table_service_pb2_grpc.TableLogServiceStub, server, "", (), as_service)

    def wallet(self, who: str = "", *roles: str, as_service: str | None = None) -> Any:
        return self._stub(wallet_service_pb2_grpc.WalletServiceStub, self.wallet_server, who, roles, as_service)

    def table_ledger(self, who: str = "", *roles: str, as_service: str | None = "table") -> Any:
        return self._stub(wallet_service_pb2_grpc.TableLedgerServiceStub, self.wallet_server, who, roles, as_service)

    def deck(self, who: str = "", *roles: str, as_service: str | None = "table") -> Any:
        return self._stub(deck_service_pb2_grpc.DeckServiceStub, self.deck_server, who, roles, as_service)

    def history(self, who: str = "", *roles: str) -> Any:
        return self._stub(history_service_pb2_grpc.HistoryServiceStub, self.history_server, who, roles)

    def _stub(
        self, kind: Any, server: RunningServer, who: str, roles: Iterable[str], service: str | None = None
    ) -> Any:
        roles = tuple(roles) or (("player",) if who else ())
        key = kind, server.port, who, roles, service
        if key not in self._stubs:
            token = self._token(who, *roles) if who else None
            self._stubs[key] = kind(self._channel(server, token=token, as_service=service, timeout=CALL_SECONDS))
        return self._stubs[key]

    @property
    def operator(self) -> Any:
        return self.stub("olga", "operator")

    @property
    def seconded(self) -> tuple[tuple[str, str], ...]:
        """The metadata of a call behind which a second operator stands."""
        return (("x-fivedraw-second-token", self._token("otto", "operator")),)

    async def make_player(self, name: str, amount: int = BANKROLL) -> None:
        create = wallet_service_pb2.CreatePlayerRequest(request_id=next_id(), player_id=name, display_name=name)
        await self.wallet("olga", "operator").CreatePlayer(create)
        if amount:
            deposit = wallet_service_pb2.DepositRequest(
                request_id=next_id(), player=f"players/{name}", currency="CHIPS", amount_minor=amount
            )
            await self.wallet("fay", "finance").Deposit(deposit)

    async def open_table(self, table: str, rulebook: str = "house", interval_ms: int = 0, **overrides: Any) -> None:
        options = table_pb2.GameOptions(**overrides)
        options.hand_interval.FromMilliseconds(interval_ms)
        request = pb.CreateTableRequest(
            request_id=next_id(),
            table_id=table,
            rulebook=f"rulebooks/{rulebook}",
            currency="CHIPS",
            overrides=options,
        )
        await self.operator.CreateTable(request)

    async def seat(self, table: str, *players: str, buy_in: int = 500) -> None:
        """Makes players and sits them down, from seat 1 on."""
        for number, player in enumerate(players, 1):
            await self.make_player(player)
            await self.sit_down(table, player, number, buy_in)

    async def sit_down(self, table: str, player: str, seat: int = 0, buy_in: int = 500) -> pb.SitDownResponse:
        request = pb.SitDownRequest(table=f"tables/{table}", request_id=next_id(), seat=seat, buy_in_minor=buy_in)
        return await self.stub(player).SitDown(request)

    async def view(self, table: str, player: str = "olga", process: int = 0) -> table_pb2.TableView:
        stub = self.stub(player, *(("operator",) if player == "olga" else ()), process=process)
        return (await stub.GetTable(pb.GetTableRequest(name=f"tables/{table}"))).view

    async def turn(self, table: str, players: Iterable[str], after: int = 0) -> tuple[str, table_pb2.TableView]:
        """Who is to act, at a turn beyond `after`, and how that player sees the table."""
        players = list(players)

        async def acting() -> tuple[str, table_pb2.TableView] | None:
            for player in players:
                view = await self.view(table, player)
                if view.HasField("your_actions") and view.turn.turn > after:
                    return player, view
            return None

        return await until(acting)

    def action(self, table: str, view: table_pb2.TableView, **chosen: Any) -> pb.SubmitActionRequest:
        """The action chosen, or the least that goes on: cut nothing, check, call, stand pat."""
        legal = view.your_actions
        if not chosen:
            kind = table_pb2.ACTION_KIND_FOLD
            if legal.cut:
                kind = table_pb2.ACTION_KIND_CUT
            elif legal.discard:
                kind = table_pb2.ACTION_KIND_DISCARD
            elif legal.check:
                kind = table_pb2.ACTION_KIND_CHECK
            elif legal.call:
                kind = table_pb2.ACTION_KIND_CALL
            chosen = {"kind": kind}
        return pb.SubmitActionRequest(
            table=f"tables/{table}",
            hand=view.hand,
            turn=view.turn.turn,
            action_id=next_id(),
            action=pb.Action(**chosen),
        )

    async def act(self, table: str, player: str, view: table_pb2.TableView, **chosen: Any) -> pb.SubmitActionResponse:
        return await self.stub(player).SubmitAction(self.action(table, view, **chosen))

    async def play_hand(self, table: str, *players: str) -> int:
        """Checks and calls the hand being played (or the next one) to its end; returns its number."""
        player, view = await self.turn(table, players)
        hand = view.hand
        while view.hand == hand:
            await self.act(table, player, view)
            turn = view.turn.turn

            async def following(turn: int = turn) -> tuple[str, table_pb2.TableView] | None:
                for each in players:
                    seen = await self.view(table, each)
                    if seen.hand > hand or seen.stage in (table_pb2.STAGE_FINISHED, table_pb2.STAGE_UNSPECIFIED):
                        return each, table_pb2.TableView(hand=hand + 1)
                    if seen.HasField("your_actions") and seen.turn.turn > turn:
                        return each, seen
                return None

            player, view = await until(following)
        return hand

    async def write_history(self) -> None:
        """Writes all finished hands whose history is due, as the worker would."""
        for hand in await TableLog(self.channel(self.processes[0].server, "history")).list_unwritten(0, 100):
            await self.writer.write_hand(FinishedHand(*hand))

    async def faults(self) -> list[str]:
        """What the ledger's audit finds wrong."""
        return [str(fault) for fault in (await self.auditor.audit()).faults]
