"""One run of an embedded house over 200 hands of all five games, watched from every side."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import threading
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis.asyncio
from fivedraw.table.v1 import table_pb2, table_service_pb2
from fivedraw_client import Client, FivedrawError, RetryPolicy

from services.cli.house.ports import Ports
from services.rules.cards import CARD_TEXTS
from tests.card_search import Truth, cards_of
from tests.embedded import EmbeddedHouse, Onlooker, bot_tables, embedded_house, scratch_folder

HANDS = 200
TABLES = 5
PLAYERS = 4
RUN_SECONDS = 180.0
LOOK_SECONDS = 2.0
READS_AT_ONCE = 16
ONCE = RetryPolicy(attempts=1)


@dataclass
class Run:
    """What such a run left to judge."""

    summary: dict[str, Any]
    onlooker: Onlooker
    truth: Truth
    # hand name -> rows that the lists of its table have for it
    history_rows: dict[str, int]
    imbalance: list[int]
    redis_values: set[bytes]
    redis_commands: bytes
    metrics: set[bytes]
    logs: dict[str, bytes]
    refusals: list[str]
    hands_known: int


def two_hundred_hands() -> Run:
    """The run, in a minute or two."""
    return asyncio.run(_run(scratch_folder() / "two-hundred"))


async def _run(folder: Path) -> Run:
    options = ["--tables", str(TABLES), "--players", str(PLAYERS), "--speed", "flatout"]
    with embedded_house(folder, *options) as house:
        spy = RedisSpy(house)
        async with Onlooker(bot_tables(TABLES, PLAYERS)).watching(house) as seen:
            intruder = Intruder(house)
            async with asyncio.timeout(RUN_SECONDS):
                while sum(seen.hands().values()) < HANDS:
                    await spy.look()
                    await intruder.ask()
                    await asyncio.sleep(LOOK_SECONDS)
            await intruder.close()
            await spy.look()
            spy.close()
            # Whatever the spy has seen is told to the onlooker too by then.
            await seen.until_all_go_on(seen.hands(), 1, RUN_SECONDS)
        async with house.client("anna", "auditor") as auditor:
            rows = await _history_rows(auditor, seen)
            imbalance = [each.amount_minor for each in (await auditor.ledger_summary()).imbalance]
        truth, known = await _truth(house, seen)
        summary = await asyncio.to_thread(house.end)
        logs = {path.name: path.read_bytes() for path in house.folder.logs.glob("*.log")}
    return Run(
        summary,
        seen,
        truth,
        rows,
        imbalance,
        spy.values,
        bytes(spy.commands),
        spy.metrics,
        logs,
        intruder.refusals,
        known,
    )


class RedisSpy:
    """Keeps every value that it finds in Redis, every command that Redis is given, and every page of metrics."""

    def __init__(self, house: EmbeddedHouse) -> None:
        self.values: set[bytes] = set()
        self.commands = bytearray()
        self.metrics: set[bytes] = set()
        self._ports = Ports(house.port_base)
        self._password = house.keys().redis_password
        self._monitor = socket.create_connection(("127.0.0.1", self._ports.redis))
        self._monitor.sendall(f"AUTH {self._password}\r\nMONITOR\r\n".encode())
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        # Redis may end with commands of ours unread.
        with contextlib.suppress(ConnectionResetError):
            while received := self._monitor.recv(1 << 16):
                self.commands += received

    async def look(self) -> None:
        """Reads all values of all databases, and all metrics."""
        for database in range(2):
            url = f"redis://:{self._password}@127.0.0.1:{self._ports.redis}/{database}"
            async with redis.asyncio.Redis.from_url(url) as client:
                async for key in client.scan_iter(count=500):
                    self.values.add(key)
                    await self._read(client, key)
        for port in self._ports.all():
            if port in range(self._ports.base + 10, self._ports.base + 20):
                self.metrics.add(await asyncio.to_thread(_page, port))

    async def _read(self, client: redis.asyncio.Redis, key: bytes) -> None:
        match await client.type(key):
            case b"string":
                self.values.add(await client.get(key) or b"")
            case b"hash":
                for name, value in (await client.hgetall(key)).items():
                    self.values |= {name, value}
            case b"list":
                self.values |= set(await client.lrange(key, 0, -1))
            case b"set":
                self.values |= set(await client.smembers(key))
            case b"zset":
                self.values |= set(await client.zrange(key, 0, -1))
            case b"stream":
                for _, fields in await client.xrange(key):
                    self.values |= set(fields.values())

    def close(self) -> None:
        self._monitor.shutdown(socket.SHUT_RDWR)
        self._listener.join()
        self._monitor.close()


def _page(port: int) -> bytes:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            return answer.read()
    except ConnectionRefusedError:
        return b""
    except urllib.error.URLError as error:
        if isinstance(error.reason, ConnectionRefusedError):
            # A port that this house does not use.
            return b""
        raise


class Intruder:
    """Asks with a bot's token for what must be refused, and keeps what it is told."""

    def __init__(self, house: EmbeddedHouse) -> None:
        keys = house.keys()
        self.refusals: list[str] = []
        self._rng = random.Random(11)
        self._tables = bot_tables(TABLES, PLAYERS)
        self._clients = [
            Client(
                house.endpoints(),
                keys.mint(f"{table.table_id}-1", "player"),
                player=f"players/{table.table_id}-1",
                policy=ONCE,
            )
            for table in self._tables
        ]

    async def ask(self) -> None:
        """A few actions at every table that cannot be right."""
        for table, client in zip(self._tables, self._clients, strict=True):
            view = await client.get_table(table.name)
            turn = view.turn.turn if view.HasField("turn") else 0
            for action in self._wrong():
                try:
                    await client.act(table.name, action, hand=view.hand, turn=turn)
                except FivedrawError as error:
                    named = ",".join(action.cards)
                    self.refusals.append(f"[{named}] {error} {error.facts}")

    def _wrong(self) -> list[table_service_pb2.Action]:
        return [
            table_service_pb2.Action(kind=table_pb2.ACTION_KIND_DISCARD, cards=[self._rng.choice(CARD_TEXTS)] * 2),
            table_service_pb2.Action(kind=table_pb2.ACTION_KIND_DISCARD, cards=["Zz"]),
            table_service_pb2.Action(kind=table_pb2.ACTION_KIND_BET, to_minor=-1),
            table_service_pb2.Action(kind=table_pb2.ACTION_KIND_RAISE, to_minor=1 << 62),
        ]

    async def close(self) -> None:
        for client in self._clients:
            await client.close()


async def _history_rows(auditor: Client, seen: Onlooker) -> dict[str, int]:
    """How many rows each finished hand has, once every one has had its time."""
    due = {
        f"{table}/hands/{hand.hand}": 0 for table, record in seen.records.items() for hand in record.finished_hands()
    }
    async with asyncio.timeout(RUN_SECONDS):
        while True:
            rows = dict.fromkeys(due, 0)
            for table in seen.records:
                async for row in auditor.list_hands(table=table):
                    if row.name in rows:
                        rows[row.name] += 1
            if all(rows.values()):
                return rows
            await asyncio.sleep(LOOK_SECONDS)


async def _truth(house: EmbeddedHouse, seen: Onlooker) -> tuple[Truth, int]:
    """Every hand as each of its players remembers it from the history; and how many seats' cards that are."""
    truth = Truth()
    for cards in seen.shown:
        truth.shown.add(cards_of(cards))
    keys = house.keys()
    places = asyncio.Semaphore(READS_AT_ONCE)
    known = 0

    async def read(client: Client, name: str) -> None:
        nonlocal known
        async with places:
            hand = await client.get_hand(name)
        for seat in hand.seats:
            if seat.player == client.player and seat.dealt:
                known += 1
                truth.add(seat.dealt, seat.final_cards, was_shown=seat.shown)

    for table in seen.tables:
        names = [f"{table.name}/hands/{hand.hand}" for hand in seen.records[table.name].finished_hands()]
        for number in range(1, PLAYERS + 1):
            subject = f"{table.table_id}-{number}"
            token = keys.mint(subject, "player")
            async with Client(house.endpoints(), token, player=f"players/{subject}") as client:
                await asyncio.gather(*(read(client, name) for name in names))
    return truth, known
