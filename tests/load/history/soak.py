"""`make soak-history`: a house of bots plays while everything that writes its histories is killed again and again.

    python -m tests.load.history.soak --hands 10000

The histories are on a PostgreSQL of the soak's own, with its durability on. Faults come in turn: the worker, the beat,
the history service and Redis (the tables' store and the broker) are killed, the broker is flushed, the database crashes
and recovers, tasks come doubled and in another order. At the end the house pauses, and every number that a table gave
out must have one row, nothing may be pending, and the tables' logs must be trimmed. Status 1 at any difference.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import redis
from fivedraw.table.v1 import table_service_pb2
from fivedraw_client import new_id

from services.cli.house.ports import Ports
from services.runtime.tasks import HANDS_OF_A_TASK_MAX, WriteHand, make_app, send_hands
from services.table.log_api import KEEP_BATCHES
from services.table.redis_store import SHARDS
from tests.embedded import EmbeddedHouse
from tests.load.history.postgres_process import Postgres
from tests.load.history.up_on_postgres import URL_VARIABLE

TABLES = 6
PLAYERS = 4
FAULT_EVERY_SECONDS = 10.0
AWAY_SECONDS = 3.0
DOUBLED = 400
SETTLE_SECONDS = 240.0
REPORT_SECONDS = 30.0
LOOK_SECONDS = 0.5
# A log is trimmed with a hand's confirmation; seats, and the pause, may be told after the last one.
COMMITS_SINCE = 50


class Soaked(EmbeddedHouse):
    """The house whose histories are on PostgreSQL, and what befalls it."""

    def __init__(self, folder: Path, postgres: Postgres, rng: random.Random, *options: str) -> None:
        super().__init__(folder, *options)
        place = self._command.index("services.cli")
        self._command[place] = "tests.load.history.up_on_postgres"
        os.environ[URL_VARIABLE] = postgres.url
        self.postgres = postgres
        self.rng = rng
        self.faults = {
            "worker killed": lambda: self.kill_and_wait("worker"),
            "tasks doubled": self.double_tasks,
            "database crashed": lambda: self.postgres.crash(AWAY_SECONDS),
            "broker flushed": self.flush_broker,
            "Redis killed": lambda: self.kill_and_wait("redis"),
            "worker killed and broker flushed": self.kill_and_flush,
            "beat killed": lambda: self.kill_and_wait("beat"),
            "history service killed": lambda: self.kill_and_wait("history"),
        }

    def kill_and_wait(self, name: str) -> None:
        """`kill -9`, and until it runs again."""
        self.await_restart(name, self.kill(name))

    def kill_and_flush(self) -> None:
        """The worker dies with tasks in its hands, and the broker forgets them and all others."""
        killed = self.kill("worker")
        self.flush_broker()
        self.await_restart("worker", killed)

    @contextlib.contextmanager
    def redis(self, database: int) -> Iterator[redis.Redis]:
        """A connection to the house's Redis: 0 the tables' store, 1 the broker."""
        with contextlib.closing(redis.Redis.from_url(self._redis_url(database))) as client:
            yield client

    def _redis_url(self, database: int) -> str:
        return f"redis://:{self.keys().redis_password}@127.0.0.1:{Ports(self.port_base).redis}/{database}"

    def flush_broker(self) -> None:
        """Every task that waits, or is at work, is gone."""
        with self.redis(1) as client:
            client.flushdb()

    def double_tasks(self) -> None:
        """Tasks of hands that are written, and of hands that are due, once more and in any order."""
        written = [WriteHand(f"tables/{table}", epoch, hand) for table, epoch, hand, _ in self.postgres.rows()]
        tasks = self.rng.sample(written, min(DOUBLED, len(written)))
        with self.redis(0) as client:
            for shard in range(SHARDS):
                for member in client.zrange(f"fd:unwritten:{shard}", 0, -1):
                    table, epoch, hand = member.decode().split("|")
                    tasks += [WriteHand(f"tables/{table}", int(epoch), int(hand))] * 2
        self.rng.shuffle(tasks)
        app = make_app(self._redis_url(1))
        for first in range(0, len(tasks), HANDS_OF_A_TASK_MAX):
            send_hands(app, tasks[first : first + HANDS_OF_A_TASK_MAX])
        app.close()

    def given_out(self) -> dict[str, int]:
        """By table: the last number that the registry gave to a hand."""
        path = self.folder.sql / "table.sqlite"
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            return dict(connection.execute("SELECT table_id, last_hand FROM tables"))

    def pending(self) -> int:
        """Hands in the index of unwritten ones."""
        with self.redis(0) as client:
            return sum(client.zcard(f"fd:unwritten:{shard}") for shard in range(SHARDS))

    def log_lengths(self) -> dict[str, int]:
        """By table: commits in its log."""
        with self.redis(0) as client:
            return {table: client.xlen(f"fd:{{{table}}}:log") for table in self.given_out()}

    async def pause(self) -> None:
        """No hand begins any more."""
        async with self.client("olga", "operator") as operator:
            request = table_service_pb2.PauseHouseRequest(request_id=new_id(), reason="the soak is over")
            answer = await operator.caller.call(operator.tables.PauseHouse, request)
        if answer.unreached:
            raise RuntimeError(f"not paused: {answer.unreached}")


def say(text: str) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stdout.flush()


async def soak(hands: int, seed: int, folder: Path) -> list[str]:
    """Plays so many hands under faults; returns what is wrong at the end."""
    rng = random.Random(seed)
    postgres = Postgres(folder)
    options = ["--tables", str(TABLES), "--players", str(PLAYERS), "--speed", "flatout", "--log-level", "warning"]
    house = Soaked(folder / "house", postgres, rng, *options)
    try:
        await asyncio.to_thread(lambda: house.start().await_ready())
        await _play(house, hands)
        await house.pause()
        return await _verdict(house)
    finally:
        house.kill_all()
        postgres.stop()


async def _play(house: Soaked, hands: int) -> None:
    faults = list(house.faults)
    done = dict.fromkeys(faults, 0)
    began = reported = time.monotonic()
    due = began + FAULT_EVERY_SECONDS
    while (played := sum(house.given_out().values())) < hands:
        now = time.monotonic()
        if now >= due:
            name = faults[sum(done.values()) % len(faults)]
            await asyncio.to_thread(house.faults[name])
            done[name] += 1
            due = time.monotonic() + FAULT_EVERY_SECONDS
        if now - reported >= REPORT_SECONDS:
            reported = now
            rows = len(await asyncio.to_thread(house.postgres.rows))
            say(f"{played} hands given out, {rows} rows, {played / (now - began):.1f} hands/s, faults {done}")
        await asyncio.sleep(LOOK_SECONDS)
    say(f"{played} hands in {time.monotonic() - began:.0f} s, faults {done}")


async def _verdict(house: Soaked) -> list[str]:
    """What is wrong once everything had its time; a hand in play when the house paused is played to its end."""
    end = time.monotonic() + SETTLE_SECONDS
    told: list[str] = []
    while True:
        numbers = house.given_out()
        rows = await asyncio.to_thread(house.postgres.rows)
        wrong = _differences(numbers, rows, house.pending(), house.log_lengths())
        if not wrong or time.monotonic() > end:
            break
        if wrong != told:
            told = wrong
            say(f"settling: {wrong}")
        await asyncio.sleep(LOOK_SECONDS)
    incomplete = sum(each[3] for each in rows)
    say(f"{sum(numbers.values())} hands, {len(rows)} rows ({incomplete} incomplete), logs {house.log_lengths()}")
    summary = await asyncio.to_thread(house.end)
    say(f"summary: {summary['hands']} hands seen, lost {summary['lost_hands']}, restarts {summary['restarts']}")
    return wrong + [f"the house: {fault}" for fault in summary["faults"]]


def _differences(
    numbers: dict[str, int], rows: list[tuple[str, int, int, bool]], pending: int, lengths: dict[str, int]
) -> list[str]:
    wrong = [] if not pending else [f"{pending} hands are pending"]
    if len(rows) != sum(numbers.values()):
        wrong.append(f"{len(rows)} rows of {sum(numbers.values())} hands")
    for table, last in numbers.items():
        missing = set(range(1, last + 1)) - {hand for of_table, _, hand, _ in rows if of_table == table}
        if missing:
            wrong.append(f"{table}: no row for {sorted(missing)[:10]}")
        if lengths[table] > KEEP_BATCHES + COMMITS_SINCE:
            wrong.append(f"{table}: its log has {lengths[table]} commits, more than the {KEEP_BATCHES} to be kept")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hands", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    options = parser.parse_args()
    say(f"seed {options.seed}")
    folder = Path(tempfile.mkdtemp(prefix="soak-history-", dir="/tmp"))
    try:
        wrong = asyncio.run(soak(options.hands, options.seed, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for each in wrong:
        say(f"WRONG: {each}")
    say("wrong" if wrong else "every hand has its one row, nothing is pending, logs are trimmed")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
