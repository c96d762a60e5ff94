"""Commits for the stores' tests: what is in them does not matter, where they stand does."""

from __future__ import annotations

import itertools

from services.table.bus import Batch, Entry, Private
from services.table.store import KEEP_DEADLINE, Commit, Committed, TableStore, Version

TABLE = "oak"

_ids = itertools.count(1)


def batch(epoch: int, first: int, count: int) -> Batch:
    """A batch of `count` events; each says where it stands, and the first has a private form."""
    entries = [Entry(f"{epoch}.{first + place}".encode()) for place in range(count)]
    entries[0] = Entry(entries[0].public, (Private(2, "players/ann", b"sealed\x00\xff"),))
    return Batch(epoch, first, tuple(entries))


class Line:
    """A writer's idea of where a table stands. Two of them on one table are two processes."""

    def __init__(self, store: TableStore, table: str = TABLE, at: Version | None = None, sequence: int = 0) -> None:
        self.store = store
        self.table = table
        self.at = at or Version()
        self.sequence = sequence

    def next(self, events: int = 1, *, epoch: int | None = None, deadline: int = KEEP_DEADLINE) -> Commit:
        """The commit that would follow."""
        epoch = epoch or self.at.epoch or 1
        is_same = epoch == self.at.epoch
        first = self.sequence + 1 if is_same else 1
        last = first + events - 1
        version = self.at.version + 1 if is_same else 1
        following = Version(epoch, version, f"commit-{next(_ids)}")
        blob = f"state {epoch}.{last}".encode()
        return Commit(self.at, following, blob, last, batch(epoch, first, events) if events else None, deadline)

    async def write(self, events: int = 1, **options) -> Committed | None:
        """Commits, and goes on from there if it was taken."""
        commit = self.next(events, **options)
        committed = await self.store.commit(self.table, commit)
        if committed is not None:
            self.at, self.sequence = commit.following, commit.sequence
        return committed
