"""Time, injected: whoever needs the hour or a pause takes a `Clock`, so that a house can run on virtual time."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """What the services may know of time."""

    def now_ms(self) -> int:
        """Wall time in milliseconds since the Unix epoch; may step when the machine's clock is set."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary start; never goes back. For measuring and for limits."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Pauses the calling task."""
        ...


class SystemClock:
    """The machine's own time."""

    def now_ms(self) -> int:
        """Wall time in milliseconds since the Unix epoch."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds of the machine's monotonic clock."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Pauses the calling task in real time."""
        await asyncio.sleep(seconds)
