"""The waiting list under churn: players come, give up, take or miss their offer, and seats come free at any time.

After every step: who sits does not wait; a kept seat is free, kept for one player and nobody else's to take; a seat is
offered in the order in which players came; and while anybody waits without an offer, no seat stands free.
"""

from __future__ import annotations

import random

import pytest

from services.runtime.errors import Fault
from services.table import asks, waiting
from tests.unit.table.scripted import Table

STEPS = 400
PLAYERS = 9
SEATS = 3
REFUSED = {"ALREADY_SEATED", "NOT_SEATED", "NOT_WAITING", "SEATS_FREE", "SEAT_TAKEN"}


class Churn:
    """A small table, and more players than it has seats, who never play: only seats and the list count here."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.table = Table("house", seed, seats=SEATS)
        # No hand begins, so that a seat comes free at once.
        self.table.ask(asks.Pause, "operators/olga", "churn")
        self.came: list[str] = []

    def player(self) -> str:
        return f"players/p{self.rng.randrange(PLAYERS)}"

    def step(self) -> None:
        kind = self.rng.choice(["join", "join", "join", "give up", "sit", "sit", "leave", "leave", "time"])
        player = self.player()
        try:
            if kind == "join":
                self.table.ask(asks.JoinWaiting, player)
            elif kind == "give up":
                self.table.ask(asks.LeaveWaiting, player)
            elif kind == "sit":
                self.table.ask(asks.SitDown, player, self.rng.randrange(SEATS + 1), 500, 0)
            elif kind == "leave":
                self.table.ask(asks.Leave, player)
            else:
                self.table.now_ms += self.rng.choice([1_000, waiting.OFFER_MS // 2, waiting.OFFER_MS + 1])
                self.table.step(waiting.expire)
        except Fault as fault:
            if fault.reason not in REFUSED:
                raise
        self.table.work()
        self.check()

    def check(self) -> None:
        state = self.table.state
        seated = {seat.player for seat in state.seats.values()}
        names = [each.player for each in state.waiting]
        assert len(set(names)) == len(names)
        assert not seated & set(names), "who sits does not wait"
        kept = [each.seat for each in state.waiting if each.seat]
        assert len(set(kept)) == len(kept), "a seat is kept for one player"
        assert not set(kept) & set(state.seats), "a kept seat is free"
        for each in state.waiting:
            if each.seat:
                assert each.until_ms > self.table.now_ms, "an offer that is over is taken back"
                assert each.seat in waiting.free_seats(state, each.player)
                assert each.seat not in waiting.free_seats(state, "players/stranger")
        first_without = next((place for place, each in enumerate(state.waiting) if not each.seat), len(names))
        assert not any(each.seat for each in state.waiting[first_without:]), "first come, first offered"
        if first_without < len(names):
            assert waiting.free_seats(state) == [], "a seat stands free while somebody waits for one"
        # Who stays on the list stays in the order in which they came.
        stayed = [name for name in self.came if name in names]
        assert [name for name in names if name in stayed] == stayed
        self.came = names


@pytest.mark.parametrize("seed", range(4))
def test_the_waiting_list_under_churn(seed: int) -> None:
    churn = Churn(seed)
    longest = offers = 0
    for _ in range(STEPS):
        churn.step()
        longest = max(longest, len(churn.table.state.waiting))
        offers += any(each.seat for each in churn.table.state.waiting)
    assert longest >= 3
    assert offers > STEPS // 20, "hardly anything was ever offered"
