"""The one table of decimals, and amounts as text and back."""

from __future__ import annotations

import pytest

from services.runtime.money import NoAmountError, decimals, grouped, number, parse

# Minor units, currency, as it is written in full, and as it is written short. Worked out by hand from ISO 4217.
WRITTEN = [
    (1250, "EUR", "12.50", "12.50"),
    (1200, "EUR", "12.00", "12"),
    (5, "EUR", "0.05", "0.05"),
    (-5, "USD", "-0.05", "-0.05"),
    (123_456_789, "USD", "1,234,567.89", "1234567.89"),
    (12, "JPY", "12", "12"),
    (1_200, "JPY", "1,200", "1200"),
    (-1_200, "KRW", "-1,200", "-1200"),
    (1_250, "KWD", "1.250", "1.250"),
    (12_000, "BHD", "12.000", "12"),
    (1, "TND", "0.001", "0.001"),
    (150, "CHIPS", "150", "150"),
    (12_345, "PLAY", "12,345", "12345"),
    (0, "EUR", "0.00", "0"),
    (0, "CHIPS", "0", "0"),
    (2**63 - 1, "EUR", "92,233,720,368,547,758.07", "92233720368547758.07"),
]


@pytest.mark.parametrize(("minor", "currency", "full", "short"), WRITTEN)
def test_an_amount_has_the_decimals_of_its_currency(minor, currency, full, short):
    assert (grouped(minor, currency), number(minor, currency)) == (full, short)


@pytest.mark.parametrize(("minor", "currency", "full", "short"), WRITTEN[:-1])
def test_what_is_written_is_read_as_the_same_amount(minor, currency, full, short):
    assert parse(short, currency) == minor
    assert parse(full.replace(",", ""), currency) == minor


def test_a_sign_may_stand_in_front():
    assert [parse(text, "EUR") for text in ("+12.50", "-12.50", "12")] == [1250, -1250, 1200]


@pytest.mark.parametrize(
    ("text", "currency", "told"),
    [
        ("12.5", "JPY", "JPY has no decimals"),
        ("12.00", "JPY", "JPY has no decimals"),
        ("12.50", "CHIPS", "CHIPS has no decimals"),
        ("12.5", "EUR", "EUR has 2 decimals"),
        ("12.505", "EUR", "EUR has 2 decimals"),
        ("12.50", "KWD", "KWD has 3 decimals"),
        ("12.5000", "KWD", "KWD has 3 decimals"),
        *((text, "EUR", "like 12 or 12.50") for text in ("", ".5", "12.", "1,50", "1e9", "NaN", "9" * 16, "١٢", " 1")),
    ],
)
def test_what_is_no_amount_of_the_currency_is_refused_in_words(text, currency, told):
    with pytest.raises(NoAmountError, match=told):
        parse(text, currency)


def test_there_are_three_kinds_of_currencies():
    assert [decimals(code) for code in ("EUR", "JPY", "KWD", "CHIPS", "XXXX")] == [2, 0, 3, 0, 0]
