"""The lobby: all tables as rows that anybody may see, and a stream of those that change.

Rows lie beside the tables' states, in the clear, and are written by the same commit; a hint says that one has changed.
One poll a second serves all watchers of a process.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final, TypeVar

import msgspec
from fivedraw.table.v1 import table_pb2, table_service_pb2

from services.runtime.clock import Clock
from services.runtime.errors import Fault
from services.table import words
from services.table.registry import Registry
from services.table.store import StoreUnavailableError, TableStore

T = TypeVar("T")

POLL_SECONDS: Final = 1.0
PAGE: Final = 200
CHANGES_MAX: Final = 500
# A hint is stamped by the clock of the process that gave it; what is a little older is looked at again.
OVERLAP_MS: Final = 3_000
HEARTBEAT_POLLS: Final = 10


class Filter(msgspec.Struct, frozen=True):
    """Which tables to list; what is empty or 0 lets all through."""

    rulebook: str = ""
    currency: str = ""
    seats_free: bool = False
    min_stake: int = 0
    max_stake: int = 0

    def admits(self, table: table_pb2.Table) -> bool:
        """Whether this table is to be listed."""
        return (
            (not self.rulebook or table.rulebook == self.rulebook)
            and (not self.currency or table.currency == self.currency)
            and (not self.seats_free or table.seats_free > 0)
            and table.stake_minor >= self.min_stake
            and (not self.max_stake or table.stake_minor <= self.max_stake)
        )


class Lobby:
    """Reads rows of the lobby. Every method raises `Fault` where the store is out of reach."""

    def __init__(self, registry: Registry, store: TableStore, clock: Clock) -> None:
        self._registry = registry
        self._store = store
        self._clock = clock

    async def page(self, after: str, size: int, wanted: Filter, show_closed: bool) -> tuple[list[table_pb2.Table], str]:
        """One page of tables by name, and the token of the next page. A page may hold fewer than `size`."""
        records = await self._registry.list_tables(
            after, size, rulebook=wanted.rulebook.removeprefix("rulebooks/"), show_closed=show_closed
        )
        rows = await self._rows([record.table_id for record in records])
        token = records[-1].table_id if len(records) == size else ""
        return [row for row in rows if wanted.admits(row)], token

    async def watch(self, wanted: Filter) -> AsyncIterator[table_service_pb2.WatchLobbyResponse]:
        """All tables once, then those that change; an empty message now and then says that nothing did."""
        since_ms = await self._now_ms()
        sent: dict[str, bytes] = {}
        token, complete = "", False
        while not complete:
            tables, token = await self.page(token, PAGE, wanted, show_closed=False)
            complete = not token
            yield self._fresh(tables, sent, complete)
        quiet = 0
        while True:
            await self._clock.sleep(POLL_SECONDS)
            now_ms = await self._now_ms()
            changed = await self._changed(since_ms - OVERLAP_MS)
            since_ms = now_ms
            tables = [row for row in await self._rows(changed) if wanted.admits(row) or row.name in sent]
            response = self._fresh(tables, sent, complete=False)
            quiet = 0 if response.tables else quiet + 1
            if response.tables or quiet % HEARTBEAT_POLLS == 0:
                yield response

    @staticmethod
    def _fresh(
        tables: list[table_pb2.Table], sent: dict[str, bytes], complete: bool
    ) -> table_service_pb2.WatchLobbyResponse:
        fresh = []
        for table in tables:
            row = table.SerializeToString(deterministic=True)
            if sent.get(table.name) == row:
                continue
            fresh.append(table)
            if table.state == table_pb2.TABLE_STATE_CLOSED:
                sent.pop(table.name, None)
            else:
                sent[table.name] = row
        return table_service_pb2.WatchLobbyResponse(tables=fresh, complete=complete)

    async def _rows(self, table_ids: list[str]) -> list[table_pb2.Table]:
        try:
            rows = await self._store.load_lobby(table_ids) if table_ids else []
        except StoreUnavailableError as error:
            raise Fault("SERVICE_UNAVAILABLE", "the tables' store is out of reach") from error
        now_ms = self._clock.now_ms()
        return [words.at_present(table_pb2.Table.FromString(row), now_ms) for row in rows if row]

    async def _changed(self, since_ms: int) -> list[str]:
        try:
            return await self._store.changed_lobby(since_ms, CHANGES_MAX)
        except StoreUnavailableError as error:
            raise Fault("SERVICE_UNAVAILABLE", "the tables' store is out of reach") from error

    async def _now_ms(self) -> int:
        try:
            return await self._store.now_ms()
        except StoreUnavailableError as error:
            raise Fault("SERVICE_UNAVAILABLE", "the tables' store is out of reach") from error


async def merged(streams: dict[str, AsyncIterator[T]], queue_max: int) -> AsyncIterator[tuple[str, T]]:
    """Several streams as one, each item with the name of its stream. The first that fails ends all."""
    queue: asyncio.Queue[tuple[str, T] | Fault] = asyncio.Queue(queue_max)

    async def pump(name: str, stream: AsyncIterator[T]) -> None:
        try:
            async for item in stream:
                await queue.put((name, item))
        except Fault as fault:
            await queue.put(fault)

    tasks = [asyncio.create_task(pump(name, stream)) for name, stream in streams.items()]
    try:
        while True:
            item = await queue.get()
            if isinstance(item, Fault):
                raise item
            yield item
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
