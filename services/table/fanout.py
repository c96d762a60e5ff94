"""Watchers of one table in this process: each has a bounded queue of commits, and a slow one is let go.

The process that commits hands its batches over at once; those of other processes come over pub/sub, which may lose
some or bring our own back. Each watcher therefore counts sequences itself, and fills a gap from the log.
"""

from __future__ import annotations

import asyncio
from typing import Final

from services.table import metrics
from services.table.bus import Batch

WATCHER_QUEUE_MAX: Final = 256


class Watcher:
    """One stream's queue. `overflowed` is set when it was too slow; nothing more is queued then."""

    def __init__(self, is_observer: bool) -> None:
        self.is_observer = is_observer
        self.queue: asyncio.Queue[Batch] = asyncio.Queue(WATCHER_QUEUE_MAX)
        self.overflowed = False

    def offer(self, batch: Batch) -> None:
        """Queues a batch, or notes that there was no room."""
        if self.overflowed:
            return
        try:
            self.queue.put_nowait(batch)
        except asyncio.QueueFull:
            self.overflowed = True
            metrics.WATCHERS_DROPPED.inc()


class Fanout:
    """The watchers of one table."""

    def __init__(self) -> None:
        self._watchers: set[Watcher] = set()

    @property
    def is_empty(self) -> bool:
        """Whether nobody watches here."""
        return not self._watchers

    @property
    def observers(self) -> int:
        """How many watch here without a seat."""
        return sum(watcher.is_observer for watcher in self._watchers)

    def add(self, is_observer: bool = False) -> Watcher:
        """A new watcher; it gets every batch offered from now on."""
        watcher = Watcher(is_observer)
        self._watchers.add(watcher)
        metrics.WATCHERS.inc()
        return watcher

    def remove(self, watcher: Watcher) -> None:
        """Ends a watcher."""
        self._watchers.discard(watcher)
        metrics.WATCHERS.dec()

    def offer(self, batch: Batch) -> None:
        """Hands a batch to everybody."""
        for watcher in self._watchers:
            watcher.offer(batch)
