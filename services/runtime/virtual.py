"""Virtual time: an event loop whose clock jumps to the next timer whenever nothing else is ready.

A whole house can then live through hours in seconds, in one process and always in the same order. Nothing in it may
wait for the outside (sockets, threads): with no timer left either, such a wait is a deadlock and is reported as one.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

DEFAULT_START_MS = 1_700_000_000_000


class VirtualDeadlockError(RuntimeError):
    """Every task waits, and no timer is left that could wake one."""


class _JumpingSelector(selectors.SelectSelector):
    """Instead of sleeping until the next timer, tells the loop that the time has passed."""

    def __init__(self) -> None:
        super().__init__()
        self.loop: VirtualTimeLoop | None = None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or self.loop is None:
            return ready
        if timeout is None:
            raise VirtualDeadlockError("every task waits and no timer is set")
        if timeout > 0:
            self.loop.advance(timeout)
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An asyncio loop on virtual time, which starts at 0 seconds."""

    def __init__(self) -> None:
        selector = _JumpingSelector()
        self._virtual_seconds = 0.0
        super().__init__(selector)
        selector.loop = self
        # The default resolution (1 ns) is finer than a double holds after some months of virtual time.
        self._clock_resolution = 1e-6

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._virtual_seconds

    def advance(self, seconds: float) -> None:
        """Moves virtual time forward; due timers run on the loop's next turn."""
        self._virtual_seconds += seconds


class VirtualClock:
    """A `Clock` on a virtual loop; wall time starts at `start_ms` when the loop is made."""

    def __init__(self, loop: VirtualTimeLoop, start_ms: int = DEFAULT_START_MS) -> None:
        self._loop = loop
        self._start_ms = start_ms

    def now_ms(self) -> int:
        """Virtual wall time in milliseconds since the Unix epoch."""
        return self._start_ms + int(self._loop.time() * 1000)

    def monotonic(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        """Pauses the calling task in virtual time."""
        await asyncio.sleep(seconds)


def run_virtual(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end on a fresh virtual loop, ends what it left running, and returns its result.

    Inside, `asyncio.get_running_loop()` is the `VirtualTimeLoop` from which a `VirtualClock` is made.
    """
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(coroutine)
