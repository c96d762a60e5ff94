"""Amounts as text. Real money is written in its own unit with a sign or code, play money as a plain number."""

from __future__ import annotations

from typing import Final

from services.runtime.money import is_play_money, number

SIGNS: Final = {"USD": "$", "EUR": "€", "GBP": "£"}


def amount(amount_minor: int, currency: str) -> str:
    """The amount as people write it: `$1.50`, `150` (play money), `7 PLN`."""
    plain = number(amount_minor, currency)
    if is_play_money(currency):
        return plain
    sign = SIGNS.get(currency)
    return f"{plain} {currency}" if sign is None else f"{sign}{plain}"
