"""Amounts as text. Real money is written in its own unit with a sign or code, play money as a plain number."""

from __future__ import annotations

from typing import Final

SIGNS: Final = {"USD": "$", "EUR": "€", "GBP": "£"}

# Active codes of ISO 4217 that people pay with; every other code is play money.
_ISO_CODES: Final = (
    "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF "
    "CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG "
    "HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA "
    "MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD "
    "RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX "
    "USD UYU UZS VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW ZWG"
)
ISO_CODES: Final = frozenset(_ISO_CODES.split())
_NO_DECIMALS_CODES: Final = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF"
_NO_DECIMALS: Final = frozenset(_NO_DECIMALS_CODES.split())
_THREE_DECIMALS: Final = frozenset({"BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"})


def is_play_money(currency: str) -> bool:
    """Whether the currency is no real one."""
    return currency not in ISO_CODES


def decimals(currency: str) -> int:
    """How many decimals the currency's unit has: 0 for play money."""
    if is_play_money(currency) or currency in _NO_DECIMALS:
        return 0
    return 3 if currency in _THREE_DECIMALS else 2


def number(amount_minor: int, currency: str) -> str:
    """The amount in the currency's unit without sign: `1`, `1.50`; decimals all or none."""
    places = decimals(currency)
    sign, digits = "-" * (amount_minor < 0), abs(amount_minor)
    whole, part = divmod(digits, 10**places)
    return f"{sign}{whole}.{part:0{places}d}" if part else f"{sign}{whole}"


def amount(amount_minor: int, currency: str) -> str:
    """The amount as people write it: `$1.50`, `150` (play money), `7 PLN`."""
    plain = number(amount_minor, currency)
    if is_play_money(currency):
        return plain
    sign = SIGNS.get(currency)
    return f"{plain} {currency}" if sign is None else f"{sign}{plain}"
