"""Repeats calls that are safe to repeat: reads, and calls whose id makes the second one a no-op."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from fivedraw_client.errors import FivedrawError, OverloadedError, UnavailableError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how slowly: the pause doubles from `first_delay` to `last_delay` seconds, with full jitter.

    The default spans about 20 seconds, in which a casino that restarts a process of its own is back.
    """

    attempts: int = 14
    first_delay: float = 0.05
    last_delay: float = 3.0

    def delay(self, attempt: int, rng: random.Random) -> float:
        """The pause before the attempt that follows number `attempt` (from 1), in seconds."""
        longest: float = min(self.last_delay, self.first_delay * 2.0 ** min(attempt - 1, 30))
        return rng.uniform(longest / 2, longest)


def is_passing(error: FivedrawError) -> bool:
    """Whether the same call may succeed a moment later."""
    if isinstance(error, OverloadedError):
        return error.reason in {"QUEUE_FULL", ""}
    return isinstance(error, UnavailableError)


async def repeat(call: Callable[[], Awaitable[T]], policy: RetryPolicy, rng: random.Random) -> T:
    """Awaits `call()` until it succeeds, fails for good, or the attempts are used up; then its last error is raised."""
    attempt = 0
    while True:
        attempt += 1
        try:
            return await call()
        except FivedrawError as error:
            if attempt >= policy.attempts or not is_passing(error):
                raise
        await asyncio.sleep(policy.delay(attempt, rng))
