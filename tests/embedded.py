"""A whole embedded house for a test: `fivedraw up` as a process, what a test does to it, and what it sees of it."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from fivedraw_client import Client, Endpoints, RetryPolicy, TableStream

from services.cli.bots.crew import BotTable, plan
from services.cli.bots.guard import CardGuard
from services.cli.bots.record import TableRecord
from services.cli.commands.reach import house_endpoints
from services.cli.house.folder import Folder
from services.cli.house.keys import HouseKeys, existing
from services.cli.house.ports import Ports
from services.cli.house.readiness import await_ready
from services.cli.house.supervision import Supervisor

# Long enough for a machine that is busy with other tests; it is no promise of the house.
START_SECONDS = 180
END_SECONDS = 120
# Below the range from which the kernel takes ports for outgoing connections.
PORT_BASES = range(12_000, 30_000, 50)

PATIENT = RetryPolicy(attempts=60, first_delay=0.05, last_delay=1.0)


def free_port_base() -> int:
    """A base from which on all of a house's ports are free."""
    bases = list(PORT_BASES)
    random.SystemRandom().shuffle(bases)
    return next(base for base in bases if not Ports(base).taken())


class EmbeddedHouse:
    """One `fivedraw up`. Its output is kept beside its folder."""

    def __init__(self, folder: Path, *options: str, port_base: int | None = None) -> None:
        self.folder = Folder.at(folder)
        self.port_base = port_base or free_port_base()
        self._command = [
            *(sys.executable, "-m", "services.cli", "up", "--data", str(folder), "--json"),
            *("--port-base", str(self.port_base), *options),
        ]
        self._output = folder.with_suffix(".out")
        self._process: subprocess.Popen[bytes] | None = None
        # Only asked and told, never started or stopped from here.
        self._supervisor: Supervisor | None = None

    def start(self) -> Self:
        with self._output.open("wb") as output, self._errors_file.open("wb") as errors:
            self._process = subprocess.Popen(self._command, stdout=output, stderr=errors)
        return self

    @property
    def _errors_file(self) -> Path:
        return self._output.with_suffix(".err")

    def said(self) -> str:
        """Everything that it wrote for people."""
        return self._errors_file.read_text()

    def await_ready(self) -> Self:
        """Waits until its bots are at their tables."""
        self.until(lambda: "bots play at" in self.said(), START_SECONDS)
        return self

    def check_running(self) -> None:
        """Fails, with what the house said last, if it has ended."""
        assert self._process is not None
        ended = self._process.poll() is not None or "stopping: " in self.said()
        assert not ended, f"the house ended:\n{self.said()}\n{self.logs()}"

    def until(self, holds: Callable[[], bool], seconds: float = START_SECONDS) -> None:
        """Waits until something holds, while the house runs."""
        limit = time.monotonic() + seconds
        while not holds():
            self.check_running()
            assert time.monotonic() < limit, f"it never came to be:\n{self.said()}\n{self.logs()}"
            time.sleep(0.05)

    def end(self) -> dict[str, Any]:
        """Ctrl-C, and the summary that it prints then."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        return self.result()

    def result(self) -> dict[str, Any]:
        """The summary, once it has ended by itself; `exit_status` is added."""
        assert self._process is not None
        status = self._process.wait(END_SECONDS)
        text = self._output.read_text()
        assert text, f"no summary (exit status {status}):\n{self.said()}\n{self.logs()}"
        self._output.unlink()
        return {**json.loads(text), "exit_status": status}

    def kill_all(self) -> None:
        """Ends it whatever state it is in; its processes end with it."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(END_SECONDS)
            self._process.kill()
            self._process.wait()

    def pid(self, name: str) -> int:
        """Process id of a running process of the house, or 0."""
        return next((each.pid for each in self.supervisor.statuses() if each.name == name), 0)

    def kill(self, name: str) -> int:
        """`kill -9`; returns the process id that is no more."""
        pid = self.pid(name)
        assert pid, f"{name} is not running"
        os.kill(pid, signal.SIGKILL)
        return pid

    def await_restart(self, name: str, killed: int) -> None:
        """Waits until the process has been started again, and takes calls if it is one that does."""
        self.until(lambda: self.pid(name) not in (0, killed))
        ports = Ports(self.port_base)
        served = {"table": ports.tables[0], "deck": ports.deck, "wallet": ports.wallet, "history": ports.history}
        if name in served:
            asyncio.run(await_ready(self.supervisor, {name: served[name]}))

    @property
    def supervisor(self) -> Supervisor:
        """The house's process manager."""
        if self._supervisor is None:
            self._supervisor = Supervisor(self.folder, [])
        return self._supervisor

    def logs(self, lines: int = 12) -> str:
        """The ends of all logs, for a test that failed."""
        ends = []
        for path in sorted(self.folder.logs.glob("*.log")):
            tail = "\n".join(line[:500] for line in path.read_text(errors="replace").splitlines()[-lines:])
            ends.append(f"== {path.name}\n{tail}")
        return "\n".join(ends)

    def keys(self) -> HouseKeys:
        return existing(self.folder)

    def endpoints(self) -> Endpoints:
        return house_endpoints(self.folder)[0]

    @contextlib.asynccontextmanager
    async def client(self, subject: str, role: str) -> AsyncIterator[Client]:
        """A caller's connection."""
        player = f"players/{subject}" if role == "player" else ""
        token = self.keys().mint(subject, role)
        async with Client(self.endpoints(), token, player=player, policy=PATIENT) as client:
            yield client


@contextlib.contextmanager
def embedded_house(folder: Path, *options: str, port_base: int | None = None) -> Iterator[EmbeddedHouse]:
    """A running house that takes calls; whatever happens, nothing of it outlives the test."""
    house = EmbeddedHouse(folder, *options, port_base=port_base)
    house.start()
    try:
        yield house.await_ready()
    finally:
        house.kill_all()


@dataclass
class Onlooker:
    """A client of the test that watches tables: what it saw, and whether the streams kept their promise."""

    tables: list[BotTable]
    records: dict[str, TableRecord] = field(default_factory=dict)
    streams: dict[str, TableStream] = field(default_factory=dict)
    guards: dict[str, CardGuard] = field(default_factory=dict)
    # Every hand that was shown to everybody.
    shown: list[list[str]] = field(default_factory=list)
    house: EmbeddedHouse | None = None

    @contextlib.asynccontextmanager
    async def watching(self, house: EmbeddedHouse) -> AsyncIterator[Self]:
        self.house = house
        async with house.client("onlooker", "player") as client, asyncio.TaskGroup() as tasks:
            watching = []
            for table in self.tables:
                self.records[table.name] = TableRecord(table.name, table.rulebook)
                self.guards[table.name] = CardGuard()
                self.streams[table.name] = client.watch(table.name)
                watching.append(tasks.create_task(self._watch(table.name)))
            try:
                yield self
            finally:
                for task in watching:
                    task.cancel()

    async def _watch(self, table: str) -> None:
        async for update in self.streams[table]:
            self.guards[table].look(update, 0)
            self.records[table].see(update)
            for event in update.events:
                if event.HasField("hand_shown"):
                    self.shown.append(list(event.hand_shown.cards))

    def hands(self) -> dict[str, int]:
        """Finished hands so far, by table."""
        return {name: record.hands_finished for name, record in self.records.items()}

    async def until_all_go_on(self, before: dict[str, int], hands: int, seconds: float, after: str = "") -> None:
        """Waits until every table has finished so many more hands; `after` says what happened before, for a failure."""
        assert self.house is not None
        try:
            async with asyncio.timeout(seconds):
                while not all(now >= before[name] + hands for name, now in self.hands().items()):
                    self.house.check_running()
                    await asyncio.sleep(0.02)
        except TimeoutError:
            words = f"{after}: within {seconds} s from {before} only to {self.hands()}"
            raise AssertionError(f"{words}\n{self.house.said()}\n{self.house.logs()}") from None

    def broken_promises(self) -> list[str]:
        gaps = [str(gap) for stream in self.streams.values() for gap in stream.violations]
        leaks = [leak for guard in self.guards.values() for leak in guard.leaks]
        return gaps + leaks + [fault for record in self.records.values() for fault in record.faults]


def bot_tables(number: int, players: int) -> list[BotTable]:
    """The tables that `fivedraw up --tables N` opens."""
    return plan(number, players)


@functools.cache
def scratch_folder() -> Path:
    """A folder for what several test files share; gone when the tests are."""
    import atexit  # noqa: PLC0415 - only where it is needed

    path = Path(tempfile.mkdtemp(prefix="fivedraw-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path
