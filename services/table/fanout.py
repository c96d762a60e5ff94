"""Watchers of one table in this process: each has a bounded queue of commits, and a slow one is let go.

The process that commits hands its batches over at once; those of other processes come over pub/sub, which may lose
some or bring our own back. Each watcher therefore counts sequences itself, and fills a gap from the log.

Those who play are told of each commit as it happens, since their clocks run. Those who only watch, who may be many,
are told together a moment later of all that happened in it, so that they do not delay the players' answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from fivedraw.table.v1 import table_service_pb2

from services.table import metrics
from services.table.bus import Batch, public_event

WATCHER_QUEUE_MAX: Final = 256

# For how long, and for how many commits, observers wait to be told of them together.
GATHER_SECONDS: Final = 0.1
GATHER_MAX: Final = 32


class Offer:
    """Commits that follow on from each other, on their way to the watchers here, in one epoch.

    What everybody may see is made once for all who see no more.
    """

    __slots__ = ("_for_all", "batches", "players")

    def __init__(self, batches: Sequence[Batch]) -> None:
        self.batches = batches
        self.players = {private.player for batch in batches for entry in batch.entries for private in entry.private}
        self._for_all: table_service_pb2.WatchTableResponse | None = None

    @property
    def epoch(self) -> int:
        """The epoch of all of them."""
        return self.batches[0].epoch

    @property
    def first(self) -> int:
        """The first event's sequence."""
        return self.batches[0].first

    @property
    def last(self) -> int:
        """The last event's sequence."""
        return self.batches[-1].last

    def is_private(self, player: str) -> bool:
        """Whether some event has a form of its own for this player."""
        return player in self.players

    def for_all(self) -> table_service_pb2.WatchTableResponse:
        """All of it as everybody sees it. One message for all watchers: nobody may change it."""
        if self._for_all is None:
            events = [public_event(entry, batch.at_ms) for batch in self.batches for entry in batch.entries]
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
        # What observers are yet to be told, and when they will be.
        self._gathered: list[Batch] = []
        self._telling: asyncio.TimerHandle | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nobody watches here."""
        return not self._players and not self._observers

    @property
    def observers(self) -> set[str]:
        """The players who watch here without a seat; the house's own people are not counted."""
        return {watcher.player for watcher in self._observers if watcher.player}

    def add(self, player: str, is_observer: bool = False) -> Watcher:
        """A new watcher; it gets every commit offered from now on, and may get some of just before."""
        watcher = Watcher(player, is_observer)
        self._watchers_like(watcher).add(watcher)
        metrics.WATCHERS.inc()
        return watcher

    def remove(self, watcher: Watcher) -> None:
        """Ends a watcher."""
        self._watchers_like(watcher).discard(watcher)
        metrics.WATCHERS.dec()

    def offer(self, batch: Batch) -> None:
        """Hands a commit to everybody: to those who play at once, to observers with the next that they are told."""
        offer = Offer((batch,))
        self._promote(offer)
        for watcher in self._players:
            watcher.offer(offer)
        if not self._observers:
            return
        self._gathered.append(batch)
        if len(self._gathered) >= GATHER_MAX:
            self._tell_observers()
        elif self._telling is None:
            self._telling = asyncio.get_running_loop().call_later(GATHER_SECONDS, self._tell_observers)

    def _promote(self, offer: Offer) -> None:
        """An observer for whom a commit holds something of its own has taken a seat since, and plays."""
        seated = {watcher for watcher in self._observers if offer.is_private(watcher.player)}
        if not seated:
            return
        # What they are yet to be told comes first.
        self._tell_observers()
        self._observers -= seated
        for watcher in seated:
            watcher.is_observer = False
        self._players |= seated

    def _tell_observers(self) -> None:
        if self._telling is not None:
            self._telling.cancel()
            self._telling = None
        gathered, self._gathered = self._gathered, []
        for batches in _runs(gathered):
            offer = Offer(batches)
            for watcher in self._observers:
                watcher.offer(offer)

    def _watchers_like(self, watcher: Watcher) -> set[Watcher]:
        return self._observers if watcher.is_observer else self._players


def _runs(batches: Iterable[Batch]) -> Iterator[list[Batch]]:
    """Those that follow on from each other, together."""
    run: list[Batch] = []
    for batch in batches:
        if run and (batch.epoch, batch.first) != (run[-1].epoch, run[-1].last + 1):
            yield run
            run = []
        run.append(batch)
    if run:
        yield run
