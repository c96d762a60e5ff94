"""Random hands over all rulebooks and option mixes: every invariant after every event, seeds from hypothesis."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from services.rules.commands import Act, ClockRanOut, Discard
from services.rules.hand import legal, start_hand
from services.rules.refusals import Refusal
from services.rules.views import view
from tests.property.rules import invariants
from tests.property.rules.fuzz import check_scenario_of, failing_scenario, play
from tests.property.rules.tables import NAMES, Shuffles, open_hand, random_table, rulebook_of

QUICK = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@QUICK
@given(seed=st.integers(0, 2**64))
def test_every_invariant_holds_in_a_random_hand(seed: int) -> None:
    script: list[dict[str, Any]] = []
    played = play(seed, script, thorough=True)
    check_scenario_of(*played[:2], script, played[2])


@pytest.mark.parametrize("name", NAMES)
def test_every_rulebook_with_its_own_options_ends_its_hands(name: str) -> None:

    for seed in range(40):
        table = random_table(random.Random(f"{name}-{seed}"), name)
        table["options"] = {}
        table["posts"] = {}
        book = rulebook_of(table)
        table["stacks"] = dict.fromkeys(list(table["stacks"])[: book.seats], 50 * book.unit_stake)
        table["button"] = next(iter(table["stacks"]))
        hand = open_hand(table, Shuffles(random.Random(seed)))
        hand.begin()
        steps = 0
        while hand.state.outcome is None:
            seat = hand.state.seats[hand.state.to_act]
            options = legal(hand.state, seat)
            if options.max_discards is not None:
                hand.do(Discard(seat, hand.state.hands[hand.state.to_act][: options.max_discards]))
            elif options.bet and steps % 3 == 0:
                hand.do(Act(seat, "bet", options.bet[0]))
            else:
                hand.do(Act(seat, "check" if options.check else "call" if options.call else "fold"))
            steps += 1
            invariants.check_cards(hand)
        invariants.check_accounts(table, hand)


def test_a_broken_hand_is_written_as_a_scenario_that_plays_to_the_same_point() -> None:
    script: list[dict[str, Any]] = []
    play("to be written down", script, thorough=False)
    scenario = failing_scenario(script, "what broke")
    assert scenario["rule"] == "what broke"
    assert scenario["script"] == script[1:]
    assert "deck" not in scenario


class AnyHand(RuleBasedStateMachine):
    """A hand whose next command hypothesis chooses, legal or not, and shrinks where something breaks."""

    def __init__(self) -> None:
        super().__init__()
        self.hand: Any = None

    @initialize(seed=st.integers(0, 2**32))
    def sit_down(self, seed: int) -> None:

        chance = random.Random(seed)
        self.table = random_table(chance)
        self._open(chance)

    def _open(self, chance: random.Random) -> None:
        self.hand = open_hand(self.table, Shuffles(chance))
        self.start = self.hand.state
        self.chips = sum(self.table["stacks"].values()) + self.table["carry"]
        self.hand.begin()

    @precondition(lambda self: self.hand is not None and self.hand.state.to_act >= 0)
    @rule(
        kind=st.sampled_from(("fold", "check", "call", "bet", "raise")),
        where=st.sampled_from(("least", "middle", "most", "least-1", "most+1", "zero")),
        off_turn=st.integers(0, 20),
    )
    def bet(self, kind: Any, where: str, off_turn: int) -> None:
        state = self.hand.state
        seat = state.seats[state.to_act]
        if off_turn == 0:
            seat = state.seats[(state.to_act + 1) % len(state.seats)]
        options = legal(state, seat)
        bounds = (options.bet if kind == "bet" else options.raise_) or (1, 1)
        to = {
            "least": bounds[0],
            "middle": sum(bounds) // 2,
            "most": bounds[1],
            "least-1": bounds[0] - 1,
            "most+1": bounds[1] + 1,
            "zero": 0,
        }[where]
        self._try(Act(seat, kind, to))

    @precondition(lambda self: self.hand is not None and self.hand.state.to_act >= 0)
    @rule(which=st.lists(st.integers(0, 4), max_size=5))
    def discard(self, which: list[int]) -> None:
        state = self.hand.state
        hand = state.hands[state.to_act]
        self._try(Discard(state.seats[state.to_act], tuple(hand[index] for index in which if index < len(hand))))

    @precondition(lambda self: self.hand is not None and self.hand.state.to_act >= 0)
    @rule()
    def run_out_of_time(self) -> None:
        self._try(ClockRanOut(self.hand.state.seats[self.hand.state.to_act]))

    @precondition(lambda self: self.hand is not None and self.hand.state.outcome is not None)
    @rule(seed=st.integers(0, 2**32))
    def next_hand(self, seed: int) -> None:
        """The same table goes on: with the next button, and with what was carried."""
        ended = self.hand.state
        stacks = {seat: chips for seat, chips in zip(ended.seats, ended.stacks, strict=True) if chips}
        if len(stacks) < 2:
            self.sit_down(seed)
            return
        chance = random.Random(seed)
        assert ended.next_button in stacks
        self.table |= {"stacks": stacks, "button": ended.next_button, "carry": ended.carry_out, "posts": {}}
        self.table["deck"] = chance.sample(range(52), 52)
        self._open(chance)

    def _try(self, command: Any) -> None:
        before, count = self.hand.state, len(self.hand.events)
        try:
            self.hand.do(command)
        except Refusal:
            assert self.hand.state is before
            assert len(self.hand.events) == count

    @invariant()
    def everything_holds(self) -> None:
        if self.hand is None:
            return
        state = self.hand.state
        invariants.check_chips(state, self.chips)
        invariants.check_cards(self.hand)
        invariants.check_turns(self.hand.events)
        for viewer in (None, *state.seats):
            assert all(not seat.cards or seat.seat == viewer or seat.shown for seat in view(state, viewer).seats)
        if state.outcome is not None:
            invariants.check_accounts(self.table, self.hand)
            invariants.check_replay(self.start, self.hand)


TestAnyHand = AnyHand.TestCase
TestAnyHand.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


def test_starting_stacks_are_untouched() -> None:
    stacks = {1: 100, 2: 100}
    start_hand(rulebook_of({"rulebook": "house", "options": {}}), stacks, 1)
    assert stacks == {1: 100, 2: 100}
