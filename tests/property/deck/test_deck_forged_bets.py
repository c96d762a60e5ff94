"""Forced bets that nobody owed, or that somebody left out, told alike in the whole file: both name the event.

But for the forced bets themselves these hands hang together: chips are moved from who pays to the winner in the pots,
in the stacks and in the head, and without the check of forced bets each of them would pass.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from services.deck.verification import verify_text
from services.deck.verification.forced import ForcedBets
from tests.unit.deck.both import assert_both_fail, assert_both_pass
from tests.unit.deck.exported import ANTE, Script, exported

HANDS = Path(__file__).parents[2] / "unit" / "deck" / "data" / "hands.jsonl"


@pytest.fixture(scope="module")
def antes() -> dict:
    """Five seats ante, three of them fold, and a bet after the draw wins; clockwise from the button 4, 6, 9, 1, 2."""
    return exported(Script(seats=(1, 2, 4, 6, 9), button=2, folds=(6, 9, 2), discards={4: 2}), 4, seed=8)


def played(kind: str, outcome: str) -> dict:
    """A hand with one pot that a house played, with a forced bet of this kind."""
    hands = [hand for hand in map(json.loads, HANDS.read_text().splitlines()) if hand["outcome"] == outcome]
    return next(
        hand for hand in hands if len(hand["pots"]) == 1 and any(bet["kind"] == kind for _, bet in bets_of(hand))
    )


@pytest.fixture(scope="module")
def posts() -> dict:
    """A hand with blinds; outside them seat 3 posts, with a dead blind, and does not win."""
    return played("dead_blind", "showdown")


@pytest.fixture(scope="module")
def raked() -> dict:
    """A hand with blinds and a rake of 5 in a pot of 100; seat 2, outside the blinds, folds at once."""
    return played("big_blind", "uncontested")


def bets_of(hand: dict) -> list[tuple[int, dict]]:
    """Places and bodies of the forced bets."""
    return [(at, event["body"]) for at, event in enumerate(hand["events"]) if event["type"] == "forced_bet_posted"]


def bet_of(hand: dict, kind: str, seat: int = 0) -> tuple[int, dict]:
    return next((at, bet) for at, bet in bets_of(hand) if bet["kind"] == kind and seat in (0, bet["seat"]))


def move(hand: dict, seat: int, amount: int) -> None:
    """So many chips more of this seat go to the one winner of the one pot; less, where negative."""
    (winner,) = hand["pots"][0]["winners"]
    for event in hand["events"]:
        body = event["body"]
        if event["type"] in ("stage_started", "bets_collected"):
            body["pot_minor"] += amount
        if event["type"] == "pot_awarded":
            body["pot"]["amount_minor"] += amount
            body["pot"]["winners"][winner] += amount
            hand["pots"] = [body["pot"]]
        if event["type"] == "hand_ended":
            body["stacks_minor"][str(seat)] -= amount
            body["stacks_minor"][winner] += amount
    for each in hand["seats"]:
        each["stack_after_minor"] += {seat: -amount, int(winner): amount}.get(each["seat"], 0)


def renumber(hand: dict) -> None:
    first = hand["events"][0]["sequence"]
    for at, event in enumerate(hand["events"]):
        event["sequence"] = first + at


def with_amount(hand: dict, kind: str, seat: int, amount: int) -> tuple[dict, int]:
    """Another amount of a forced bet; the hand, and where that stands."""
    changed = copy.deepcopy(hand)
    at, bet = bet_of(changed, kind, seat)
    move(changed, seat, amount - bet["amount_minor"])
    bet["amount_minor"] = amount
    return changed, at


def without_bet(hand: dict, kind: str, seat: int) -> tuple[dict, int]:
    """A forced bet is left out; the event after it is where that shows."""
    changed = copy.deepcopy(hand)
    at, bet = bet_of(changed, kind, seat)
    move(changed, seat, -bet["amount_minor"])
    del changed["events"][at]
    renumber(changed)
    return changed, at


def with_bet(hand: dict, kind: str, seat: int, amount: int) -> tuple[dict, int]:
    """A forced bet that nobody owed, behind all others."""
    changed = copy.deepcopy(hand)
    last, _ = bets_of(changed)[-1]
    invented = copy.deepcopy(changed["events"][last])
    invented["body"] = {"seat": seat, "kind": kind, "amount_minor": amount, "all_in": False}
    changed["events"].insert(last + 1, invented)
    renumber(changed)
    move(changed, seat, amount)
    return changed, last + 1


def told_as(hand: dict, kind: str, told: str) -> tuple[dict, int]:
    """The first forced bet of a kind is told as one of another."""
    changed = copy.deepcopy(hand)
    at, bet = bet_of(changed, kind)
    bet["kind"] = told
    return changed, at


def exchanged(hand: dict, first: str, second: str) -> tuple[dict, int]:
    """Two forced bets change their seats."""
    changed = copy.deepcopy(hand)
    (at, one), (_, other) = bet_of(changed, first), bet_of(changed, second)
    one["seat"], other["seat"] = other["seat"], one["seat"]
    return changed, at


def assert_named(forgeries: dict[str, tuple[dict, int]]) -> None:
    """Both refuse each for one thing alone: the event in which it shows."""
    failures = assert_both_fail({name: hand for name, (hand, _) in forgeries.items()})
    for name, (hand, at) in forgeries.items():
        event = hand["events"][at]
        mine, other = failures[name]
        assert mine == other, name
        (failed,) = mine
        assert f" event {event['sequence']} ({event['type']}): " in failed, name


def test_the_honest_hands_pass(antes: dict, posts: dict, raked: dict) -> None:
    assert_both_pass(*map(json.dumps, (antes, posts, raked)))


def test_forced_bets_that_nobody_owed_fail_though_the_whole_file_tells_them(
    antes: dict, posts: dict, raked: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = {
        "an ante too large": with_amount(antes, "ante", 9, ANTE + 15),
        "an ante too small": with_amount(antes, "ante", 9, ANTE - 1),
        "no ante": without_bet(antes, "ante", 9),
        "no last ante": without_bet(antes, "ante", 2),
        "a dead blind without blinds": with_bet(antes, "dead_blind", 6, 30),
        "a dead blind too large": with_amount(posts, "dead_blind", 3, 30),
        "a second dead blind": with_bet(posts, "dead_blind", 3, 5),
        "a dead blind of a blind": with_bet(posts, "dead_blind", 1, 5),
        "a dead blind of a caller": with_bet(posts, "dead_blind", 2, 30),
        # So little that the rake stays as it is.
        "a dead blind": with_bet(raked, "dead_blind", 2, 19),
        "a dead blind of its size": with_bet(raked, "dead_blind", 2, 5),
    }
    assert_named(whole)
    monkeypatch.setattr(ForcedBets, "take", lambda *_: None)
    monkeypatch.setattr(ForcedBets, "complete", lambda *_: None)
    assert [name for name, (hand, _) in whole.items() if verify_text(json.dumps(hand)).failed] == []


def test_forced_bets_of_another_kind_or_seat_fail(antes: dict, posts: dict) -> None:
    kinds = ("ante", "small_blind", "big_blind", "post", "dead_blind")
    forgeries = {f"ante as {told}": told_as(antes, "ante", told) for told in kinds[1:]}
    for kind in kinds[1:]:
        forgeries |= {f"{kind} as {told}": told_as(posts, kind, told) for told in kinds if told != kind}
    forgeries |= {
        "blinds exchanged": exchanged(posts, "small_blind", "big_blind"),
        "a blind posts": exchanged(posts, "big_blind", "post"),
    }
    assert_named(forgeries)


def test_a_beginning_without_options_fails(antes: dict, posts: dict) -> None:
    forgeries = {}
    for name, hand in (("antes", antes), ("blinds", posts)):
        for options in (None, {}):
            changed = copy.deepcopy(hand)
            changed["events"][0]["body"] |= {"options": options}
            forgeries[f"{name}, {options}"] = changed, 0
        del (changed := copy.deepcopy(hand))["events"][0]["body"]["options"]
        forgeries[name] = changed, 0
    assert_named(forgeries)


def test_a_seat_without_chips_is_not_dealt_in(antes: dict) -> None:
    """Else it would owe no ante."""
    changed, _ = without_bet(antes, "ante", 9)
    changed["events"][0]["body"]["seats"][4]["stack_minor"] = 0
    for each in changed["seats"]:
        each.update({"stack_before_minor": 0, "stack_after_minor": 0} if each["seat"] == 9 else {})
    ended = next(event["body"] for event in changed["events"] if event["type"] == "hand_ended")
    ended["stacks_minor"]["9"] = 0
    assert_named({"no chips": (changed, 0)})
