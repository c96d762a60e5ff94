"""Ways to change an exported hand of which a verifier must say where: a card, a salt, an event, the events' order."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

from services.deck.shuffling import PlayerSeed
from services.deck.values import ReshuffleRule
from tests.unit.deck.exported import Script

# Seven seats, a fold, discards that are shuffled and dealt again, a late fourth card, two shown hands, players' seeds.
RESHUFFLED = Script(
    seats=(1, 3, 4, 6, 7, 8, 9),
    button=4,
    folds=(7,),
    discards={6: 3, 8: 3, 9: 4, 1: 3, 3: 2, 4: 3},
    four_card_draw=9,
    rule=ReshuffleRule.STUB_FIRST,
    cut=b"cut",
    player_seeds=(PlayerSeed(3, b"mine"), PlayerSeed(8, b"another")),
    shown=(8, 6),
)


def flipped(text: str) -> str:
    """Other hex."""
    return ("1" if text[0] == "0" else "0") + text[1:]


def other_card(card: str) -> str:
    """A card of the same rank."""
    return card[0] + ("h" if card[1] != "h" else "s")


@dataclass(frozen=True)
class Tampering:
    """One change; `change` gives the changed hand, and the words that both verifiers must say of its place."""

    name: str
    change: Callable[[dict], tuple[dict, str]]


def _place(hand: dict, reshuffled: bool) -> dict:
    return next(each for each in hand["proof"]["places"] if (each["shuffle"] > 0) is reshuffled)


def _spoken(place: dict) -> str:
    return f"shuffle {place['shuffle']}, place {place['place']}"


def _in_place(field: str, change: Callable[[str], str], *, reshuffled: bool) -> Callable[[dict], tuple[dict, str]]:
    def tamper(hand: dict) -> tuple[dict, str]:
        changed = copy.deepcopy(hand)
        place = _place(changed, reshuffled)
        place[field] = change(place[field])
        return changed, f"place: {_spoken(place)}: card, salt and path do not lead to the root"

    return tamper


def _seat_card(hand: dict) -> tuple[dict, str]:
    """A card of the viewer's own, as the file tells it: the deal and the events say so alike."""
    changed = copy.deepcopy(hand)
    seat = next(each for each in changed["seats"] if each["seat"] == changed["your_seat"])
    at = next(n for n, card in enumerate(seat["dealt"]) if card not in seat["discarded"])
    card, other = seat["dealt"][at], other_card(seat["dealt"][at])
    dealt = next(event["body"] for event in changed["events"] if event["type"] == "cards_dealt")
    for cards in (seat["dealt"], seat["final_cards"], dealt["your_cards"]):
        cards[:] = [other if each == card else each for each in cards]
    order = dealt["seats"]
    place = at * len(order) + order.index(seat["seat"])
    return changed, f"card: seat {seat['seat']}, shuffle 0, place {place} holds {card}, the file says {other}"


def _drawn_card(hand: dict) -> tuple[dict, str]:
    """A card that was drawn from reshuffled discards, changed wherever the file tells it."""
    changed = copy.deepcopy(hand)
    seat = next(each for each in changed["seats"] if each["seat"] == changed["your_seat"])
    places = {place["card"]: place for place in changed["proof"]["places"] if place["shuffle"] > 0}
    card = next(each for each in seat["drawn"] if each in places)
    drawn = [event["body"]["your_cards"] for event in changed["events"] if event["type"] == "cards_drawn"]
    for cards in (seat["drawn"], seat["final_cards"], *drawn):
        cards[:] = [other_card(card) if each == card else each for each in cards]
    return changed, f"card: seat {seat['seat']}, {_spoken(places[card])} holds {card}, the file says {other_card(card)}"


def _event(kind: str, field: str, change: Callable, found: int, words: str) -> Callable[[dict], tuple[dict, str]]:
    """Changes a field of the first event of a kind; it is found out so many events later."""

    def tamper(hand: dict) -> tuple[dict, str]:
        changed = copy.deepcopy(hand)
        at = next(n for n, event in enumerate(changed["events"]) if event["type"] == kind)
        changed["events"][at]["body"][field] = change(changed["events"][at]["body"][field])
        event = changed["events"][at + found]
        return changed, words if not found else f"events: event {event['sequence']} ({event['type']}): {words}"

    return tamper


def _pot(field: str, change: Callable) -> Callable[[dict], tuple[dict, str]]:
    """The summary of the pots alone, which the events contradict."""

    def tamper(hand: dict) -> tuple[dict, str]:
        changed = copy.deepcopy(hand)
        changed["pots"][0][field] = change(changed["pots"][0][field])
        return changed, "chips: the hand's pots are not those that its events award"

    return tamper


def _other_seats(winners: dict) -> dict:
    return {str(int(seat) % 9 + 1): won for seat, won in winners.items()}


def _taken_out(hand: dict) -> tuple[dict, str]:
    """A reshuffle that is not told: the draws after it have no card to come from."""
    changed = copy.deepcopy(hand)
    at = next(n for n, event in enumerate(changed["events"]) if event["type"] == "deck_reshuffled")
    del changed["events"][at]
    return changed, f"events: event {changed['events'][at]['sequence']} (cards_drawn): the stub has no card for it"


def _swapped(hand: dict) -> tuple[dict, str]:
    """Two events in the other order, each with its own number."""
    changed = copy.deepcopy(hand)
    at = next(n for n, event in enumerate(changed["events"]) if event["type"] == "cards_discarded")
    first, second = changed["events"][at : at + 2]
    changed["events"][at : at + 2] = [second, first]
    return changed, f"order: event {first['sequence']} follows event {second['sequence']}"


def _swapped_and_renumbered(hand: dict) -> tuple[dict, str]:
    """Two draws in the other order, numbered as if they had come so."""
    changed, _ = _swapped(hand)
    at = next(n for n, event in enumerate(changed["events"]) if event["type"] == "cards_drawn")
    first, second = changed["events"][at : at + 2]
    first["sequence"], second["sequence"] = second["sequence"], first["sequence"]
    return changed, f"events: event {first['sequence']} (cards_drawn)"


TAMPERINGS = (
    Tampering("card of a place", _in_place("card", other_card, reshuffled=False)),
    Tampering("card of a reshuffled place", _in_place("card", other_card, reshuffled=True)),
    Tampering("salt", _in_place("salt", flipped, reshuffled=False)),
    Tampering("salt of a reshuffled place", _in_place("salt", flipped, reshuffled=True)),
    Tampering("card of a seat", _seat_card),
    Tampering("card drawn from a reshuffle", _drawn_card),
    Tampering("event: root", _event("deck_committed", "root", flipped, 0, "root: shuffle 0 of the proof")),
    Tampering(
        "event: cut", _event("deck_committed", "cut", flipped, 0, "(deck_committed): the cut is not the proof's")
    ),
    Tampering(
        "event: reshuffle",
        _event("deck_reshuffled", "cards", lambda cards: cards + 1, 1, "20 cards are reshuffled, 19"),
    ),
    Tampering(
        "event: discards", _event("cards_discarded", "count", lambda count: count - 1, 1, "3 cards for 2 discards")
    ),
    Tampering("pot's winner", _pot("winners", _other_seats)),
    Tampering("pot's amount", _pot("amount_minor", lambda amount: amount + 1)),
    Tampering("event taken out", _taken_out),
    Tampering("order", _swapped),
    Tampering("order, renumbered", _swapped_and_renumbered),
)
