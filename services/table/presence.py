"""Who is connected to a table in this process: its streams by player, and what the table is told of them.

A player may have streams in several processes, each of which counts its own. The one whose last stream ended says so;
one that has another stream of that player contradicts, once for each time that it hears so.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

from services.runtime.clock import Clock
from services.runtime.errors import Fault
from services.table import metrics

RECONNECT_SECONDS: Final = 2.0

# Tells the table that a player's connection is there, or not.
Tell = Callable[[str, bool], Awaitable[object]]


class Presence:
    """Counts streams. A connection that comes back at once is not worth telling; after `close` nothing is told."""

    def __init__(self, name: str, clock: Clock, tell: Tell) -> None:
        self._name = name
        self._clock = clock
        self._tell = tell
        self._streams: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False

    @property
    def is_idle(self) -> bool:
        """Whether nothing is about to be told."""
        return not self._tasks

    def arrived(self, player: str) -> None:
        """A stream of this player began."""
        self._streams[player] += 1
        self._note(player)

    def departed(self, player: str) -> None:
        """A stream of this player ended."""
        self._streams[player] -= 1
        self._note(player)

    def told_absent(self, player: str) -> None:
        """The table has this player for disconnected: whoever has a stream of theirs says that it is not so."""
        if self._streams[player] > 0:
            self._note(player)

    async def close(self) -> None:
        """Ends what is about to be told, for good: streams that end later end unnoticed."""
        self._is_closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _note(self, player: str) -> None:
        if self._is_closed:
            return
        task = asyncio.create_task(self._told(player), name=f"presence at {self._name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _told(self, player: str) -> None:
        if not self._streams[player]:
            await self._clock.sleep(RECONNECT_SECONDS)
        is_here = self._streams[player] > 0
        if not is_here:
            self._streams.pop(player, None)
        try:
            await self._tell(player, is_here)
        except Fault as fault:
            metrics.REFUSALS.labels(fault.reason).inc()
