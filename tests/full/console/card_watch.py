"""What a browser is sent, read for cards: which ones stand where, held against what each hand showed to everybody."""

from __future__ import annotations

import html
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

_RANKS = {"10": "T"}
_SIGNS = {"♣": "c", "♦": "d", "♥": "h", "♠": "s"}
_DRAWN = re.compile(r"(?<![0-9A-Za-z])(10|[2-9JQKA])([♣♦♥♠])")
_NAMED = re.compile(r"(?<![0-9A-Za-z])(10|[2-9JQKA]) of (clubs|diamonds|hearts|spades)")
# A card as the contract writes it, as a value of its own.
_CODED = re.compile(r"""['">]([2-9TJQKA][cdhs])['"<]""")
_FACTS = re.compile(r"hand (\d+), ([a-z ]+?)(?:, <strong|; pot)")
_SHOWS = re.compile(r"seat \d+ shows ([^:]+):")

# At these a table may have cards open: the hand is over, or none has begun since.
OPEN_STAGES = frozenset({"finished", "between hands"})

# A line of events may be of a hand so many before that of the picture beside it.
LINES_BEHIND_MAX = 20

Hand = tuple[str, int]


def cards_in(text: str) -> set[str]:
    """Every card in a text, in any of the ways in which the console or the contract writes one."""
    plain = html.unescape(text)
    found = {f"{_RANKS.get(rank, rank)}{_SIGNS[sign]}" for rank, sign in _DRAWN.findall(plain)}
    found |= {f"{_RANKS.get(rank, rank)}{suit[0]}" for rank, suit in _NAMED.findall(plain)}
    return found | set(_CODED.findall(plain))


@dataclass
class CardWatch:
    """Takes in what was sent and what was shown; `leaks` tells, once all is in, which cards nobody had shown.

    `shown` are the cards of each hand, by `(table, hand)`, as a player who merely watched was told of them, and
    `first_hands` the first one of each table that was watched; what is before it is not judged.
    """

    shown: dict[Hand, set[str]] = field(default_factory=lambda: defaultdict(set))
    first_hands: dict[str, int] = field(default_factory=dict)
    seen: list[tuple[str, Hand, frozenset[str]]] = field(default_factory=list)
    lines: list[tuple[str, Hand, frozenset[str]]] = field(default_factory=list)
    pieces: int = 0
    closed_pictures: int = 0
    leaks: list[str] = field(default_factory=list)

    def page(self, where: str, text: str, hand: Hand | None = None) -> None:
        """A page that may have cards of one finished hand, or none at all."""
        self.pieces += 1
        cards = cards_in(text)
        if hand is not None:
            self.seen.append((where, hand, frozenset(cards)))
        elif cards:
            self.leaks.append(f"{where}: {sorted(cards)}")

    def table_page(self, where: str, table: str, text: str) -> None:
        """A table's page: cards stand in its picture alone, which says the hand and the stage."""
        before, _, rest = text.partition('<div id="drawn">')
        drawn, _, after = rest.partition("<h2 id=")
        self.page(where, before + after)
        self.picture(where, table, drawn)

    def piece(self, where: str, table: str, packed: str) -> None:
        """A piece of a table's live page, as JSON."""
        piece = json.loads(packed)
        self.picture(where, table, piece.pop("parts", {}).pop("drawn", ""))
        for line in piece.pop("lines", []):
            self.line(where, table, int(piece.get("hand", 0)), line)
        self.page(where, json.dumps(piece, ensure_ascii=False))

    def picture(self, where: str, table: str, drawn: str) -> None:
        """A drawn table."""
        facts = _FACTS.search(drawn)
        if not drawn or facts is None:
            self.page(where, drawn)
            return
        self.pieces += 1
        cards, stage = cards_in(drawn), facts[2]
        if stage not in OPEN_STAGES:
            self.closed_pictures += 1
            if cards:
                self.leaks.append(f"{where}: {sorted(cards)} in the {stage} of hand {facts[1]}")
        self.seen.append((where, (table, int(facts[1])), frozenset(cards)))

    def line(self, where: str, table: str, hand: int, line: str) -> None:
        """A line of events: only that of a shown hand has cards. It may be of the hand before the picture's."""
        told = _SHOWS.match(line)
        cards = cards_in(line)
        if cards and told is None:
            self.leaks.append(f"{where}: {line}")
        elif cards:
            self.lines.append((where, (table, hand), frozenset(cards)))

    def not_shown(self) -> Iterator[str]:
        """Once the run is over: every leak, those of hands that showed other cards included."""
        yield from self.leaks
        for where, hand, cards in self.seen:
            hidden = cards - self.shown.get(hand, set())
            if hidden and hand[1] >= self.first_hands.get(hand[0], 0):
                yield f"{where}: {sorted(hidden)} of hand {hand}"

        for where, (table, hand), cards in self.lines:
            if not any(cards <= self.shown.get((table, hand - back), set()) for back in range(LINES_BEHIND_MAX)):
                yield f"{where}: {sorted(cards)} told at hand {hand}"

    def cards_seen(self) -> int:
        """How many cards were found in all that was sent."""
        return sum(len(cards) for _, _, cards in [*self.seen, *self.lines])
