"""All tables of this process: a bounded cache of hosts, the sweeper of due clocks and effects, and the fan-in."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from itertools import islice
from typing import Final

from sqlalchemy.exc import DBAPIError

from services.rules.rulebook import Rulebook, RulebookInvalid, list_rulebooks
from services.runtime import telemetry
from services.runtime.database import DatabaseBusyError
from services.runtime.errors import Fault
from services.table import asks, metrics
from services.table.census import Census
from services.table.host import Host
from services.table.parts import Parts
from services.table.registry import NewTable, TableRecord
from services.table.state import TableState
from services.table.store import Due, Outage, StoreUnavailableError, TableStore
from services.table.wanted import wanted_of

HOSTS_MAX: Final = 5_000
SWEEP_SECONDS: Final = 0.1
SWEEP_BATCH: Final = 200
SWEEPS_AT_ONCE: Final = 32
HOLD_MS: Final = 2_000
BEAT_SECONDS: Final = 1.0
OUTAGE_MS: Final = 3_000
SCAN_SECONDS: Final = 30.0
TEND_SECONDS: Final = 2.0
SCAN_PAGE: Final = 200
UNWRITTEN_SECONDS: Final = 2.0
RESUBSCRIBE_SECONDS: Final = 0.5
RESUBSCRIBE_MAX_SECONDS: Final = 5.0


class House:
    """The tables as this process serves them. `start` begins the sweeps, `stop` ends them."""

    def __init__(self, parts: Parts, rulebooks: tuple[Rulebook, ...] | None = None) -> None:
        self.parts = parts
        self.rulebooks = {book.name: book for book in (rulebooks or list_rulebooks())}
        self._hosts: OrderedDict[str, Host] = OrderedDict()
        self._listeners: dict[str, asyncio.Task[None]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._sweeps = asyncio.Semaphore(SWEEPS_AT_ONCE)
        self._outage = Outage()
        self._census = Census(parts.clock)
        self._log = telemetry.logger("table.house")

    @property
    def store(self) -> TableStore:
        """Where the tables are kept."""
        return self.parts.store

    @property
    def tables_at_hand(self) -> int:
        """How many tables this process has in its cache."""
        return len(self._hosts)

    async def host(self, table_id: str) -> Host:
        """The host of a table. Raises `TABLE_NOT_FOUND`."""
        host = self._hosts.get(table_id)
        if host is None:
            await self.parts.registry.get_table(table_id)
            host = self._hosts.setdefault(table_id, Host(table_id, self.parts))
            self._hosts.move_to_end(table_id)
            for evicted in self._take_idle():
                await evicted.close()
            metrics.TABLES.set(len(self._hosts))
        else:
            self._hosts.move_to_end(table_id)
        return host

    async def open_table(self, new: NewTable) -> TableState:
        """Opens a table, or finds the one that the same request opened. Raises `Fault`."""
        self.check_rulebook(new.rulebook, new.overrides)
        record = await self.parts.registry.create_table(new, self.parts.clock.now_ms())
        host = await self.host(record.table_id)
        state, _ = await host.view_state()
        return state

    def check_rulebook(self, name: str, overrides: Mapping[str, int | str | bool]) -> Rulebook:
        """The rulebook with these overrides. Raises `RULEBOOK_NOT_FOUND`, or `RULEBOOK_INVALID` with every fault."""
        book = self.rulebooks.get(name)
        if book is None:
            known = ", ".join(sorted(self.rulebooks))
            raise Fault("RULEBOOK_NOT_FOUND", f"there is no rulebook {name!r}; there are {known}", known=known)
        try:
            return book.with_options(overrides)
        except RulebookInvalid as invalid:
            facts = {f"fault.{fault.option}": f"{fault.wrong}; {fault.right}" for fault in invalid.faults}
            raise Fault("RULEBOOK_INVALID", str(invalid), **facts) from None

    async def ask_all(self, ask: asks.AnyAsk, within_seconds: float) -> tuple[int, list[str]]:
        """Asks every open table the same; how many took it in, and the names of those that did not."""
        places = asyncio.Semaphore(SWEEPS_AT_ONCE)
        unreached: list[str] = []

        async def ask_one(table_id: str) -> bool:
            async with places:
                try:
                    await (await self.host(table_id)).ask(ask, within_seconds)
                except Fault:
                    unreached.append(f"tables/{table_id}")
                    return False
                return True

        reached, after = 0, ""
        while True:
            page = await self.parts.registry.list_tables(after, SCAN_PAGE)
            reached += sum(await asyncio.gather(*(ask_one(record.table_id) for record in page)))
            if len(page) < SCAN_PAGE:
                return reached, unreached
            after = page[-1].table_id

    def _take_idle(self) -> list[Host]:
        """Takes out of the cache what it holds too many of, the longest unused first; what is in use stays."""
        oldest = list(islice(self._hosts, max(0, len(self._hosts) - HOSTS_MAX)))
        idle = [each for each in oldest if self._hosts[each].is_idle and each not in self._listeners]
        return [self._hosts.pop(each) for each in idle]

    def listen(self, host: Host) -> None:
        """Takes in what other processes publish of a table, as long as somebody watches it here."""
        if host.table_id not in self._listeners:
            task = asyncio.create_task(self._listen(host), name=f"listener of {host.table_id}")
            self._listeners[host.table_id] = task

    async def _listen(self, host: Host) -> None:
        pause = RESUBSCRIBE_SECONDS
        try:
            while not host.fanout.is_empty:
                try:
                    async with self.store.subscribe(host.table_id) as batches:
                        async for batch in batches:
                            if batch is not None:
                                host.on_published(batch)
                            pause = RESUBSCRIBE_SECONDS
                            if host.fanout.is_empty:
                                # Looked at again after the unsubscription: somebody may have come meanwhile.
                                break
                except StoreUnavailableError:
                    # Watchers notice by their heartbeats what is missed meanwhile.
                    await self.parts.clock.sleep(pause)
                    pause = min(2 * pause, RESUBSCRIBE_MAX_SECONDS)
        finally:
            del self._listeners[host.table_id]

    async def start(self, tend: Callable[[], Awaitable[None]] | None = None) -> None:
        """Begins to sweep, and to `tend` to the templates where that is given."""
        self._tasks = [
            asyncio.create_task(self._repeat(self._sweep, SWEEP_SECONDS), name="sweep"),
            asyncio.create_task(self._repeat(self._beat, BEAT_SECONDS), name="heartbeat"),
            asyncio.create_task(self._repeat(self._scan, SCAN_SECONDS), name="scan"),
            asyncio.create_task(self._repeat(self._look_at_histories, UNWRITTEN_SECONDS), name="histories"),
        ]
        if tend is not None:
            self._tasks.append(asyncio.create_task(self._repeat(tend, TEND_SECONDS), name="templates"))

    async def stop(self) -> None:
        """Ends sweeps, listeners and drivers; what they were doing is taken up by another process or the next one."""
        tasks = [*self._tasks, *self._listeners.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(host.close() for host in self._hosts.values()))

    async def _repeat(self, what: Callable[[], Awaitable[None]], seconds: float) -> None:
        while True:
            try:
                await what()
            except (StoreUnavailableError, Fault, DBAPIError, DatabaseBusyError):
                # Redis or SQL is away: the same again after a pause.
                metrics.SWEEPS_FAILED.inc()
                await self.parts.clock.sleep(BEAT_SECONDS)
            await self.parts.clock.sleep(seconds)

    async def _look_at_histories(self) -> None:
        waiting, oldest_ms = await self.store.unwritten()
        metrics.UNWRITTEN.set(waiting)
        metrics.UNWRITTEN_SECONDS.set(oldest_ms / 1000)

    async def _beat(self) -> None:
        self._outage = await self.store.beat(OUTAGE_MS)

    async def _sweep(self) -> None:
        metrics.SWEEPS.inc()
        due = await self.store.claim_due(SWEEP_BATCH, HOLD_MS)
        # All of them to their end: a sweep that is cancelled, or meets a broken store, leaves none behind.
        results = await asyncio.gather(*(self._sweep_one(each) for each in due), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _sweep_one(self, due: Due) -> None:
        async with self._sweeps:
            try:
                host = await self.host(due.table_id)
                next_ms = await host.sweep(self._outage)
            except Fault as fault:
                if fault.reason != "TABLE_NOT_FOUND":
                    # It stays claimed, and comes up again when the hold is over.
                    metrics.SWEEPS_FAILED.inc()
                    return
                next_ms = 0
            except StoreUnavailableError:
                raise
            except Exception as error:  # noqa: BLE001 - one broken table must not end the clocks of all others
                metrics.SWEEPS_FAILED.inc()
                self._log.error("table cannot be swept", table=due.table_id, **telemetry.where(error))
                return
            await self.store.settle_due(due, HOLD_MS, next_ms)

    async def _scan(self) -> None:
        """Looks at every open table, slowly: for clocks and effects that no index knows, and ledgers that are ahead."""
        after = ""
        while True:
            page = await self.parts.registry.list_tables(after, SCAN_PAGE)
            for record in page:
                try:
                    await self._scan_one(record)
                except Fault:
                    # Its peers are away, or it is being rebuilt elsewhere: its turn comes again with the next scan.
                    metrics.SWEEPS_FAILED.inc()
            if len(page) < SCAN_PAGE:
                self._census.show()
                return
            after = page[-1].table_id

    async def _scan_one(self, record: TableRecord) -> None:
        table_id = record.table_id
        stored = await self.store.load(table_id)
        host = await self.host(table_id)
        state, deadline_ms = await host.view_state(fresh=False)
        self._census.take(state, has_time=deadline_ms > host.now_ms())
        if stored is None or stored.at.epoch != record.epoch or wanted_of(state) != record.wanted:
            await host.check()
        elif stored.deadline_ms:
            await self.store.enter_due(table_id, stored.deadline_ms)
            return
        await self.store.enter_due(table_id, await self.store.now_ms())
