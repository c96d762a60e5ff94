"""The summary at the end of a tracker's hand: the pots net of rake, and one line a seat."""

from __future__ import annotations

from collections.abc import Iterator

from fivedraw.history.v1 import history_service_pb2
from fivedraw.table.v1 import table_pb2

from services.history.formats.money import amount
from services.history.formats.tracker_names import tracker_names
from services.history.formats.words import name_of_hand

Hand = history_service_pb2.Hand


def summary_lines(hand: Hand) -> Iterator[str]:
    """`*** SUMMARY ***` and what follows it."""
    yield "*** SUMMARY ***"
    yield _total(hand)
    names, marks, fates = tracker_names(hand), _marks(hand), _fates(hand)
    for seat in hand.seats:
        yield f"Seat {seat.seat}: {names[seat.seat]}{marks.get(seat.seat, '')} {fates[seat.seat]}"


def _total(hand: Hand) -> str:
    total = sum(pot.amount_minor for pot in hand.pots)
    line = f"Total pot {amount(total, hand.currency)}"
    if len(hand.pots) > 1 and _contested(hand):
        for pot in hand.pots:
            name = "Main pot" if pot.index == 0 else "Side pot" if len(hand.pots) == 2 else f"Side pot-{pot.index}"
            line += f" {name} {amount(pot.amount_minor - pot.rake_minor, hand.currency)}."
    return f"{line} | Rake {amount(hand.rake_minor, hand.currency)}"


def _marks(hand: Hand) -> dict[int, str]:
    marks = {hand.button: " (button)"}
    for event in hand.events:
        if not event.HasField("forced_bet_posted"):
            continue
        post = event.forced_bet_posted
        if post.kind == table_pb2.FORCED_BET_KIND_SMALL_BLIND:
            marks[post.seat] = marks.get(post.seat, "") + " (small blind)"
        elif post.kind == table_pb2.FORCED_BET_KIND_BIG_BLIND:
            marks[post.seat] = marks.get(post.seat, "") + " (big blind)"
    return marks


def _contested(hand: Hand) -> bool:
    return hand.outcome == table_pb2.HAND_OUTCOME_SHOWDOWN


def _fates(hand: Hand) -> dict[int, str]:
    """How each seat's hand ended."""
    folded: dict[int, str] = {}
    has_bet: set[int] = set()
    before_draw = True
    for event in hand.events:
        match event.WhichOneof("body"):
            case "forced_bet_posted":
                if event.forced_bet_posted.kind != table_pb2.FORCED_BET_KIND_ANTE:
                    has_bet.add(event.forced_bet_posted.seat)
            case "stage_started":
                before_draw = before_draw and event.stage_started.stage != table_pb2.STAGE_DRAW
            case "action_taken":
                action = event.action_taken
                if action.kind == table_pb2.ACTION_KIND_FOLD:
                    unpaid = "" if action.seat in has_bet else " (didn't bet)"
                    folded[action.seat] = f"folded before the Draw{unpaid}" if before_draw else "folded after the Draw"
                elif action.added_minor:
                    has_bet.add(action.seat)
    won: dict[int, int] = {}
    for pot in hand.pots:
        for seat, chips in pot.winners.items():
            won[seat] = won.get(seat, 0) + chips
    fates = dict(folded)
    for each in hand.seats:
        if each.seat not in folded:
            fates[each.seat] = _unfolded(hand, each, won.get(each.seat, 0))
    return fates


def _unfolded(hand: Hand, seat: history_service_pb2.HandSeat, won: int) -> str:
    chips = amount(won, hand.currency)
    if seat.shown:
        cards = list(seat.final_cards)
        end = f"won ({chips})" if won else "lost"
        return f"showed [{' '.join(cards)}] and {end} with {name_of_hand(cards)}"
    if won:
        return f"collected ({chips})"
    return f"mucked [{' '.join(seat.final_cards)}]"
