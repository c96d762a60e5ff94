"""Stub short (RULES 3.5): tables of 2 to 9 seats that all draw as many as a rulebook lets them."""

from __future__ import annotations

import json
import random

import pytest

from services.deck.values import ReshuffleRule
from services.deck.verification import verify_text
from services.rules.rulebook import Rulebook, list_rulebooks
from tests.unit.deck.exported import House, Script

BOOKS = list_rulebooks()


def script_of(book: Rulebook, seats: int, rule: ReshuffleRule, four: int) -> Script:
    """Everybody draws the most; with one four-card draw, seat `four` takes it and the others three."""
    everybody = tuple(range(1, seats + 1))
    if not book.single_four_card_draw:
        return Script(everybody, seats, discards=dict.fromkeys(everybody, book.max_draw), rule=rule)
    discards = {seat: 4 if seat == four else 3 for seat in everybody}
    return Script(everybody, seats, discards=discards, four_card_draw=four, rule=rule)


@pytest.mark.parametrize("rule", list(ReshuffleRule), ids=lambda rule: rule.name.lower())
@pytest.mark.parametrize("book", BOOKS, ids=lambda book: book.name)
@pytest.mark.parametrize("seats", range(2, 10))
async def test_everybody_draws_the_most(seats: int, book: Rulebook, rule: ReshuffleRule) -> None:
    house = House(1000 * seats + len(book.name))
    fours = {1, seats} if book.single_four_card_draw else {0}
    for four in fours:
        hand = await house.play(script_of(book, seats, rule, four))
        reshuffles = [event["body"] for event in hand.events if event["type"] == "deck_reshuffled"]
        asked = sum(len(cards) for cards in hand.discarded.values())
        assert bool(reshuffles) == (asked > 52 - 5 * seats)
        for seat in hand.dealt:
            assert len(hand.drawn[seat]) == len(hand.discarded[seat])
            assert not set(hand.drawn[seat]) & set(hand.discarded[seat])
        live = [card for seat in hand.dealt for card in hand.final(seat)]
        assert len(set(live)) == len(live) == 5 * seats
        view = await house.export(hand, 1, open_seed=True)
        assert verify_text(json.dumps(view)).failed == []


def test_the_rulebooks_draw_what_the_games_say() -> None:
    most = {book.name: (book.max_draw, book.single_four_card_draw) for book in BOOKS}
    assert most == {
        "american": (3, False),
        "casadela": (5, False),
        "clocked": (5, False),
        "house": (5, False),
        "openers": (4, True),
    }


async def test_folded_hands_are_shuffled_in_and_no_live_card_ever_is() -> None:
    rng = random.Random(99)
    house = House(99)
    reshuffled = 0
    for _ in range(40):
        seats = tuple(range(1, 10))
        folds = tuple(rng.sample(seats, rng.randint(1, 4)))
        live = [seat for seat in seats if seat not in folds]
        rule = rng.choice(list(ReshuffleRule))
        script = Script(seats, 9, folds=folds, discards=dict.fromkeys(live, rng.choice((2, 3, 5))), rule=rule)
        hand = await house.play(script)
        reshuffled += any(event["type"] == "deck_reshuffled" for event in hand.events)
        held = {seat: set(hand.dealt[seat]) for seat in live}
        for seat in live:
            held[seat] -= set(hand.discarded[seat])
            others = set().union(*(held[other] for other in live if other != seat))
            assert not set(hand.drawn[seat]) & others
            held[seat] |= set(hand.drawn[seat])
    assert reshuffled > 20
