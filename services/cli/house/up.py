"""`fivedraw up`: starts an embedded house, lets bots play in it, and ends it in order."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from fivedraw_client import Client, Endpoints, FivedrawError

from services.cli.bots.crew import Crew, plan
from services.cli.bots.pace import PACES
from services.cli.house import figures as house_figures
from services.cli.house.display import Display
from services.cli.house.figures import Figures
from services.cli.house.folder import Folder, FolderError
from services.cli.house.keys import HouseKeys, Minter
from services.cli.house.logs import ErrorTail
from services.cli.house.ports import Ports, address
from services.cli.house.programs import programs
from services.cli.house.readiness import await_ready, given_up
from services.cli.house.supervision import Supervisor

LOOK_SECONDS: Final = 0.5
LEDGER_EVERY_SECONDS: Final = 2.0
AUDITOR: Final = "house-auditor"


@dataclass(frozen=True, slots=True)
class UpOptions:
    """What to start. `hands` and `seconds` of 0 mean without end; `seed` steers the bots, never the cards.

    `seed_delay_ms` counts from a hand's end until auditors may read it in full; None is the services' default.
    """

    folder: Folder
    ports: Ports
    tables: int
    players: int
    rulebooks: Sequence[str]
    hands: int
    seconds: float
    speed: str
    log_level: str
    seed: int
    seed_delay_ms: int | None = None


class House:
    """One run of an embedded house."""

    def __init__(self, options: UpOptions, display: Display) -> None:
        self._options = options
        self._display = display
        self._figures = Figures()
        self._ending = asyncio.Event()
        self._started = time.monotonic()

    async def run(self) -> Figures:
        """Runs until a signal, the hands or the time are over, or a process is given up.

        Raises `FolderError` when the house cannot be started. What broke is in the figures' `faults`.
        """
        folder = self._options.folder
        folder.make()
        with folder.held():
            keys = HouseKeys.load_or_make(folder)
            options = self._options
            house = programs(
                folder, keys, options.ports, log_level=options.log_level, seed_delay_ms=options.seed_delay_ms
            )
            supervisor = Supervisor(folder, house)
            supervisor.end_leftover()
            taken = self._options.ports.taken()
            if taken:
                raise FolderError(f"port {taken[0]} is taken: stop what listens there, or choose another --port-base")
            with self._signals():
                return await self._run_processes(supervisor, Minter(keys))

    async def _run_processes(self, supervisor: Supervisor, mint: Minter) -> Figures:
        errors = ErrorTail(self._options.folder.logs)
        supervisor.start()
        try:
            self._options.folder.remember_ports(_ports_of(self._options.ports))
            await self._until_ready(supervisor)
            if not self._ending.is_set():
                await asyncio.to_thread(supervisor.start_late)
                self._say_where()
                await self._play(supervisor, mint, errors)
        finally:
            self._display.say("stopping: bots, then services, Redis last")
            if not await asyncio.to_thread(supervisor.stop):
                self._figures.faults.append("the processes did not end in time and were killed")
        self._figures.restarts = supervisor.restarts()
        self._figures.errors = errors.look()
        return self._figures

    async def _until_ready(self, supervisor: Supervisor) -> None:
        ports = self._options.ports
        services = {f"table {number}": port for number, port in enumerate(ports.tables, 1)}
        services |= {"deck": ports.deck, "wallet": ports.wallet, "history": ports.history}
        self._display.say(f"starting Redis and the services; their logs are in {self._options.folder.logs}")
        ready = asyncio.create_task(await_ready(supervisor, services))
        ending = asyncio.create_task(self._ending.wait())
        try:
            await asyncio.wait({ready, ending}, return_when=asyncio.FIRST_COMPLETED)
            if ready.done():
                ready.result()
        finally:
            for task in (ready, ending):
                task.cancel()
            await asyncio.gather(ready, ending, return_exceptions=True)

    async def _play(self, supervisor: Supervisor, mint: Minter, errors: ErrorTail) -> None:
        options = self._options
        ports = options.ports
        endpoints = [Endpoints(address(table), address(ports.wallet), address(ports.history)) for table in ports.tables]
        crew = Crew(
            endpoints,
            mint,
            plan(options.tables, options.players, options.rulebooks),
            pace=PACES[options.speed],
            seed=options.seed,
        )
        auditor = Client(endpoints[0], lambda: mint(AUDITOR, "auditor"))
        playing = asyncio.create_task(self._crew_plays(crew))
        try:
            await self._look_on(supervisor, crew, auditor, errors, playing)
        finally:
            playing.cancel()
            await asyncio.gather(playing, return_exceptions=True)
        try:
            house_figures.take_crew(self._figures, crew)
            await house_figures.verify(self._figures, auditor, crew)
        except FivedrawError as error:
            self._figures.faults.append(f"the promises could not be checked: {error}")
        finally:
            await crew.close()
            await auditor.close()

    async def _crew_plays(self, crew: Crew) -> None:
        await crew.open()
        self._display.say(f"{len(crew.bots)} bots play at {len(crew.records)} tables")
        await crew.run()

    async def _look_on(
        self, supervisor: Supervisor, crew: Crew, auditor: Client, errors: ErrorTail, playing: asyncio.Task[None]
    ) -> None:
        ledger_at = float("-inf")
        self._started = time.monotonic()
        while not self._ending.is_set():
            now = time.monotonic()
            figures = self._figures
            figures.seconds = round(now - self._started, 3)
            house_figures.take_crew(figures, crew)
            if now - ledger_at >= LEDGER_EVERY_SECONDS:
                ledger_at = now
                # While the wallet is being started again, the last figures stand.
                with contextlib.suppress(FivedrawError):
                    house_figures.take_ledger(figures, await auditor.ledger_summary())
                await asyncio.to_thread(self._look_at_processes, supervisor, errors)
            self._display.update(figures)
            if playing.done():
                # Bots play without end: whatever ended them is a fault.
                figures.faults.append(f"the bots ended: {playing.exception()!r}")
            if self._is_over(figures):
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._ending.wait()

    def _look_at_processes(self, supervisor: Supervisor, errors: ErrorTail) -> None:
        if not supervisor.is_alive():
            self._figures.faults.append("the process manager ended")
            return
        lost = given_up(supervisor)
        if lost:
            self._figures.faults.append(f"{', '.join(lost)} cannot be started any more: see the logs")
        self._figures.restarts = supervisor.restarts()
        self._figures.errors = errors.look()

    def _is_over(self, figures: Figures) -> bool:
        options = self._options
        if figures.faults:
            return True
        if options.hands and figures.hands >= options.hands:
            return True
        return bool(options.seconds) and figures.seconds >= options.seconds

    def _say_where(self) -> None:
        ports = self._options.ports
        data = self._options.folder.root
        tables = ", ".join(address(port) for port in ports.tables)
        self._display.say(f"tables {tables}   wallet {address(ports.wallet)}   history {address(ports.history)}")
        self._display.say(f"operators' console: http://{address(ports.console)}")
        token = f"{sys.argv[0]} token --data {data}"
        self._display.say(f"to sign in there: {token} --subject olga --role operator")
        self._display.say(f"a player's token: {token} --subject alice --role player")
        self._display.say(f"data and logs: {data}")

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(each, self._ending.set)
        try:
            yield
        finally:
            for each in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(each)


def _ports_of(ports: Ports) -> dict[str, object]:
    return {"tables": ports.tables, "deck": ports.deck, "wallet": ports.wallet, "history": ports.history}
