"""Whether a recorded history of concurrent calls can be put into one line: the search of Wing and Gong.

Every call took effect at one moment between its start and its end, or it did not. The search takes, again and again,
one of the calls that started before any other of those left had ended, lets a sequential model answer it, and goes
back where the model's answer is not the one that was recorded. A call whose answer never came may have taken effect
at any time after its start, or never. (J. Wing, C. Gong: Testing and verifying concurrent objects, 1993; the memory of
calls taken and state, by which nothing is searched twice, is G. Lowe's, 2017.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

CALLS_MAX = 400
STEPS_MAX = 200_000

UNKNOWN = "unknown"


@dataclass(frozen=True)
class Call:
    """What was asked and answered (`UNKNOWN` where no answer came), and when, by one clock for all."""

    asked: tuple
    answer: object
    start: float
    end: float


Model = Callable[[Hashable, tuple], tuple[Hashable, object]]
"""`model(state, asked)`: the state afterwards and the answer."""


class SearchTooLongError(RuntimeError):
    """Neither a line nor its absence was found within the bounds; the history must be shorter."""


def line_of(history: Sequence[Call], model: Model, state: Hashable, *, steps_max: int = STEPS_MAX) -> list[Call] | None:
    """The calls in an order in which the model answers as recorded, or None if there is none.

    Calls without an answer that are not in the line took no effect. Raises `SearchTooLongError`.
    """
    calls = sorted(history, key=lambda call: call.start)
    if len(calls) > CALLS_MAX:
        raise SearchTooLongError(f"{len(calls)} calls, more than {CALLS_MAX}")
    needed = sum(1 << at for at, call in enumerate(calls) if call.answer != UNKNOWN)
    ends = [math.inf if call.answer == UNKNOWN else call.end for call in calls]
    seen: set[tuple[int, Hashable]] = set()
    # Each frame: the calls taken as bits, the state after them, those to try next, the call that led here.
    frames = [(0, state, _next(calls, ends, 0), -1)]
    for _ in range(steps_max):
        if not frames:
            return None
        taken, state, candidates, _ = frames[-1]
        if taken & needed == needed:
            return [calls[frame[3]] for frame in frames[1:]]
        if not candidates:
            frames.pop()
            continue
        at = candidates.pop()
        after, answer = model(state, calls[at].asked)
        if calls[at].answer not in (UNKNOWN, answer):
            continue
        now = taken | 1 << at
        if (now, after) not in seen:
            seen.add((now, after))
            frames.append((now, after, _next(calls, ends, now), at))
    raise SearchTooLongError(f"{len(calls)} calls: no end after {steps_max} steps")


def _next(calls: Sequence[Call], ends: Sequence[float], taken: int) -> list[int]:
    """The calls left that started before every call left had ended; the earliest to end is tried first."""
    left = [at for at in range(len(calls)) if not taken >> at & 1]
    first_end = min((ends[at] for at in left), default=math.inf)
    return sorted((at for at in left if calls[at].start <= first_end), key=lambda at: -ends[at])
