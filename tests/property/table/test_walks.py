"""Tables on which anything happens at any time: players act, sleep, come, go, top up; operators pause, void and close.

After every step the invariants of `scripted.Table.check` hold: sequences have no gap, nobody is told a card that is not
theirs, no chip appears or is lost, and something is always under way. At the end everybody can be paid.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from services.runtime.errors import Fault
from services.table import asks, seating
from tests.unit.table.scripted import OPERATOR, Table, player_at

RULEBOOKS = ("house", "clocked", "casadela", "openers", "american")
STEPS = 700
PLAYERS = 6


class Walk:
    """One random walk; `taken` counts what was done, `refused` the reasons."""

    def __init__(self, rulebook: str, seed: int) -> None:
        self.rng = random.Random(f"{rulebook} {seed}")
        # At most four sit, so that the stub never runs short: reshuffles are the deck's own tests.
        self.table = Table(rulebook, seed, seats=4)
        self.left_with: dict[str, int] = {}
        self.taken: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()

    def run(self) -> Walk:
        moves = [self.work] * 18 + [self.act] * 16 + [self.time_out] * 3 + [self.sit_down] * 4 + [self.sit_in] * 3
        moves += [
            self.leave,
            self.top_up,
            self.sit_out,
            self.sit_in,
            self.settings,
            self.preselect,
            self.give_seed,
            self.show,
            self.wait,
        ]
        moves += [self.pause_or_resume, self.void, self.stale, self.connection]
        for _ in range(STEPS):
            move = self.rng.choice(moves)
            try:
                move()
            except Fault as fault:
                self.refused[fault.reason] += 1
            else:
                self.taken[move.__name__] += 1
        return self

    def anybody(self) -> str:
        return player_at(self.rng.randint(1, PLAYERS))

    def work(self) -> None:
        if self.table.state.effects:
            self.table.work_one()

    def act(self) -> None:
        if self.table.to_act and self.table.state.mode != "paused":
            self.table.now_ms = min(self.table.now_ms + self.rng.randint(0, 9_000), self.table.deadline_ms)
            self.table.act_at_random()

    def time_out(self) -> None:
        if self.table.deadline_ms:
            self.table.time_out()

    def sit_down(self) -> None:
        book = self.table.state.rulebook
        chips = self.rng.choice([book.min_buy_in_minor, book.max_buy_in_minor, book.max_buy_in_minor + 1])
        self.table.ask(asks.SitDown, self.anybody(), self.rng.randint(0, 5), chips, 0)

    def leave(self) -> None:
        self.table.ask(asks.Leave, self.anybody())

    def top_up(self) -> None:
        most = self.table.state.rulebook.max_buy_in_minor
        self.table.ask(asks.TopUp, self.anybody(), self.rng.choice([1, most // 3, most]))

    def sit_out(self) -> None:
        self.table.ask(asks.UpdateSeat, self.anybody(), True)

    def sit_in(self) -> None:
        self.table.ask(asks.UpdateSeat, self.anybody(), False)

    def settings(self) -> None:
        most = self.table.state.rulebook.max_buy_in_minor
        self.table.ask(
            asks.UpdateSeat,
            self.anybody(),
            auto_muck=self.rng.random() < 0.5,
            wait_for_blind=self.rng.random() < 0.3,
            auto_post=self.rng.random() < 0.9,
            auto_rebuy=self.rng.choice([0, most]),
        )

    def preselect(self) -> None:
        hand = self.table.state.hand
        number = hand.number if hand is not None else 1
        self.table.ask(asks.Preselect, self.anybody(), number, self.rng.choice(["", "check_fold", "check", "call"]))

    def give_seed(self) -> None:
        commitment = self.rng.choice([self.table.state.commitment, b"another".ljust(32)])
        self.table.ask(asks.SetSeed, self.anybody(), commitment, self.rng.randbytes(8))

    def show(self) -> None:
        hand = self.table.state.hand
        if hand is not None:
            self.table.ask(asks.TakeAction, self.anybody(), hand.number, 0, "show", 0, (), b"")

    def wait(self) -> None:
        self.table.ask(self.rng.choice([asks.JoinWaiting, asks.LeaveWaiting]), self.anybody())

    def pause_or_resume(self) -> None:
        if self.table.state.mode == "paused":
            self.table.ask(asks.Resume, OPERATOR)
        elif self.rng.random() < 0.15:
            self.table.ask(asks.Pause, OPERATOR, "a break", self.rng.random() < 0.5)

    def void(self) -> None:
        if self.rng.random() < 0.1:
            self.table.ask(asks.Void, OPERATOR, self.table.state.last_hand, "a test")

    def stale(self) -> None:
        """An action for a turn that is over, or that never was."""
        state = self.table.state
        kind = self.rng.choice(["fold", "check", "call", "discard", "cut"])
        turn = state.turns + self.rng.choice([-2, -1, 0, 1])
        self.table.ask(asks.TakeAction, self.anybody(), state.last_hand, turn, kind, 0, (), b"")

    def connection(self) -> None:
        player, connected = self.anybody(), self.rng.random() < 0.6
        self.table.step(lambda draft: seating.connection(draft, player, connected))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rulebook", RULEBOOKS)
def test_anything_may_happen_at_any_time(rulebook, seed) -> None:
    walk = Walk(rulebook, seed).run()
    table = walk.table
    assert table.state.last_hand >= 1, walk.taken
    assert walk.taken["act"] > 20
    if table.state.mode == "paused":
        table.ask(asks.Resume, OPERATOR)
    table.ask(asks.Close, OPERATOR, "the end")
    for _ in range(500):
        table.work()
        if table.state.mode == "closed":
            break
        table.time_out()
    assert table.state.mode == "closed"
    table.work()
    assert table.stacks == {}
    assert table.taken_home + table.rake == table.bought
    assert table.histories == list(range(1, table.state.last_hand + 1)), "each hand's history is asked for once"
