"""Display names: which may be taken, and which of them look alike (docs/ledger.md, Display names)."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_FORM: Final = re.compile(r"[\w.-]{2,24}")

# Scripts that are written together; every other name keeps to one. Named as Unicode names characters.
_EAST_ASIAN: Final = frozenset({"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "BOPOMOFO"})

_ACCENTS: Final = re.compile("[\u0300-\u036f]")

# Letters that are taken for another in either case, after case was folded. Written as escapes, since they look alike.
_LOOK_ALIKES: Final = str.maketrans(
    "01"
    "\u0131\u0142\u00f8\u0111"  # Latin: dotless i, and l, o, d with a stroke
    "\u0430\u0432\u0435\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445\u0456\u0458\u0455\u04bb"  # Cyrillic
    "\u03b1\u03b2\u03b5\u03b6\u03b7\u03b9\u03ba\u03bc\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7",  # Greek
    "olilodabekmhopctyxijshabezhikmvoptux",
)


def fault_of(display_name: str) -> str:
    """What is wrong with a display name's form; empty where nothing is."""
    if not _FORM.fullmatch(display_name):
        return "2 to 24 letters, digits, - _ or ."
    if not any(character.isalnum() for character in display_name):
        return "at least one letter or digit"
    if len({_script(character) for character in _compatible(display_name) if character.isalpha()}) > 1:
        return "letters of one script"
    return ""


def display_key(display_name: str) -> str:
    """What is unique about a display name: two with the same key are taken for each other."""
    folded = _compatible(display_name).casefold()
    return _ACCENTS.sub("", unicodedata.normalize("NFKD", folded)).translate(_LOOK_ALIKES)


def _compatible(display_name: str) -> str:
    return unicodedata.normalize("NFKC", display_name)


def _script(letter: str) -> str:
    script = unicodedata.name(letter, "UNKNOWN").partition(" ")[0]
    return "EAST ASIAN" if script in _EAST_ASIAN else script
