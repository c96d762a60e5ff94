"""TOML in the manner of poker hand history (PHH) files, under a variant code of our own.

Players stand in order of position, `p1` first left of the button. Actions use that format's notation: `d dh` deals,
`f cc cbr` bet, `sd` stands pat or discards, `sm` shows or mucks; cards that the viewer may not see are `??`. Fields of
our own begin with an underscore; amounts are minor units.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from fivedraw.history.v1 import history_service_pb2
from fivedraw.table.v1 import event_pb2, table_pb2

from services.history.formats.words import OUTCOMES, cannot_express, moment, names_by_seat, one_line

Hand = history_service_pb2.Hand

VARIANTS: Final[dict[int, str]] = {
    table_pb2.BETTING_FIXED_LIMIT: "FIVEDRAW-FL",
    table_pb2.BETTING_SPREAD_LIMIT: "FIVEDRAW-SL",
    table_pb2.BETTING_POT_LIMIT: "FIVEDRAW-PL",
    table_pb2.BETTING_NO_LIMIT: "FIVEDRAW-NL",
}
_UNKNOWN_CARD: Final = "??"


def write(hand: Hand) -> str:
    """The hand as a TOML document. Raises `Fault` FORMAT_CANNOT_EXPRESS for one whose log was lost."""
    return "\n".join(f"{key} = {_toml(value)}" for key, value in _fields(hand)) + "\n"


def write_table(hand: Hand) -> str:
    """The hand as one table of a TOML document, `[hand_id]`, for files of many hands."""
    return f"[{hand.hand_id}]\n{write(hand)}\n"


def _fields(hand: Hand) -> Iterator[tuple[str, Any]]:
    if hand.incomplete:
        raise cannot_express(hand, "PHH", "a hand whose log was lost")
    order = positions(hand)
    seats = {seat.seat: seat for seat in hand.seats}
    names = names_by_seat(hand)
    options = hand.options
    antes, blinds = _forced(hand)
    start = moment(hand.start_time)
    yield "variant", VARIANTS.get(options.betting, "FIVEDRAW")
    yield "antes", [antes.get(seat, 0) for seat in order]
    yield "blinds_or_straddles", [blinds.get(seat, 0) for seat in order]
    if options.betting == table_pb2.BETTING_FIXED_LIMIT:
        yield "small_bet", options.small_bet_minor
        yield "big_bet", options.big_bet_minor
    else:
        yield "min_bet", options.spread_min_minor or options.big_blind_minor or options.ante_minor
    yield "starting_stacks", [seats[seat].stack_before_minor for seat in order]
    yield "actions", list(_Actions(hand, order).lines())
    yield "venue", "fivedraw"
    yield "table", one_line(hand.table_display_name or hand.table)
    yield "hand", hand.hand
    yield "seats", order
    yield "seat_count", options.seats
    yield "players", [names[seat] for seat in order]
    yield "finishing_stacks", [seats[seat].stack_after_minor for seat in order]
    yield "year", start.year
    yield "month", start.month
    yield "day", start.day
    yield "time", start.strftime("%H:%M:%S")
    yield "time_zone", "UTC"
    yield "currency", hand.currency
    yield "_hand_id", str(hand.hand_id)
    yield "_rulebook", hand.rulebook
    yield "_outcome", OUTCOMES[hand.outcome]
    yield "_rake", hand.rake_minor
    yield "_carry_in", hand.carry_in_minor
    yield "_carry_out", hand.carry_out_minor
    yield "_button_seat", hand.button


def positions(hand: Hand) -> list[int]:
    """Seats dealt in, clockwise from the button's left."""
    seats = sorted(seat.seat for seat in hand.seats)
    return [seat for seat in seats if seat > hand.button] + [seat for seat in seats if seat <= hand.button]


def _forced(hand: Hand) -> tuple[dict[int, int], dict[int, int]]:
    antes: dict[int, int] = {}
    blinds: dict[int, int] = {}
    for event in hand.events:
        if event.HasField("forced_bet_posted"):
            post = event.forced_bet_posted
            # A dead blind is no bet of its seat, so it stands with the antes.
            dead = post.kind in (table_pb2.FORCED_BET_KIND_ANTE, table_pb2.FORCED_BET_KIND_DEAD_BLIND)
            paid = antes if dead else blinds
            paid[post.seat] = paid.get(post.seat, 0) + post.amount_minor
    return antes, blinds


class _Actions:
    def __init__(self, hand: Hand, order: list[int]) -> None:
        self._hand = hand
        self._order = order
        self._players = {seat: f"p{place}" for place, seat in enumerate(order, 1)}
        self._dealt = {seat.seat: list(seat.dealt) for seat in hand.seats}

    def lines(self) -> Iterator[str]:
        for event in self._hand.events:
            match event.WhichOneof("body"):
                case "cards_dealt":
                    for seat in self._order:
                        yield f"d dh {self._players[seat]} {_cards(self._dealt[seat], 5)}"
                case "action_taken":
                    yield self._action(event.action_taken)
                case "cards_discarded":
                    discard = event.cards_discarded
                    cards = f" {_cards(list(discard.your_discards), discard.count)}" if discard.count else ""
                    yield f"{self._players[discard.seat]} sd{cards}"
                case "cards_drawn":
                    drawn = event.cards_drawn
                    yield f"d dh {self._players[drawn.seat]} {_cards(list(drawn.your_cards), drawn.count)}"
                case "deck_reshuffled":
                    yield f"# {event.deck_reshuffled.cards} discards are shuffled into a new stub"
                case "card_burned":
                    yield "# one card is burned"
                case "hand_shown":
                    yield f"{self._players[event.hand_shown.seat]} sm {''.join(event.hand_shown.cards)}"
                case "hand_mucked":
                    yield f"{self._players[event.hand_mucked.seat]} sm"
                case "hand_voided":
                    yield "# the hand is void"

    def _action(self, action: event_pb2.ActionTaken) -> str:
        player = self._players[action.seat]
        if action.kind == table_pb2.ACTION_KIND_FOLD:
            return f"{player} f"
        if action.kind in (table_pb2.ACTION_KIND_CHECK, table_pb2.ACTION_KIND_CALL):
            return f"{player} cc"
        return f"{player} cbr {action.to_minor}"


def _cards(known: list[str], count: int) -> str:
    return "".join(known) if len(known) == count else _UNKNOWN_CARD * count


def _toml(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return str(value)
