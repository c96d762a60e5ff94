"""Display names that are taken for each other are one name; what no reader could tell apart is refused."""

from __future__ import annotations

import asyncio

import pytest

from services.wallet import commands as c
from services.wallet.names import display_key, fault_of
from tests.integration.wallet.house import refused

# Written as escapes: the characters look like the ones beside them.
FULLWIDTH = "\uff41\uff4c\uff49\uff43\uff45"
ONE_CYRILLIC = "\u0430lice"
DOTLESS = "al\u0131ce"
ALL_CYRILLIC = "\u0441\u043e\u0441\u043e"
ALL_GREEK = "\u03bf\u03c1\u03bf"


@pytest.mark.parametrize("other", ["ALICE", "Alice", FULLWIDTH, FULLWIDTH.upper(), DOTLESS, "\u00e1lice", "a\uff4cice"])
async def test_a_name_that_looks_like_one_that_is_taken_is_taken(ledger, other):
    await ledger.create_player(c.CreatePlayer("1", "one", "alice"), caller="person/op")
    await refused(ledger.create_player(c.CreatePlayer("2", "two", other), caller="person/op"), "DISPLAY_NAME_TAKEN")


async def test_two_that_look_alike_at_once_make_one_player(open_ledger):
    ledger = await open_ledger(group_wait_ms=20)
    outcomes = await asyncio.gather(
        *(
            ledger.create_player(c.CreatePlayer(name, player, name), caller="person/op")
            for player, name in (("one", "coco"), ("two", ALL_CYRILLIC))
        ),
        return_exceptions=True,
    )
    assert [getattr(outcome, "reason", "OK") for outcome in outcomes] == ["OK", "DISPLAY_NAME_TAKEN"]


MIXED = [ONE_CYRILLIC, "x\u03b1", "\u0430\u03b1"]
NO_NAMES = ["..", "--", "__", "-.", "ali\u200dce", "a b"]


@pytest.mark.parametrize("name", MIXED + NO_NAMES)
async def test_scripts_are_not_mixed_and_a_name_has_a_letter_or_digit(ledger, name):
    call = ledger.create_player(c.CreatePlayer("1", "one", name), caller="person/op")
    await refused(call, "INVALID_REQUEST", field="display_name")
    # Nothing of it is stored: the same id may be sent again with another name.
    await ledger.create_player(c.CreatePlayer("1", "one", "fine"), caller="person/op")


def test_keys_are_those_worked_out_by_hand():
    assert display_key("Bob-01") == "bob-ol"
    assert display_key("STRASSE") == display_key("stra\u00dfe") == "strasse"
    assert display_key(ALL_CYRILLIC) == "coco"
    assert display_key(ALL_GREEK) == "opo"
    # Marks that make another letter, not an accented one, are kept.
    assert display_key("\u304c") != display_key("\u304b")


def test_names_of_one_script_are_names():
    japanese, korean, russian, arabic = (
        "\u6771\u4eac\u30bf\u30ef\u30fc\u306e",
        "\ud55c\uad6d",
        "\u0418\u0432\u0430\u043d",
        "\u0639\u0644\u064a",
    )
    for name in (japanese, korean, russian, arabic, "Zo\u00eb", "x1", "42", "\u00df\u00df"):
        assert fault_of(name) == "", name
