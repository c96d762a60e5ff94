"""How fast bots play and tables deal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Pace:
    """Times of one speed: a bot's time to think, from-to, and the tables' pause between hands."""

    think_least_seconds: float
    think_most_seconds: float
    hand_interval_ms: int


PACES: Final = {
    "human": Pace(0.8, 4.0, 3_000),
    "brisk": Pace(0.05, 0.4, 500),
    "flatout": Pace(0.0, 0.0, 0),
}
