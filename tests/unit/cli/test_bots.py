"""The bots' judgement, and their eye for cards that nobody may see yet."""

from __future__ import annotations

import random

import pytest
from fivedraw.table.v1 import event_pb2, table_pb2, table_service_pb2

from services.cli.bots import policy
from services.cli.bots.crew import RULEBOOKS, plan
from services.cli.bots.guard import CardGuard
from services.cli.bots.record import TableRecord

Update = table_service_pb2.WatchTableResponse
Event = event_pb2.TableEvent


def spot(legal: table_pb2.LegalActions, cards: str = "9c9d3h4sKd", **amounts: int) -> policy.Spot:
    held = tuple(cards[place : place + 2] for place in range(0, len(cards), 2))
    return policy.Spot(held, legal, amounts.get("pot", 100), amounts.get("stack", 1000))


def levels(least: int, most: int) -> table_pb2.LevelRange:
    return table_pb2.LevelRange(least_minor=least, most_minor=most)


LEGALS = {
    "facing a bet": table_pb2.LegalActions(fold=True, call=True, call_minor=20, **{"raise": levels(40, 900)}),
    "unopened": table_pb2.LegalActions(check=True, bet=levels(10, 1000)),
    "capped": table_pb2.LegalActions(fold=True, call=True, call_minor=20),
    "open or fold": table_pb2.LegalActions(fold=True, bet=levels(2, 5)),
    "free, may not bet": table_pb2.LegalActions(check=True),
    "draw": table_pb2.LegalActions(discard=True, max_discards=3),
    "cut": table_pb2.LegalActions(cut=True),
}


@pytest.mark.parametrize("name", LEGALS)
def test_every_choice_is_legal(name: str):
    legal = LEGALS[name]
    rng = random.Random(7)
    seen = set()
    for _ in range(400):
        action = policy.choose(spot(legal), policy.Temper.drawn(rng), rng)
        seen.add(table_pb2.ActionKind.Name(action.kind).removeprefix("ACTION_KIND_").lower())
        if action.kind == table_pb2.ACTION_KIND_BET:
            assert legal.bet.least_minor <= action.to_minor <= legal.bet.most_minor
        if action.kind == table_pb2.ACTION_KIND_RAISE:
            bounds = getattr(legal, "raise")
            assert bounds.least_minor <= action.to_minor <= bounds.most_minor
        if action.kind == table_pb2.ACTION_KIND_DISCARD:
            assert len(action.cards) <= legal.max_discards
            assert len(set(action.cards)) == len(action.cards)
            assert set(action.cards) <= {"9c", "9d", "3h", "4s", "Kd"}
    allowed = {kind for kind in ("fold", "check", "call", "discard", "cut") if getattr(legal, kind)}
    allowed |= {kind for kind in ("bet", "raise") if legal.HasField(kind)}
    assert seen <= allowed


def test_bots_try_everything_that_a_bet_allows():
    rng = random.Random(3)
    kinds = {policy.choose(spot(LEGALS["facing a bet"]), policy.Temper.drawn(rng), rng).kind for _ in range(2000)}
    assert kinds == {table_pb2.ACTION_KIND_FOLD, table_pb2.ACTION_KIND_CALL, table_pb2.ACTION_KIND_RAISE}


def test_nothing_legal_is_said_so():
    rng = random.Random(1)
    with pytest.raises(ValueError, match="nothing is legal"):
        policy.choose(spot(table_pb2.LegalActions()), policy.Temper.drawn(rng), rng)


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("2c3c4c5c9c", "AcAdAhKsQd"),
        ("Ac2d3h4s5c", "KcKdKhQs2d"),
        ("2c2d2h4s5c", "AcAdKhKs2d"),
        ("2c2d3h3s4c", "AcAdKhQs2d"),
        ("2c2d3h4s5c", "AcKdQhJs9d"),
    ],
)
def test_strength_orders_hands(better: str, worse: str):
    cut = lambda text: [text[place : place + 2] for place in range(0, 10, 2)]  # noqa: E731
    assert policy.strength(cut(better)) > policy.strength(cut(worse))


def deal(seat_cards: list[str], seats: list[int], sequence: int = 2) -> Update:
    return Update(
        events=[Event(sequence=sequence, cards_dealt=event_pb2.CardsDealt(seats=seats, your_cards=seat_cards))]
    )


OWN = ["9c", "9d", "3h", "4s", "Kd"]


def test_own_cards_and_shown_cards_are_no_leak():
    guard = CardGuard()
    guard.look(deal(OWN, [2, 3]), 2)
    guard.look(Update(events=[Event(cards_discarded=event_pb2.CardsDiscarded(seat=2, your_discards=["3h"]))]), 2)
    guard.look(Update(events=[Event(cards_drawn=event_pb2.CardsDrawn(seat=2, your_cards=["As"]))]), 2)
    guard.look(Update(events=[Event(hand_shown=event_pb2.HandShown(seat=3, cards=["2c", "2d", "2h", "5s", "7d"]))]), 2)
    assert guard.leaks == []


@pytest.mark.parametrize(
    "leak",
    [
        Event(cards_discarded=event_pb2.CardsDiscarded(seat=3, your_discards=["2c"])),
        Event(cards_drawn=event_pb2.CardsDrawn(seat=3, your_cards=["2c"])),
        Event(action_taken=event_pb2.ActionTaken(seat=3), hand_voided=event_pb2.HandVoided(reason="2c")),
        Event(turn_started=event_pb2.TurnStarted(turn=table_pb2.Turn(seat=3), your_actions=table_pb2.LegalActions())),
    ],
)
def test_what_belongs_to_another_seat_is_a_leak(leak: Event):
    guard = CardGuard()
    guard.look(deal(OWN, [2, 3]), 2)
    guard.look(Update(events=[leak]), 2)
    assert len(guard.leaks) == 1


def test_a_spectator_may_be_told_no_card_at_all():
    guard = CardGuard()
    guard.look(deal(OWN, [2, 3]), 0)
    assert len(guard.leaks) == 5


def test_last_hands_cards_are_a_leak_in_the_next():
    guard = CardGuard()
    guard.look(deal(OWN, [2, 3]), 2)
    guard.look(Update(events=[Event(hand_started=event_pb2.HandStarted())]), 2)
    guard.look(Update(events=[Event(cards_drawn=event_pb2.CardsDrawn(seat=3, your_cards=["Kd"]))]), 2)
    assert len(guard.leaks) == 1


def started(hand: int, deck: int) -> Event:
    return Event(hand=hand, epoch=1, hand_started=event_pb2.HandStarted(deck_number=deck))


def ended(hand: int) -> list[Event]:
    outcome = event_pb2.HandEnded(outcome=table_pb2.HAND_OUTCOME_SHOWDOWN)
    return [Event(hand=hand, hand_ended=outcome), Event(hand=hand, hand_settled=event_pb2.HandSettled())]


def test_a_hand_counts_when_its_money_is_settled():
    record = TableRecord("tables/t", "house")
    end, settled = ended(1)
    record.see(Update(events=[started(1, 1), end]))
    assert record.hands_finished == 0
    record.see(Update(events=[settled]))
    assert record.hands_finished == 1
    assert record.outcomes == {"showdown": 1}
    assert record.faults == []


def test_a_void_hand_is_finished_and_a_rebuilt_table_says_which():
    record = TableRecord("tables/t", "house")
    rebuilt = Event(table_rebuilt=event_pb2.TableRebuilt(voided_hand=1))
    record.see(Update(events=[started(1, 1), rebuilt]))
    assert record.hands_finished == 1
    assert record.outcomes == {"void": 1}


def test_a_hand_begun_twice_and_a_deck_dealt_twice_are_faults():
    record = TableRecord("tables/t", "house")
    record.see(Update(events=[started(1, 1), *ended(1), started(1, 2), started(2, 1)]))
    assert [fault.partition(": ")[2] for fault in record.faults] == [
        "hand 1 began twice",
        "deck 1 served hands 1 and 2",
    ]


def test_a_card_dealt_to_two_seats_is_a_fault():
    record = TableRecord("tables/t", "house")
    record.see(Update(events=[started(1, 1)]))
    record.see_deal(1, 2, tuple(OWN))
    record.see_deal(1, 2, tuple(OWN))
    assert record.faults == []
    record.see_deal(1, 3, ("9c", "2d", "2h", "5s", "7d"))
    assert len(record.faults) == 1


def test_five_tables_play_all_five_rulebooks():
    assert {table.rulebook for table in plan(5, 4)} == set(RULEBOOKS)
    assert [table.table_id for table in plan(2, 4)] == [table.table_id for table in plan(7, 4)][:2]
