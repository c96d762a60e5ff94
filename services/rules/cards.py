"""Cards as whole numbers: rank * 4 + suit, ranks 2..A as 0..12, suits c d h s as 0..3, so 2c is 0 and As is 51."""

from __future__ import annotations

from collections.abc import Iterable

RANKS = "23456789TJQKA"
SUITS = "cdhs"
DECK = tuple(range(52))
CARD_TEXTS = tuple(rank + suit for rank in RANKS for suit in SUITS)
_CARDS = {text: card for card, text in enumerate(CARD_TEXTS)}


class CardUnknown(ValueError):
    """A text that is no card; `text` is what was given."""

    def __init__(self, text: str) -> None:
        super().__init__(f"{text!r} is no card; write a rank of {RANKS} and a suit of {SUITS}, as in 'Td'")
        self.text = text


def parse_card(text: str) -> int:
    """The card that `text` names, as in "Td". Raises `CardUnknown`."""
    card = _CARDS.get(text)
    if card is None:
        raise CardUnknown(text)
    return card


def parse_cards(text: str | Iterable[str]) -> tuple[int, ...]:
    """The cards of "Ah Kd", "Ah,Kd", "AhKd" or ["Ah", "Kd"], in the order given. Raises `CardUnknown`."""
    if isinstance(text, str):
        letters = "".join(text.replace(",", " ").split())
        text = [letters[index : index + 2] for index in range(0, len(letters), 2)]
    return tuple(parse_card(part) for part in text)


def format_card(card: int) -> str:
    """The text of a card, as in "Td"."""
    return CARD_TEXTS[card]


def format_cards(cards: Iterable[int]) -> str:
    """The texts of cards with a space between them, in the order given."""
    return " ".join(CARD_TEXTS[card] for card in cards)
