"""What a scan counts: a hand stands still when it moves no more and nobody's clock runs."""

from __future__ import annotations

from services.rules.rulebook import load_rulebook
from services.table import metrics
from services.table.census import Census
from services.table.state import Hand, TableSettings, TableState
from tests.standing_clock import StandingClock


def still_seconds() -> float:
    return metrics.STILL_SECONDS._value.get()  # type: ignore[attr-defined]


def playing(sequence: int) -> TableState:
    state = TableState("t", "T", load_rulebook("house"), "EUR", 0, TableSettings(), 1, sequence=sequence)
    sittings, players = {1: "a", 2: "b"}, {1: "players/a", 2: "players/b"}
    state.hand = Hand(1, (1, 2), sittings, players, carry_in=0, first_epoch=1, first=1)
    return state


def scanned(census: Census, clock: StandingClock, after_seconds: float, state: TableState, has_time: bool) -> float:
    clock.advance(after_seconds)
    census.take(state, has_time)
    census.show()
    return still_seconds()


def test_a_hand_is_still_from_when_it_last_moved():
    clock = StandingClock()
    census = Census(clock)
    assert scanned(census, clock, 0, playing(5), has_time=False) == 0
    assert scanned(census, clock, 30, playing(5), has_time=False) == 30
    assert scanned(census, clock, 10, playing(6), has_time=False) == 0


def test_a_clock_that_runs_is_no_standstill_however_long():
    clock = StandingClock()
    census = Census(clock)
    assert scanned(census, clock, 0, playing(5), has_time=True) == 0
    assert scanned(census, clock, 3_000, playing(5), has_time=True) == 0
    assert scanned(census, clock, 50, playing(5), has_time=False) == 50
