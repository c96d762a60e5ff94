"""Counts the tables of the house while a scan goes over them, and shows the counts when it is through."""

from __future__ import annotations

from collections import Counter

from services.runtime.clock import Clock
from services.table import metrics
from services.table.state import TableState


class Census:
    """One process's count of all tables that are not closed; each process of the house counts the same ones."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tables: Counter[tuple[str, str]] = Counter()
        self._seated: Counter[str] = Counter()
        # By table with a hand being played: where it stood when it last moved, and when that was seen first.
        self._moved: dict[str, tuple[int, int, float]] = {}
        self._moving: dict[str, tuple[int, int, float]] = {}
        self._shown_tables: set[tuple[str, str]] = set()
        self._shown_seated: set[str] = set()

    def take(self, state: TableState, has_time: bool) -> None:
        """Counts one table; `has_time` is whether its clock still runs."""
        if state.mode == "closed":
            return
        rulebook = state.rulebook.name
        self._tables[rulebook, state.mode] += 1
        self._seated[rulebook] += len(state.seats)
        if state.playing is not None and state.mode != "paused":
            epoch, sequence, since = self._moved.get(state.table_id, (0, 0, 0.0))
            # A player may take all of a clock that runs, and clocks may be long.
            if (epoch, sequence) != (state.epoch, state.sequence) or has_time:
                since = self._clock.monotonic()
            self._moving[state.table_id] = (state.epoch, state.sequence, since)

    def show(self) -> None:
        """Shows what was counted since the last time, and begins anew."""
        for key in self._shown_tables | set(self._tables):
            metrics.TABLES_OPEN.labels(*key).set(self._tables[key])
        for rulebook in self._shown_seated | set(self._seated):
            metrics.SEATED.labels(rulebook).set(self._seated[rulebook])
        now = self._clock.monotonic()
        metrics.STILL_SECONDS.set(max((now - since for _, _, since in self._moving.values()), default=0.0))
        self._shown_tables |= set(self._tables)
        self._shown_seated |= set(self._seated)
        self._moved, self._moving = self._moving, {}
        self._tables, self._seated = Counter(), Counter()
