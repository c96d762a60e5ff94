"""Watchers of one table in this process: each has a bounded queue of commits, and a slow one is let go.

The process that commits hands its batches over at once; those of other processes come over pub/sub, which may lose
some or bring our own back. Each watcher therefore counts sequences itself, and fills a gap from the log.
"""

from __future__ import annotations

import asyncio
from itertools import chain
from typing import Final

from fivedraw.table.v1 import table_service_pb2

from services.table import metrics
from services.table.bus import Batch, public_event

WATCHER_QUEUE_MAX: Final = 256


class Offer:
    """A commit on its way to the watchers here. What everybody may see is made once for all who see no more."""

    __slots__ = ("_for_all", "_players", "batch")

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self._players = {private.player for entry in batch.entries for private in entry.private}
        self._for_all: table_service_pb2.WatchTableResponse | None = None

    def is_private(self, player: str) -> bool:
        """Whether some event of it has a form of its own for this player."""
        return player in self._players

    def for_all(self) -> table_service_pb2.WatchTableResponse:
        """The whole commit as everybody sees it. One message for all watchers: nobody may change it."""
        if self._for_all is None:
            batch = self.batch
            events = [public_event(entry, batch.at_ms) for entry in batch.entries]
            self._for_all = table_service_pb2.WatchTableResponse(events=events)
        return self._for_all


class Watcher:
    """One stream's queue. `overflowed` is set when it was too slow; nothing more is queued then.

    `player` is who watches, empty for the house's own people.
    """

    def __init__(self, player: str, is_observer: bool) -> None:
        self.player = player
        self.is_observer = is_observer
        self.queue: asyncio.Queue[Offer] = asyncio.Queue(WATCHER_QUEUE_MAX)
        self.overflowed = False

    def offer(self, offer: Offer) -> None:
        """Queues a commit, or notes that there was no room."""
        if self.overflowed:
            return
        try:
            self.queue.put_nowait(offer)
        except asyncio.QueueFull:
            self.overflowed = True
            metrics.WATCHERS_DROPPED.inc()


class Fanout:
    """The watchers of one table."""

    def __init__(self) -> None:
        self._players: set[Watcher] = set()
        self._observers: set[Watcher] = set()

    @property
    def is_empty(self) -> bool:
        """Whether nobody watches here."""
        return not self._players and not self._observers

    @property
    def observers(self) -> set[str]:
        """The players who watch here without a seat; the house's own people are not counted."""
        return {watcher.player for watcher in self._observers if watcher.player}

    def add(self, player: str, is_observer: bool = False) -> Watcher:
        """A new watcher; it gets every commit offered from now on."""
        watcher = Watcher(player, is_observer)
        self._watchers_like(watcher).add(watcher)
        metrics.WATCHERS.inc()
        return watcher

    def remove(self, watcher: Watcher) -> None:
        """Ends a watcher."""
        self._watchers_like(watcher).discard(watcher)
        metrics.WATCHERS.dec()

    def offer(self, batch: Batch) -> None:
        """Hands a commit to everybody, first to those who play: their clocks run, and observers may be many."""
        offer = Offer(batch)
        for watcher in chain(self._players, self._observers):
            watcher.offer(offer)

    def _watchers_like(self, watcher: Watcher) -> set[Watcher]:
        return self._observers if watcher.is_observer else self._players
