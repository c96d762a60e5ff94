"""Looks for cards in anything a house writes: text, JSON, protobuf, msgpack; and tells hidden ones from shown ones."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from services.rules.cards import parse_card

_CARD = rb"[2-9TJQKA][cdhs]"
# Repeated strings of a protobuf message: one byte of tag, the length 2, the card.
_PROTOBUF = re.compile(rb"\x02" + _CARD + rb"(?:[\x00-\x7f]\x02" + _CARD + rb"){1,9}")
# Cards with the same separator between them; without one they must be more, and a word of their own.
_SEPARATED = re.compile(
    rb"(?<![0-9A-Za-z+/=_-])"
    + _CARD
    + rb"""(?P<by>['"]?[ ,;|/\n]{1,3}['"]?)"""
    + _CARD
    + rb"(?:(?P=by)"
    + _CARD
    + rb")*"
)
_JOINED = re.compile(rb"(?<![0-9A-Za-z+/_-])(?:" + _CARD + rb"){3,10}(?![0-9A-Za-z+/_-])")
# A msgpack array of five small numbers; not the last bytes of an amount before the next entry of a protobuf map.
_NUMBERS = re.compile(rb"\x95(?![\x00-\x33][\x0a\x12\x1a\x22\x2a\x32].\x08)([\x00-\x33]{5})", re.DOTALL)
_NUMBERS_TEXT = re.compile(rb"\[(\d{1,2}(?:, ?\d{1,2}){4})\]")
_ONE_QUOTED = re.compile(rb"""['"]""" + _CARD + rb"""['"]""")

_TEXT = re.compile(_CARD)
_PRINTABLE = re.compile(rb"[\x20-\x7e\t\r\n]*")

Cards = frozenset[int]


@dataclass
class Truth:
    """What was dealt in a run, by what its owners were told, and what was shown to everybody."""

    hidden: set[Cards] = field(default_factory=set)
    shown: set[Cards] = field(default_factory=set)

    def add(self, dealt: Iterable[str], final: Iterable[str], *, was_shown: bool) -> None:
        """One seat's hand."""
        first, last = cards_of(dealt), cards_of(final)
        if was_shown:
            self.shown.add(last)
        else:
            self.hidden.add(last)
        if first != last or not was_shown:
            self.hidden.add(first)
        if len(first - last) >= 2:
            self.hidden.add(first - last)
        if len(last - first) >= 2 and not was_shown:
            self.hidden.add(last - first)

    def is_public(self, found: Cards) -> bool:
        """Whether these cards are part of one hand that was shown."""
        return any(found <= shown for shown in self.shown)

    def is_hidden(self, found: Cards) -> bool:
        """Whether these cards are part of one hand that was never shown."""
        return any(found <= hidden for hidden in self.hidden)


def cards_of(texts: Iterable[str]) -> Cards:
    """A set of cards."""
    return frozenset(parse_card(text) for text in texts)


def hidden_cards(content: bytes, truth: Truth) -> Iterator[str]:
    """Every place in `content` where cards stand that were not shown."""
    for pattern in (_PROTOBUF, _SEPARATED):
        for found in pattern.finditer(content):
            if not truth.is_public(_of(found[0])) and not _is_chance(content, found):
                yield _told(content, found)
    for found in _JOINED.finditer(content):
        cards = _of(found[0])
        if len(cards) >= 3 and truth.is_hidden(cards) and not truth.is_public(cards):
            yield _told(content, found)
    for found in _NUMBERS.finditer(content):
        # Two bytes alike are no hand, whatever they look like together.
        if len(set(found[1])) == len(found[1]) and frozenset(found[1]) in truth.hidden - truth.shown:
            yield _told(content, found)
    for found in _NUMBERS_TEXT.finditer(content):
        numbers = frozenset(int(number) for number in found[1].split(b","))
        if len(numbers) == 5 and numbers in truth.hidden - truth.shown:
            yield _told(content, found)


def _is_chance(content: bytes, found: re.Match[bytes]) -> bool:
    """Whether two cards stand amid sealed bytes: of a hundred million of those, one pair looks like `9h Jc`.

    Two that were written stand in text, or in a string with its length before it (protobuf, msgpack).
    """
    if found.re is not _SEPARATED or len(_TEXT.findall(found[0])) > 2:
        return False
    before, after = content[max(0, found.start() - 4) : found.start()], content[found.end() : found.end() + 4]
    length = len(found[0])
    return not (_PRINTABLE.fullmatch(before + after) or (before and before[-1] in (length, 0xA0 | length)))


def single_cards(content: bytes) -> list[str]:
    """Cards that stand alone in quotes, as a field of a log line or a label of a metric would."""
    return [_told(content, found) for found in _ONE_QUOTED.finditer(content)]


def unescaped(line: bytes) -> bytes:
    r"""What Redis' MONITOR wrote with escapes such as `\x02`, as the bytes that it stands for."""
    return codecs.escape_decode(line)[0]


def _of(run: bytes) -> Cards:
    return cards_of(found.decode() for found in _TEXT.findall(run))


def _told(content: bytes, found: re.Match[bytes]) -> str:
    around = content[max(0, found.start() - 60) : found.end() + 40]
    return f"{found[0]!r} in {around!r}"
