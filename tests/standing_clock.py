"""A clock that stands still until a test moves it."""

from __future__ import annotations

import asyncio


class StandingClock:
    """`services.runtime.clock.Clock` whose time is what the test says."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._ms = now_ms

    def now_ms(self) -> int:
        return self._ms

    def monotonic(self) -> float:
        return self._ms / 1000

    async def sleep(self, seconds: float) -> None:
        self.advance(seconds)
        await asyncio.sleep(0)

    def advance(self, seconds: float) -> None:
        self._ms += round(seconds * 1000)
