"""Cards as whole numbers 0..51 (2c 2d 2h 2s 3c ... As) and as two characters (docs/fairness.md, section Cards)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

RANKS: Final = "23456789TJQKA"
SUITS: Final = "cdhs"
TEXTS: Final = tuple(rank + suit for rank in RANKS for suit in SUITS)

_NUMBERS: Final = {text: number for number, text in enumerate(TEXTS)}


def text_of(card: int) -> str:
    """The two characters of a card."""
    return TEXTS[card]


def texts_of(cards: Iterable[int]) -> tuple[str, ...]:
    """The two characters of each card."""
    return tuple(TEXTS[card] for card in cards)


def number_of(text: str) -> int | None:
    """The number of a card, or `None` where the text is not one."""
    return _NUMBERS.get(text)
