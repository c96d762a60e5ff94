"""The write path with a real broker and worker: killed, flushed, their tasks doubled and shuffled."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
import redis
from fivedraw.table.v1 import table_service_pb2 as pb
from fivedraw.table.v1 import table_service_pb2_grpc as pb_grpc

from services.history.record import RecordBrokenError
from services.history.writing import FinishedHand, HandNotFoundError, HandWriter
from services.runtime.clock import SystemClock
from services.runtime.errors import Fault
from services.runtime.tasks import (
    HANDS_OF_A_TASK_MAX,
    RESEND_UNWRITTEN,
    SENDS_WAITING_MAX,
    WRITE_HAND,
    WRITE_QUEUE,
    CelerySender,
    WriteHand,
    make_app,
    send_now,
)
from tests.conftest import SERVICE_KEY
from tests.servers import free_port
from tests.unit.history.played import Played, play

HANDS = 60
DONE_WITHIN_SECONDS = 45
ROOT = Path(__file__).resolve().parents[3]


class TableLogServicer(pb_grpc.TableLogServiceServicer):
    """A table service that keeps the logs of finished hands until they are confirmed."""

    def __init__(self, hands: list[Played]) -> None:
        self.unwritten = {each.finished: each for each in hands}
        self.confirmations: dict[FinishedHand, int] = {}
        self.reads = 0

    async def ReadHandLog(self, request, context):
        self.reads += 1
        hand = FinishedHand(request.hand.table, request.hand.epoch, request.hand.hand)
        played = self.unwritten.get(hand)
        if played is None:
            raise Fault("HAND_NOT_FOUND", "no such log")
        return pb.ReadHandLogResponse(events=played.log.events, table=played.table)

    async def ConfirmHandWritten(self, request, context):
        hand = FinishedHand(request.hand.table, request.hand.epoch, request.hand.hand)
        self.unwritten.pop(hand, None)
        self.confirmations[hand] = self.confirmations.get(hand, 0) + 1
        return pb.ConfirmHandWrittenResponse()

    async def ListUnwrittenHands(self, request, context):
        due = list(self.unwritten)[: request.page_size]
        return pb.ListUnwrittenHandsResponse(hands=[pb.UnwrittenHand(table=t, epoch=e, hand=h) for t, e, h in due])


class Program:
    """One of the history's programs as a process."""

    def __init__(self, module: str, environment: dict[str, str], log: Path) -> None:
        self.module = module
        self.environment = environment
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", self.module], env=self.environment, cwd=ROOT, stdout=log, stderr=log
            )

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)


@pytest.fixture
def environment(redis_url: str, tmp_path: Path) -> dict[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("FIVEDRAW_")},
        "FIVEDRAW_BROKER_URL": redis_url,
        "FIVEDRAW_DATABASE_URL": f"sqlite:///{tmp_path / 'history.sqlite'}",
        "FIVEDRAW_SERVICE_KEY": SERVICE_KEY.hex(),
        "FIVEDRAW_HISTORY_RESEND_AFTER_SECONDS": "1",
        "FIVEDRAW_HISTORY_RESEND_EVERY_SECONDS": "1",
    }


@contextlib.contextmanager
def running(*programs: Program) -> Iterator[None]:
    try:
        for program in programs:
            program.start()
        yield
    finally:
        for program in programs:
            if program.process is not None and program.process.poll() is None:
                program.kill()


@pytest_asyncio.fixture
async def table(make_settings, serve) -> AsyncIterator:
    async def start(hands: list[Played]) -> tuple[TableLogServicer, str]:
        servicer = TableLogServicer(hands)

        def register(server) -> list[str]:
            pb_grpc.add_TableLogServiceServicer_to_server(servicer, server)
            return ["fivedraw.table.v1.TableLogService"]

        server = await serve(make_settings(), register, name="table")
        return servicer, f"127.0.0.1:{server.port}"

    return start


async def until(condition, why: str, programs: list[Program]) -> None:
    end = time.monotonic() + DONE_WITHIN_SECONDS
    while not condition():
        if time.monotonic() > end:
            logs = "\n".join(program.log.read_text()[-3000:] for program in programs if program.log.exists())
            raise AssertionError(f"not within {DONE_WITHIN_SECONDS} s: {why}\n{logs}")
        await asyncio.sleep(0.05)


def rows(environment: dict[str, str]) -> list[tuple[int, str]]:
    path = environment["FIVEDRAW_DATABASE_URL"].removeprefix("sqlite:///")
    with contextlib.closing(sqlite3.connect(path)) as connection, contextlib.suppress(sqlite3.OperationalError):
        return connection.execute("SELECT hand, table_id FROM hands").fetchall()
    return []


def scraped(address: str) -> str:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=5) as answer:
        return answer.read().decode()


async def test_every_hand_gets_one_row_whatever_breaks(environment, redis_url, table, tmp_path) -> None:
    rng = random.Random(11)
    hands = [play(rng, hand=number) for number in range(1, HANDS + 1)]
    servicer, address = await table(hands)
    environment |= {"FIVEDRAW_TABLE_ADDRESS": address, "FIVEDRAW_METRICS_LISTEN": f"127.0.0.1:{free_port()}"}
    worker = Program("services.history.worker", environment, tmp_path / "worker.log")
    beat = Program("services.history.beat", environment, tmp_path / "beat.log")
    both = [worker, beat]
    sender = CelerySender(make_app(redis_url))
    broker = redis.Redis.from_url(redis_url)
    tasks = [WriteHand(*each.finished) for each in hands]
    doubled = tasks + tasks[: HANDS // 2]
    rng.shuffle(doubled)
    with running(worker, beat):
        for task in doubled:
            assert sender.send(task)
        await until(lambda: len(servicer.confirmations) >= 5, "the first hands are written", both)
        worker.kill()
        # What the dead worker had at work, and all that waited, is gone with the broker's memory.
        broker.flushdb()
        worker.start()
        await until(lambda: len(servicer.confirmations) == HANDS, "all hands are confirmed", both)
        assert not servicer.unwritten
        # Counted after the confirmation; `unchanged` where the first worker had written the rows already.
        listen = environment["FIVEDRAW_METRICS_LISTEN"]
        await until(lambda: "fivedraw_history_hands_total{outcome=" in scraped(listen), "the worker counts", both)
        assert worker.stop() == 0
        assert beat.stop() == 0
    sender.close()
    assert sorted(rows(environment)) == [(number, "red") for number in range(1, HANDS + 1)]


async def test_a_task_of_a_killed_worker_is_given_to_another(environment, redis_url, table, tmp_path) -> None:
    """Without any beat: the broker itself gives the task out again after its visibility timeout."""
    played = play(random.Random(3))
    servicer, address = await table([played])
    environment |= {"FIVEDRAW_TABLE_ADDRESS": address}
    app = make_app(redis_url)
    send_now(app, WRITE_HAND, tuple(played.finished))
    broker = redis.Redis.from_url(redis_url)
    # As a worker leaves it that took the task and died: the message is among the unacknowledged ones, long overdue.
    message = broker.rpop(WRITE_QUEUE)
    tag = "dead-worker"
    broker.hset(f"unacked.{WRITE_QUEUE}", tag, b"[" + message + b', "", "' + WRITE_QUEUE.encode() + b'"]')
    broker.zadd(f"unacked_index.{WRITE_QUEUE}", {tag: time.time() - 3600})
    worker = Program("services.history.worker", environment, tmp_path / "worker.log")
    with running(worker):
        await until(lambda: servicer.confirmations, "the task is given out again", [worker])
        assert worker.stop() == 0
    assert rows(environment) == [(1, "red")]


async def test_a_hand_that_is_written_is_confirmed_again_without_its_log(database) -> None:
    opened = await database("history")
    played = play(random.Random(5))

    class Log:
        reads = 0
        confirmed = 0

        async def read(self, hand):
            self.reads += 1
            # The first confirmation was lost on its way back: the log is trimmed all the same.
            return played.hand_log if self.reads == 1 else None

        async def confirm(self, hand):
            self.confirmed += 1
            if self.confirmed == 1:
                raise ConnectionError("the confirmation was lost")

    log = Log()
    writer = HandWriter(opened, log, SystemClock())
    with pytest.raises(ConnectionError):
        await writer.write_hand(played.finished)
    assert (await writer.write_hand(played.finished)).value == "unchanged"
    assert (log.reads, log.confirmed) == (2, 2)


async def test_a_log_that_is_no_finished_hand_is_not_written_or_confirmed(database) -> None:
    opened = await database("history")
    played = play(random.Random(6))
    cut = list(played.log.events)

    class Log:
        async def read(self, hand):
            return None if not cut else type(played.hand_log)(played.table, cut)

        async def confirm(self, hand):
            raise AssertionError("confirmed")

    writer = HandWriter(opened, Log(), SystemClock())
    for broken in (played.log.events[1:], played.log.events[:-2], [*played.log.events, played.log.events[-1]]):
        cut[:] = broken
        with pytest.raises(RecordBrokenError):
            await writer.write_hand(played.finished)
    cut.clear()
    with pytest.raises(HandNotFoundError):
        await writer.write_hand(played.finished)


async def test_hands_that_end_together_share_a_task(environment, redis_url, table, tmp_path) -> None:
    rng = random.Random(12)
    hands = [play(rng, hand=number) for number in range(1, HANDS_OF_A_TASK_MAX + 9)]
    servicer, address = await table(hands[:-1])
    environment |= {"FIVEDRAW_TABLE_ADDRESS": address, "FIVEDRAW_METRICS_LISTEN": f"127.0.0.1:{free_port()}"}
    sender = CelerySender(make_app(redis_url))
    for each in hands:
        assert sender.send(WriteHand(*each.finished))
    sender.close()
    assert redis.Redis.from_url(redis_url).llen(WRITE_QUEUE) == 2
    worker = Program("services.history.worker", environment, tmp_path / "worker.log")
    with running(worker):
        # The last one has no log; the others of its task are written all the same.
        await until(lambda: len(servicer.confirmations) == len(hands) - 1, "all that have logs are confirmed", [worker])
        metrics = await asyncio.to_thread(scraped, environment["FIVEDRAW_METRICS_LISTEN"])
        assert 'fivedraw_history_write_failures_total{reason="HandNotFoundError"} 1.0' in metrics
        assert worker.stop() == 0
    assert len(rows(environment)) == len(hands) - 1


async def test_a_sender_never_waits_for_a_broker_that_is_away() -> None:
    sender = CelerySender(make_app(f"redis://127.0.0.1:{free_port()}/0"))
    started = time.monotonic()
    outcomes = [sender.send(WriteHand("tables/red", 1, number)) for number in range(SENDS_WAITING_MAX + 500)]
    assert time.monotonic() - started < 5
    assert outcomes[0]
    assert not outcomes[-1], "beyond its bound a task is dropped and said to be"


def test_the_beat_sends_the_hands_that_are_due_again(environment, monkeypatch) -> None:
    from services.history.beat import make_beat_app  # noqa: PLC0415
    from services.history.settings import HistorySettings  # noqa: PLC0415

    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    entry = make_beat_app(HistorySettings.load()).conf.beat_schedule[RESEND_UNWRITTEN]
    assert (entry["schedule"], entry["options"]["queue"]) == (1, WRITE_QUEUE)
    assert entry["options"]["expires"] == 1
