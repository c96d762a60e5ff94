"""What a bot does in a spot: sound enough to look like play, loose enough to try everything the rules allow."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fivedraw.table.v1 import table_pb2, table_service_pb2

Action = table_service_pb2.Action

RANKS: Final = "23456789TJQKA"
CUT_BYTES: Final = 16

# How good five cards look before anybody else's are known, from 0 to 1, by what they are.
_NOTHING = 0.12
_PAIR = 0.42
_TWO_PAIR = 0.68
_TRIPS = 0.8
_STRAIGHT_OR_BETTER = 0.93


@dataclass(frozen=True, slots=True)
class Temper:
    """A bot's character, each part from 0 to 1."""

    looseness: float
    aggression: float
    whim: float

    @classmethod
    def drawn(cls, rng: random.Random) -> Temper:
        """A character by chance."""
        return cls(rng.uniform(0.3, 0.7), rng.uniform(0.2, 0.7), rng.uniform(0.02, 0.08))


@dataclass(frozen=True, slots=True)
class Spot:
    """What a bot looks at when it is to act; amounts in minor units."""

    cards: tuple[str, ...]
    legal: table_pb2.LegalActions
    pot_minor: int
    stack_minor: int


def choose(spot: Spot, temper: Temper, rng: random.Random) -> Action:
    """A legal action for the spot. Raises `ValueError` where nothing at all is legal."""
    legal = spot.legal
    if legal.cut:
        return Action(kind=table_pb2.ACTION_KIND_CUT, cut=os.urandom(CUT_BYTES))
    if legal.discard:
        return Action(kind=table_pb2.ACTION_KIND_DISCARD, cards=discards(spot.cards, legal.max_discards, temper, rng))
    return _bet(spot, temper, rng)


def discards(cards: Sequence[str], most: int, temper: Temper, rng: random.Random) -> list[str]:
    """Which cards to give up, at most `most`."""
    if rng.random() < temper.whim:
        return rng.sample(list(cards), rng.randint(0, min(most, len(cards))))
    if strength(cards) >= _STRAIGHT_OR_BETTER:
        return []
    kept = _worth_keeping(cards)
    given = [card for card in cards if card not in kept]
    # The lowest go first where the limit is tight.
    given.sort(key=lambda card: RANKS.index(card[0]))
    return given[:most]


def strength(cards: Sequence[str]) -> float:
    """How good the cards look, from 0 to 1."""
    if len(cards) < 5:
        return _NOTHING
    counts = sorted(Counter(card[0] for card in cards).values(), reverse=True)
    high = max(RANKS.index(card[0]) for card in cards) / 100
    if len({card[1] for card in cards}) == 1 or _is_straight(cards) or counts[0] == 4 or counts[:2] == [3, 2]:
        return _STRAIGHT_OR_BETTER
    if counts[0] == 3:
        return _TRIPS
    if counts[:2] == [2, 2]:
        return _TWO_PAIR
    if counts[0] == 2:
        return _PAIR + _pair_height(cards)
    return _NOTHING + high


def _bet(spot: Spot, temper: Temper, rng: random.Random) -> Action:
    legal = spot.legal
    feeling = strength(spot.cards) + rng.gauss(0.0, 0.12)
    bluffing = rng.random() < temper.whim
    if (feeling > 1.0 - 0.6 * temper.aggression or bluffing) and (legal.HasField("raise") or legal.HasField("bet")):
        return _raise(spot, feeling, temper, rng)
    if legal.check:
        return Action(kind=table_pb2.ACTION_KIND_CHECK)
    if legal.call and (feeling > _price(spot) * (1.1 - temper.looseness) or not legal.fold):
        return Action(kind=table_pb2.ACTION_KIND_CALL)
    if legal.fold:
        return Action(kind=table_pb2.ACTION_KIND_FOLD)
    if legal.HasField("bet") or legal.HasField("raise"):
        return _raise(spot, feeling, temper, rng)
    raise ValueError("nothing is legal here")


def _raise(spot: Spot, feeling: float, temper: Temper, rng: random.Random) -> Action:
    legal = spot.legal
    betting = legal.HasField("bet")
    levels: table_pb2.LevelRange = legal.bet if betting else getattr(legal, "raise")
    kind = table_pb2.ACTION_KIND_BET if betting else table_pb2.ACTION_KIND_RAISE
    most = max(levels.least_minor, levels.most_minor)
    # Mostly the least, often about the pot, now and then everything.
    if rng.random() < temper.whim or (feeling > 0.95 and rng.random() < 0.25):
        return Action(kind=kind, to_minor=most)
    if rng.random() < temper.aggression:
        wished = levels.least_minor + int(spot.pot_minor * rng.uniform(0.3, 1.0))
        return Action(kind=kind, to_minor=min(most, wished))
    return Action(kind=kind, to_minor=levels.least_minor)


def _price(spot: Spot) -> float:
    """The part of the pot after a call that the call itself is, and a little for what it costs of the stack."""
    call = spot.legal.call_minor
    part = call / max(1, spot.pot_minor + call)
    return part + 0.4 * min(1.0, call / max(1, spot.stack_minor))


def _worth_keeping(cards: Sequence[str]) -> set[str]:
    by_rank = Counter(card[0] for card in cards)
    grouped = {card for card in cards if by_rank[card[0]] >= 2}
    if grouped:
        return grouped
    suit, in_suit = Counter(card[1] for card in cards).most_common(1)[0]
    if in_suit == 4:
        return {card for card in cards if card[1] == suit}
    return {max(cards, key=lambda card: RANKS.index(card[0]))}


def _pair_height(cards: Sequence[str]) -> float:
    by_rank = Counter(card[0] for card in cards)
    rank = next(rank for rank, count in by_rank.items() if count == 2)
    return RANKS.index(rank) / 100


def _is_straight(cards: Sequence[str]) -> bool:
    places = sorted({RANKS.index(card[0]) for card in cards})
    if len(places) < 5:
        return False
    return places[-1] - places[0] == 4 or places == [0, 1, 2, 3, 12]
