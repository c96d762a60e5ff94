"""Currencies and amounts: how many decimals each has, and amounts of minor units as text and back.

This is the house's one table of decimals (ISO 4217). Amounts are whole minor units everywhere; only what a person reads
or types is in the currency's own unit, and it is made and taken here, in whole numbers throughout.
"""

from __future__ import annotations

import re
from typing import Final

# Active codes of ISO 4217 that people pay with; every other code is play money.
_ISO_CODES: Final = (
    "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF "
    "CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG "
    "HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA "
    "MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD "
    "RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX "
    "USD UYU UZS VED VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG"
)
ISO_CODES: Final = frozenset(_ISO_CODES.split())
_NO_DECIMALS_CODES: Final = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF"
_NO_DECIMALS: Final = frozenset(_NO_DECIMALS_CODES.split())
_THREE_DECIMALS: Final = frozenset({"BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"})

WHOLE_DIGITS_MAX: Final = 15
_AMOUNT: Final = re.compile(rf"([+-]?)([0-9]{{1,{WHOLE_DIGITS_MAX}}})(?:\.([0-9]+))?", re.ASCII)


class NoAmountError(ValueError):
    """A text that is no amount in its currency; the message says to a person what one looks like."""


def is_play_money(currency: str) -> bool:
    """Whether the currency is no real one."""
    return currency not in ISO_CODES


def decimals(currency: str) -> int:
    """How many decimals the currency's unit has: 0 for play money."""
    if is_play_money(currency) or currency in _NO_DECIMALS:
        return 0
    return 3 if currency in _THREE_DECIMALS else 2


def number(amount_minor: int, currency: str) -> str:
    """The amount in the currency's unit without sign or code: `1`, `1.50`; decimals all or none."""
    whole, _, part = _plain(amount_minor, currency).partition(".")
    return f"{whole}.{part}" if part.strip("0") else whole


def grouped(amount_minor: int, currency: str) -> str:
    """The amount in the currency's unit with all of its decimals, thousands apart: `1,234.50`, `1,234` (JPY)."""
    sign = "-" * (amount_minor < 0)
    whole, point, part = _plain(abs(amount_minor), currency).partition(".")
    return f"{sign}{int(whole):,}{point}{part}"


def parse(text: str, currency: str) -> int:
    """Minor units of an amount that a person typed in the currency's unit: `12`, `-12.50`, `+0.250` (KWD).

    The way back from `number`: decimals all or none, so that no `12.5` is taken for what it does not say. Raises
    `NoAmountError`.
    """
    places = decimals(currency)
    example = f"like {number(12 * 10**places, currency)}" + (f" or 12.{'50'.ljust(places, '0')}" if places else "")
    found = _AMOUNT.fullmatch(text)
    if found is None:
        raise NoAmountError(f"an amount in {currency} is {example}")
    sign, whole, part = found[1], found[2], found[3] or ""
    if part and len(part) != places:
        has = f"{places} decimals" if places else "no decimals"
        raise NoAmountError(f"{currency} has {has}: an amount is {example}")
    amount_minor = int(whole + part.ljust(places, "0"))
    return -amount_minor if sign == "-" else amount_minor


def _plain(amount_minor: int, currency: str) -> str:
    places = decimals(currency)
    whole, part = divmod(abs(amount_minor), 10**places)
    text = f"{'-' * (amount_minor < 0)}{whole}"
    return f"{text}.{part:0{places}d}" if places else text
