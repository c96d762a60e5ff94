"""10,000 hands of all rulebooks reach PostgreSQL once each while worker, beat, broker and database die in turn.

The hands are played by chance through the rules and the real deck; the table's side keeps each log until it is
confirmed. `make soak-history` is the same with a whole house of bots, which takes much longer.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from fivedraw.table.v1 import table_service_pb2 as pb
from fivedraw.table.v1 import table_service_pb2_grpc as pb_grpc

from services.history.writing import FinishedHand
from services.runtime.errors import Fault
from services.runtime.tasks import CelerySender, WriteHand, make_app
from tests.conftest import SERVICE_KEY
from tests.integration.history.test_pipeline import Program, running
from tests.load.history.postgres_process import Postgres
from tests.servers import RedisProcess
from tests.unit.history.played import Played, play

pytestmark = [pytest.mark.long, pytest.mark.timeout(3000)]

HANDS = 10_000
TABLES = 50
RULEBOOKS = ("house", "clocked", "casadela", "openers", "american")
DOUBLED = 5_000
# A fault after each so many hands more that were confirmed.
FAULT_EVERY = 750
AWAY_SECONDS = 2.0
STALLED_SECONDS = 180.0
SEED = 20


def hand_of(finished: FinishedHand) -> Played:
    """The hand of that name: the same whenever it is asked for, so that none need be kept."""
    rng = random.Random(f"{SEED}/{finished.table}/{finished.hand}")
    return play(rng, rng.choice(RULEBOOKS), hand=finished.hand, table=finished.table, time_outs=0.02)


class TableLogs(pb_grpc.TableLogServiceServicer):
    """The tables' logs of all these hands, each kept until it is confirmed."""

    def __init__(self) -> None:
        numbers = range(HANDS)
        self.all = [FinishedHand(f"tables/t{place % TABLES}", 1, place // TABLES + 1) for place in numbers]
        self.unwritten = dict.fromkeys(self.all)
        self.confirmed: Counter[FinishedHand] = Counter()

    async def ReadHandLog(self, request, context):
        hand = FinishedHand(request.hand.table, request.hand.epoch, request.hand.hand)
        if hand not in self.unwritten:
            raise Fault("HAND_NOT_FOUND", "no such log")
        played = hand_of(hand)
        return pb.ReadHandLogResponse(events=played.log.events, table=played.table)

    async def ConfirmHandWritten(self, request, context):
        hand = FinishedHand(request.hand.table, request.hand.epoch, request.hand.hand)
        self.unwritten.pop(hand, None)
        self.confirmed[hand] += 1
        return pb.ConfirmHandWrittenResponse()

    async def ListUnwrittenHands(self, request, context):
        # At most as many as the page, from anywhere, as an index of time gives them once tasks were lost.
        due = [hand for hand, _ in zip(self.unwritten, range(request.page_size), strict=False)]
        return pb.ListUnwrittenHandsResponse(hands=[pb.UnwrittenHand(table=t, epoch=e, hand=h) for t, e, h in due])


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    folder = Path(tempfile.mkdtemp(prefix="ten-thousand-", dir="/tmp"))
    server = Postgres(folder)
    yield server
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RedisProcess]:
    server = RedisProcess(tmp_path / "broker", append_only=True).start()
    yield server
    server.stop()


async def test_ten_thousand_hands_have_ten_thousand_rows(make_settings, serve, postgres, broker, tmp_path) -> None:
    logs = TableLogs()

    def register(server) -> list[str]:
        pb_grpc.add_TableLogServiceServicer_to_server(logs, server)
        return ["fivedraw.table.v1.TableLogService"]

    server = await serve(make_settings(), register, name="table")
    environment = {
        "PATH": "/usr/bin:/bin",
        "FIVEDRAW_BROKER_URL": broker.url,
        "FIVEDRAW_DATABASE_URL": postgres.url.replace("postgresql+psycopg://", "postgresql://"),
        "FIVEDRAW_SERVICE_KEY": SERVICE_KEY.hex(),
        "FIVEDRAW_TABLE_ADDRESS": f"127.0.0.1:{server.port}",
        "FIVEDRAW_HISTORY_RESEND_AFTER_SECONDS": "1",
        "FIVEDRAW_HISTORY_RESEND_EVERY_SECONDS": "2",
        "FIVEDRAW_LOG_LEVEL": "warning",
    }
    workers = [Program("services.history.worker", environment, tmp_path / f"worker-{each}.log") for each in (1, 2)]
    beat = Program("services.history.beat", environment, tmp_path / "beat.log")
    rng = random.Random(SEED)
    faults = Faults(workers, beat, broker, postgres)
    tasks = [WriteHand(*hand) for hand in logs.all]
    tasks += rng.sample(tasks, DOUBLED)
    rng.shuffle(tasks)
    sender = CelerySender(make_app(broker.url))
    with running(*workers, beat):
        for task in tasks:
            # What its queue does not take is dropped, as in the table service, and left to the beat.
            sender.send(task)
        await faults.until_all_are_confirmed(logs)
        sender.close()
        for program in (*workers, beat):
            assert program.stop() == 0
    assert min(faults.done.values()) >= 2, faults.done
    assert not logs.unwritten
    assert set(logs.confirmed) == set(logs.all)
    rows = await asyncio.to_thread(postgres.rows)
    assert len(rows) == HANDS
    assert {FinishedHand(f"tables/{table}", epoch, hand) for table, epoch, hand, _ in rows} == set(logs.all)
    assert not any(incomplete for *_, incomplete in rows)


class Faults:
    """What befalls the write path, in turn."""

    def __init__(self, workers: list[Program], beat: Program, broker: RedisProcess, postgres: Postgres) -> None:
        self.workers = workers
        self.beat = beat
        self.broker = broker
        self.postgres = postgres
        self.turns = [
            self.kill_a_worker,
            self.crash_the_database,
            self.kill_the_broker,
            self.flush_the_broker_under_dying_workers,
            self.kill_the_beat,
        ]
        self.done = dict.fromkeys((turn.__name__ for turn in self.turns), 0)

    async def until_all_are_confirmed(self, logs: TableLogs) -> None:
        """Lets a fault happen after each `FAULT_EVERY` hands, until none is left."""
        due, last, quiet = FAULT_EVERY, 0, 0.0
        while logs.unwritten:
            confirmed = len(logs.confirmed)
            quiet = 0.0 if confirmed > last else quiet + 0.1
            assert quiet < STALLED_SECONDS, f"{confirmed} of {HANDS}, {self.done}\n{self._told()}"
            last = confirmed
            if confirmed >= due:
                due = confirmed + FAULT_EVERY
                turn = self.turns[sum(self.done.values()) % len(self.turns)]
                await asyncio.to_thread(turn)
                self.done[turn.__name__] += 1
            await asyncio.sleep(0.1)

    def _told(self) -> str:
        return "\n".join(each.log.read_text()[-2000:] for each in (*self.workers, self.beat) if each.log.exists())

    def kill_a_worker(self) -> None:
        self.workers[0].kill()
        self.workers[0].start()

    def crash_the_database(self) -> None:
        self.postgres.crash(AWAY_SECONDS)

    def kill_the_broker(self) -> None:
        self.broker.kill()
        self.broker.start()

    def flush_the_broker_under_dying_workers(self) -> None:
        for worker in self.workers:
            worker.kill()
        with redis.Redis.from_url(self.broker.url) as client:
            client.flushdb()
        for worker in self.workers:
            worker.start()

    def kill_the_beat(self) -> None:
        self.beat.kill()
        self.beat.start()
