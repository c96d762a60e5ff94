"""Hand for hand against pokerkit, where the two rules agree; where they do not, the difference is listed and asserted.

Known differences, each with our rule:
 - *completion*: in fixed limit an all-in below half a bet may be completed to the full bet (RULES 4); pokerkit adds a
   full bet to it.
 - *half a bet*: in fixed limit an all-in of half a bet counts as one and reopens the betting (RULES 4, 11); pokerkit
   asks for a full bet.
 - *reopening*: in no and pot limit a seat that has acted faces less than a full raise and may only call or fold
   (RULES 4); pokerkit offers a raise in some of these cases (an opening all-in below the least bet, say).
 - *cap*: our four bets a round count the big blind, pokerkit's do not, so it is told three for the first round.
"""

from __future__ import annotations

import random
from collections import Counter

import pokerkit
import pytest

from services.cli.dealt_hand import DealtHand
from services.rules.cards import CARD_TEXTS
from services.rules.commands import Act, Discard
from services.rules.events import Acted
from services.rules.hand import legal, start_hand
from services.rules.rulebook import load_rulebook
from services.rules.state import HandState

_AUTOMATIONS = tuple(
    automation
    for automation in pokerkit.Automation
    if automation.name
    in (
        "ANTE_POSTING",
        "BET_COLLECTION",
        "BLIND_OR_STRADDLE_POSTING",
        "CARD_BURNING",
        "HOLE_CARDS_SHOWING_OR_MUCKING",
        "HAND_KILLING",
        "CHIPS_PUSHING",
        "CHIPS_PULLING",
    )
)
_CARDS = tuple(pokerkit.Card.parse("".join(CARD_TEXTS)))
_STRUCTURES = {
    "no_limit": pokerkit.BettingStructure.NO_LIMIT,
    "pot_limit": pokerkit.BettingStructure.POT_LIMIT,
    "fixed_limit": pokerkit.BettingStructure.FIXED_LIMIT,
}


class Pair:
    """The same hand in both engines. Positions agree: 0 is left of the button."""

    def __init__(self, seed: str, betting: str) -> None:
        self.chance = chance = random.Random(seed)
        ante = chance.choice((0, 0, 2))
        size = chance.choice((2, 3, 4, 5))
        depth = chance.choice((20, 60, 1000))
        stacks = {seat: chance.randint(12 + ante, max(13 + ante, depth)) for seat in range(1, size + 1)}
        fixed = betting == "fixed_limit"
        options = {"betting": betting, "big_blind": 10, "small_blind": 5, "ante": ante}
        book = load_rulebook("house").with_options(options)
        self.ours = DealtHand(
            start_hand(book, stacks, size), tuple(chance.sample(range(52), 52)), lambda cards, _: cards
        )
        self.ours.begin()
        streets = (
            pokerkit.Street(False, (False,) * 5, 0, False, pokerkit.Opening.POSITION, 10, 3 if fixed else None),
            pokerkit.Street(False, (), 0, True, pokerkit.Opening.POSITION, 20 if fixed else 10, 4 if fixed else None),
        )
        self.theirs = pokerkit.State(
            _AUTOMATIONS,
            pokerkit.Deck.STANDARD,
            (pokerkit.StandardHighHand,),
            streets,
            _STRUCTURES[betting],
            True,
            ante,
            (5, 10),
            0,
            [stacks[seat] for seat in self.state.seats],
            size,
        )
        for hand in self.state.hands:
            self.theirs.deal_hole([_CARDS[card] for card in hand])
        self.late: list[tuple[int, ...]] = []
        self.differences: Counter[str] = Counter()

    @property
    def state(self) -> HandState:
        return self.ours.state

    def play(self) -> None:
        while self.state.outcome is None:
            if self.state.stage == "draw":
                self._draw()
            else:
                self._bet()
        assert not self.theirs.status
        assert list(self.state.stacks) == list(self.theirs.stacks)

    def _draw(self) -> None:
        position = self.state.to_act
        assert self.theirs.stand_patter_or_discarder_index == position
        count = self.chance.randint(0, 3)
        cards = self.state.hands[position][:count]
        self.ours.do(Discard(self.state.seats[position], cards))
        self.theirs.stand_pat_or_discard([_CARDS[card] for card in cards])
        if count:
            self.late.append(self.state.hands[position][5 - count :])
        while self.late and self.theirs.can_deal_hole():
            self.theirs.deal_hole([_CARDS[card] for card in self.late.pop(0)])

    def _bet(self) -> None:
        state, theirs = self.state, self.theirs
        position = state.to_act
        seat = state.seats[position]
        options = legal(state, seat)
        assert theirs.actor_index == position
        assert theirs.checking_or_calling_amount == (options.call or 0)
        bounds = options.bet or options.raise_
        can = theirs.can_complete_bet_or_raise_to()
        least, most = (
            theirs.min_completion_betting_or_raising_to_amount,
            theirs.max_completion_betting_or_raising_to_amount,
        )
        if (bounds or None) != ((least, most) if can else None):
            self.differences[self._known_difference(position, bool(bounds), can)] += 1
        kinds = ["call", "call"] + (["fold"] if options.call else [])
        if bounds and can and max(bounds[0], least) <= min(bounds[1], most):
            kinds += ["raise", "raise"]
        kind = self.chance.choice(kinds)
        if kind == "raise" and bounds:
            low, high = max(bounds[0], least), min(bounds[1], most)
            to = self.chance.choice((low, high, self.chance.randint(low, high)))
            self.ours.do(Act(seat, "bet" if options.bet else "raise", to))
            theirs.complete_bet_or_raise_to(to)
        elif kind == "fold":
            self.ours.do(Act(seat, "fold"))
            theirs.fold()
        else:
            self.ours.do(Act(seat, "call" if options.call else "check"))
            theirs.check_or_call()

    def _known_difference(self, position: int, we_offer: bool, they_offer: bool) -> str:
        state = self.state
        acted = [event for event in self.ours.events if isinstance(event, Acted)]
        if state.rulebook.betting == "fixed_limit":
            assert any(event.all_in and event.kind in ("bet", "raise") for event in acted)
            return "completion" if we_offer and they_offer else "half a bet"
        assert they_offer
        assert not we_offer
        assert state.closed >> position & 1
        assert state.level - state.put[position] < state.least_raise
        return "reopening"


@pytest.mark.parametrize("betting", sorted(_STRUCTURES))
def test_same_turns_calls_bounds_and_payouts(betting: str) -> None:
    differences: Counter[str] = Counter()
    for number in range(120):
        pair = Pair(f"{betting}-{number}", betting)
        pair.play()
        differences += pair.differences
    known = {"completion", "half a bet"} if betting == "fixed_limit" else {"reopening"}
    assert set(differences) <= known
