"""A `TableStore` in one process: the same contract as Redis, for simulations on virtual time.

It can lose its last commits on purpose (`checkpoint`, `roll_back`), as a failover or a restored file would.
"""

from __future__ import annotations

import asyncio
import copy
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import msgspec

from services.runtime.clock import Clock
from services.table.bus import Batch
from services.table.store import (
    CLEAR_DEADLINE,
    KEEP_DEADLINE,
    Commit,
    Committed,
    Due,
    Outage,
    Stored,
    Unwritten,
    Version,
)

SUBSCRIBER_QUEUE_MAX: Final = 1_000
SUBSCRIBER_POLL_SECONDS: Final = 1.0


class _Kept(msgspec.Struct):
    tables: dict[str, Stored] = msgspec.field(default_factory=dict)
    logs: dict[str, list[Batch]] = msgspec.field(default_factory=dict)
    due: dict[str, int] = msgspec.field(default_factory=dict)
    unwritten: dict[tuple[str, int, int], tuple[Unwritten, int]] = msgspec.field(default_factory=dict)
    lobby: dict[str, bytes] = msgspec.field(default_factory=dict)
    lobby_changes: dict[str, int] = msgspec.field(default_factory=dict)
    heartbeat_ms: int = 0
    outage: Outage = Outage()


class MemoryStore:
    """State and logs in dictionaries; time comes from the clock given."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept = _Kept()
        self._subscribers: dict[str, set[asyncio.Queue[Batch]]] = defaultdict(set)

    def checkpoint(self) -> _Kept:
        """What is stored now, to go back to later."""
        return copy.deepcopy(self._kept)

    def roll_back(self, kept: _Kept) -> None:
        """Forgets everything since the checkpoint."""
        self._kept = copy.deepcopy(kept)

    def wipe(self) -> None:
        """Forgets everything."""
        self._kept = _Kept()

    def everything(self) -> list[bytes]:
        """Every byte string stored, for a search for what should not be there."""
        blobs = [stored.blob for stored in self._kept.tables.values()]
        blobs += [entry.public for log in self._kept.logs.values() for batch in log for entry in batch.entries]
        return blobs

    async def load(self, table_id: str) -> Stored | None:
        """See `TableStore`."""
        stored = self._kept.tables.get(table_id)
        return stored and msgspec.structs.replace(stored, now_ms=self._clock.now_ms())

    async def commit(self, table_id: str, commit: Commit) -> Committed | None:
        """See `TableStore`."""
        now_ms = self._clock.now_ms()
        stored = self._kept.tables.get(table_id)
        at = stored.at if stored else Version()
        if stored and at == commit.following:
            return Committed(stored.now_ms, stored.deadline_ms)
        if at != commit.expected and at.epoch >= commit.following.epoch:
            return None
        deadline_ms = stored.deadline_ms if stored else 0
        if commit.deadline == CLEAR_DEADLINE:
            deadline_ms = 0
        elif commit.deadline != KEEP_DEADLINE:
            deadline_ms = now_ms + commit.deadline
            await self.enter_due(table_id, deadline_ms)
        self._kept.tables[table_id] = Stored(commit.following, commit.blob, commit.sequence, deadline_ms, now_ms)
        self._kept.lobby[table_id] = commit.lobby
        if commit.batch is not None:
            batch = msgspec.structs.replace(commit.batch, at_ms=now_ms)
            self._kept.logs.setdefault(table_id, []).append(batch)
            for queue in self._subscribers[table_id]:
                if not queue.full():
                    queue.put_nowait(batch)
        return Committed(now_ms, deadline_ms)

    async def read_log(self, table_id: str, epoch: int, after: int, limit: int) -> list[Batch]:
        """See `TableStore`."""
        log = self._kept.logs.get(table_id, [])
        return _bounded([batch for batch in log if batch.epoch == epoch and batch.last > after], limit)

    async def read_from(self, table_id: str, epoch: int, first: int, limit: int) -> list[Batch]:
        """See `TableStore`."""
        log = self._kept.logs.get(table_id, [])
        return _bounded([batch for batch in log if (batch.epoch, batch.last) >= (epoch, first)], limit)

    @asynccontextmanager
    async def subscribe(self, table_id: str) -> AsyncIterator[AsyncIterator[Batch | None]]:
        """See `TableStore`."""
        queue: asyncio.Queue[Batch] = asyncio.Queue(SUBSCRIBER_QUEUE_MAX)
        self._subscribers[table_id].add(queue)

        async def batches() -> AsyncIterator[Batch | None]:
            while True:
                try:
                    async with asyncio.timeout(SUBSCRIBER_POLL_SECONDS):
                        batch = await queue.get()
                except TimeoutError:
                    yield None
                    continue
                yield batch

        try:
            yield batches()
        finally:
            self._subscribers[table_id].discard(queue)

    async def claim_due(self, limit: int, hold_ms: int) -> list[Due]:
        """See `TableStore`."""
        now_ms = self._clock.now_ms()
        due = sorted((at, table_id) for table_id, at in self._kept.due.items() if at <= now_ms)[:limit]
        for _, table_id in due:
            self._kept.due[table_id] = now_ms + hold_ms
        return [Due(table_id, now_ms + hold_ms) for _, table_id in due]

    async def enter_due(self, table_id: str, due_ms: int) -> None:
        """See `TableStore`."""
        known = self._kept.due.get(table_id)
        self._kept.due[table_id] = due_ms if known is None or known > due_ms else known - 1

    async def note_due(self, table_id: str, due_ms: int) -> None:
        """See `TableStore`."""
        await self.enter_due(table_id, due_ms)

    async def settle_due(self, due: Due, hold_ms: int, next_ms: int) -> None:
        """See `TableStore`."""
        if self._kept.due.get(due.table_id) != due.due_ms:
            return
        if next_ms:
            self._kept.due[due.table_id] = next_ms
        else:
            del self._kept.due[due.table_id]

    async def mark_unwritten(self, hand: Unwritten) -> None:
        """See `TableStore`."""
        key = (hand.table_id, hand.epoch, hand.hand)
        self._kept.unwritten.setdefault(key, (hand, self._clock.now_ms()))

    async def confirm_written(self, table_id: str, epoch: int, hand: int, keep: int) -> None:
        """See `TableStore`."""
        self._kept.unwritten.pop((table_id, epoch, hand), None)
        needed = [
            (entry.first_epoch, entry.first) for entry, _ in self._kept.unwritten.values() if entry.table_id == table_id
        ]
        log = self._kept.logs.get(table_id, [])
        oldest = min(needed, default=(1 << 62, 0))
        cut = sum((batch.epoch, batch.last) < oldest for batch in log)
        del log[: max(0, min(cut, len(log) - keep))]

    async def find_unwritten(self, table_id: str, epoch: int, hand: int) -> Unwritten | None:
        """See `TableStore`."""
        found = self._kept.unwritten.get((table_id, epoch, hand))
        return found and found[0]

    async def list_unwritten(self, limit: int, older_than_ms: int) -> list[Unwritten]:
        """See `TableStore`."""
        before = self._clock.now_ms() - older_than_ms
        waiting = sorted((at, key) for key, (_, at) in self._kept.unwritten.items() if at <= before)[:limit]
        return [self._kept.unwritten[key][0] for _, key in waiting]

    async def unwritten(self) -> tuple[int, int]:
        """See `TableStore`."""
        now_ms = self._clock.now_ms()
        oldest = min((at for _, at in self._kept.unwritten.values()), default=now_ms)
        return len(self._kept.unwritten), now_ms - oldest

    async def load_lobby(self, table_ids: Sequence[str]) -> list[bytes]:
        """See `TableStore`."""
        return [self._kept.lobby.get(table_id, b"") for table_id in table_ids]

    async def hint_lobby(self, table_id: str) -> None:
        """See `TableStore`."""
        self._kept.lobby_changes[table_id] = self._clock.now_ms()

    async def changed_lobby(self, since_ms: int, limit: int) -> list[str]:
        """See `TableStore`."""
        changed = sorted((at, table_id) for table_id, at in self._kept.lobby_changes.items() if at >= since_ms)
        return [table_id for _, table_id in changed[:limit]]

    async def beat(self, gap_max_ms: int) -> Outage:
        """See `TableStore`."""
        now_ms = self._clock.now_ms()
        before, self._kept.heartbeat_ms = self._kept.heartbeat_ms, now_ms
        if before and now_ms - before > gap_max_ms:
            self._kept.outage = Outage(before, now_ms)
        return self._kept.outage

    async def now_ms(self) -> int:
        """See `TableStore`."""
        return self._clock.now_ms()


def _bounded(batches: list[Batch], limit: int) -> list[Batch]:
    taken: list[Batch] = []
    events = 0
    for batch in batches:
        if events >= limit:
            break
        taken.append(batch)
        events += len(batch.entries)
    return taken
