"""Hands a second that one worker writes, against Celery's rate of empty tasks in the same run; lists against reads.

Broker, table and worker are processes of their own. The empty task runs in a worker of the same pool, concurrency and
broker settings, so what is compared is the house's own work: read a log over gRPC, write a durable row, confirm it.
The lists are asked of `HISTORY_BENCH_ROWS` stored hands (1,000,000 by default), next to reads by primary key.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import redis
import sqlalchemy as sa
from fivedraw.table.v1 import event_pb2
from fivedraw.table.v1 import table_service_pb2 as pb
from fivedraw.table.v1 import table_service_pb2_grpc as pb_grpc

from services.history import queries, store
from services.history.queries import Filters, Place
from services.history.record import encode, record_of
from services.history.schema import HAND_PLAYERS, HAND_RECORDS, HANDS
from services.history.worker import keep_logging
from services.runtime.database import Database
from services.runtime.server import start
from services.runtime.settings import ServiceSettings
from services.runtime.tasks import WRITE_HAND, WRITE_QUEUE, CelerySender, WriteHand, make_app
from tests.servers import RedisProcess, free_port
from tests.unit.history.played import play

HANDS_WRITTEN = 6_000
HANDS_WRITTEN_SINGLY = 2_000
EMPTY_TASKS = 2_000
LOGS_KEPT = 50
CONCURRENCY = 8
ROWS = int(os.environ.get("HISTORY_BENCH_ROWS", "1000000"))
ROWS_OF_A_BATCH = 20_000
PLAYERS = 2_000
READS = 2_000
LISTS = 400
WAIT_SECONDS_MAX = 120
EMPTY_TASK = "bench.empty"


def run() -> dict[str, float]:
    """Measures once. `history_vs_celery` is hands written per empty task, sent as the table service sends them under
    load; `history_single_vs_celery` the same with a task for each hand. Ratios of lists are times of a read.
    """
    with tempfile.TemporaryDirectory(prefix="bench-history-") as name:
        folder = Path(name)
        broker = RedisProcess(folder / "broker").start()
        try:
            empty = _rate(broker.url, folder, "empty", EMPTY_TASKS)
            hands = _rate(broker.url, folder, "hands", HANDS_WRITTEN)
            single = _rate(broker.url, folder, "single", HANDS_WRITTEN_SINGLY)
        finally:
            broker.stop()
        return {
            "celery_empty_tasks_per_second": empty,
            "history_hands_per_second": hands,
            "history_vs_celery": hands / empty,
            "history_single_hands_per_second": single,
            "history_single_vs_celery": single / empty,
            **asyncio.run(_lists(folder)),
        }


def _rate(broker_url: str, folder: Path, kind: str, tasks: int) -> float:
    """Tasks a second, from the first of a full queue that is taken to the last that is done."""
    app = make_app(broker_url)
    client = redis.Redis.from_url(broker_url)
    client.flushdb()
    if kind == "hands":
        # By the sender that the table service uses, which lets hands that end within a moment share a task.
        sender = CelerySender(app)
        for number in range(1, tasks + 1):
            sender.send(WriteHand("tables/red", 1, number))
        sender.close()
    else:
        name = EMPTY_TASK if kind == "empty" else WRITE_HAND
        with app.producer_pool.acquire() as producer:
            for number in range(1, tasks + 1):
                args = () if kind == "empty" else ("tables/red", 1, number)
                app.send_task(name, args=args, queue=WRITE_QUEUE, ignore_result=True, producer=producer)
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("FIVEDRAW_")},
        "FIVEDRAW_BROKER_URL": broker_url,
        "FIVEDRAW_DATABASE_URL": f"sqlite:///{folder / f'{kind}.sqlite'}",
        "FIVEDRAW_SERVICE_KEY": "00" * 32,
        "FIVEDRAW_SEALING_KEYS": f"test:{bytes(range(32, 64)).hex()}",
        "FIVEDRAW_HISTORY_WRITE_CONCURRENCY": str(CONCURRENCY),
        "FIVEDRAW_LOG_LEVEL": "warning",
    }
    with contextlib.ExitStack() as stack:
        if kind != "empty":
            port = free_port()
            environment["FIVEDRAW_TABLE_ADDRESS"] = f"127.0.0.1:{port}"
            stack.enter_context(_process(["-m", "bench.history", "table", str(port)], environment))
            _wait_for(port)
        worker = ["-m", "services.history.worker"] if kind != "empty" else ["-m", "bench.history", "empty", broker_url]
        rate = _drained(client, tasks, stack.enter_context(_process(worker, environment)))
    if kind != "empty":
        with contextlib.closing(sqlite3.connect(folder / f"{kind}.sqlite")) as connection:
            (rows,) = connection.execute("SELECT count(*) FROM hands").fetchone()
        if rows != tasks:
            raise RuntimeError(f"{rows} rows of {tasks} hands")
    return rate


def _wait_for(port: int) -> None:
    end = time.monotonic() + WAIT_SECONDS_MAX
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
        else:
            return


def _drained(client: redis.Redis, tasks: int, worker: subprocess.Popen[bytes]) -> float:
    def left() -> int:
        return int(client.llen(WRITE_QUEUE)) + int(client.hlen(f"unacked.{WRITE_QUEUE}"))

    end = time.monotonic() + WAIT_SECONDS_MAX
    messages = left()
    # A tenth is the worker's warm-up.
    first = messages - messages // 10
    began = 0.0
    while time.monotonic() < end and worker.poll() is None:
        waiting = left()
        if not began and waiting <= first:
            began, first = time.perf_counter(), waiting
        if began and not waiting:
            return first / messages * tasks / (time.perf_counter() - began)
        time.sleep(0.005)
    raise RuntimeError(f"{left()} of {messages} tasks are left")


@contextlib.contextmanager
def _process(arguments: list[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, *arguments], env=environment)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


def _empty_worker(broker_url: str) -> None:
    """A worker like the history's, whose task does nothing."""
    app = make_app(broker_url)

    def empty() -> None:
        """Does nothing."""

    app.task(name=EMPTY_TASK)(empty)
    keep_logging()
    app.Worker(
        pool="threads",
        concurrency=CONCURRENCY,
        queues=[WRITE_QUEUE],
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        loglevel="WARNING",
        quiet=True,
    ).start()


class _Table(pb_grpc.TableLogServiceServicer):
    """A table that has played every hand; a few logs stand for all of them."""

    def __init__(self) -> None:
        rng = random.Random(1)
        self._logs = [play(rng, time_outs=0.0) for _ in range(LOGS_KEPT)]

    async def ReadHandLog(self, request: pb.ReadHandLogRequest, context: object) -> pb.ReadHandLogResponse:
        played = self._logs[request.hand.hand % LOGS_KEPT]
        response = pb.ReadHandLogResponse(table=played.table)
        for logged in played.log.events:
            copy = response.events.add()
            copy.CopyFrom(logged)
            event = event_pb2.TableEvent.FromString(logged.public_event)
            event.hand = request.hand.hand
            copy.public_event = event.SerializeToString()
        return response

    async def ConfirmHandWritten(self, request: pb.ConfirmHandWrittenRequest, context: object) -> object:
        return pb.ConfirmHandWrittenResponse()


async def _serve_table(port: int) -> None:
    settings = ServiceSettings.load(listen=f"127.0.0.1:{port}")
    servicer = _Table()

    def register(server: object) -> list[str]:
        pb_grpc.add_TableLogServiceServicer_to_server(servicer, server)
        return ["fivedraw.table.v1.TableLogService"]

    server = await start("table", settings, register, with_metrics=False)
    try:
        await asyncio.Event().wait()
    finally:
        await server.stop()


async def _lists(folder: Path) -> dict[str, float]:
    """Times of list pages and of reads by primary key over the same rows, medians in milliseconds, and their ratios."""
    path = folder / "rows.sqlite"
    database = Database(f"sqlite:///{path}")
    await database.migrate("history")
    began = time.perf_counter()
    numbers = await asyncio.to_thread(_fill, path)
    filled = time.perf_counter() - began
    rng = random.Random(2)
    reads = [await _timed(database, store.read_hand, rng.choice(numbers)) for _ in range(READS)]
    read = statistics.median(reads)
    walks = {
        "player": lambda: Filters(player=f"players/p{rng.randrange(PLAYERS)}"),
        "table": lambda: Filters(table_id=f"t{rng.randrange(100)}"),
        "time": lambda: Filters(from_ms=1, to_ms=ROWS * 1000 - rng.randrange(ROWS) * 500),
        "rulebook": lambda: Filters(rulebook="clocked"),
        "player_table": lambda: Filters(player=f"players/p{rng.randrange(PLAYERS)}", table_id="t7"),
        "large_pots": lambda: Filters(min_pot_minor=9_990),
    }
    measured = {"history_rows": float(len(numbers)), "history_fill_seconds": filled, "history_read_ms": read * 1000}
    for name, filters in walks.items():
        times = []
        for _ in range(LISTS):
            chosen = filters()
            after = Place(rng.randrange(1, ROWS * 1000), 0) if name != "time" else None
            times.append(await _timed(database, queries.list_hands, chosen, after, queries.PAGE_DEFAULT))
        measured[f"history_list_by_{name}_ms"] = statistics.median(times) * 1000
        measured[f"history_list_by_{name}_vs_read"] = statistics.median(times) / read
    await database.close()
    return measured


async def _timed(database: Database, fn: object, *args: object) -> float:
    began = time.perf_counter()
    await database.read(fn, *args)  # type: ignore[arg-type]
    return time.perf_counter() - began


def _fill(path: Path) -> list[int]:
    """Stores `ROWS` hands of real records by plain inserts; returns their numbers."""
    rng = random.Random(3)
    records = [encode(record_of(played.table, played.log.events)) for played in (play(rng) for _ in range(LOGS_KEPT))]
    engine = sa.create_engine(f"sqlite:///{path}")
    numbers: list[int] = []
    with engine.connect() as conn:
        conn.exec_driver_sql("PRAGMA synchronous = OFF")
        for first in range(0, ROWS, ROWS_OF_A_BATCH):
            hands, stored, players = [], [], []
            for seq in range(first + 1, min(first + ROWS_OF_A_BATCH, ROWS) + 1):
                number = rng.randrange(1, 2**63)
                numbers.append(number)
                shared = {
                    "hand_id": number,
                    "table_id": f"t{seq % 100}",
                    "hand": seq,
                    "rulebook": ("house", "clocked", "casadela")[seq % 3],
                    "currency": "USD",
                    "end_ms": seq * 1000,
                    "outcome": 1,
                    "pot_minor": rng.randrange(10_000),
                    "incomplete": False,
                }
                hands.append(
                    {
                        **shared,
                        "seq": seq,
                        "epoch": 1,
                        "start_ms": seq * 1000 - 500,
                        "rake_minor": 0,
                        "carry_in_minor": 0,
                        "carry_out_minor": 0,
                        "written_ms": seq * 1000,
                    }
                )
                stored.append({"seq": seq, "record": records[seq % LOGS_KEPT]})
                players.extend(
                    {
                        **shared,
                        "player": f"players/p{player}",
                        "net_minor": 0,
                        "won_minor": 0,
                        "voluntary": True,
                        "showdown": True,
                    }
                    for player in rng.sample(range(PLAYERS), 3)
                )
            conn.execute(HANDS.insert(), hands)
            conn.execute(HAND_RECORDS.insert(), stored)
            conn.execute(HAND_PLAYERS.insert(), players)
            conn.commit()
    engine.dispose()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return numbers


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["empty", url]:
            _empty_worker(url)
        case ["table", port]:
            asyncio.run(_serve_table(int(port)))
        case _:
            print(json.dumps(run(), indent=1))
