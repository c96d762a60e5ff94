"""Names and numbers of hands."""

from __future__ import annotations

import pytest

from services.history.names import HandKey, hand_id, parse_hand, parse_player, parse_rulebook, parse_table
from services.runtime.errors import Fault


def test_a_hands_number_is_the_same_for_ever() -> None:
    # Worked out with `printf tables/red/hands/1 | sha256sum`: the first 8 bytes, shifted right by one.
    assert hand_id(HandKey("red", 1)) == 1295202449916377074
    assert hand_id(HandKey("red", 1), 1) != 1295202449916377074


def test_numbers_are_positive_and_differ() -> None:
    numbers = {hand_id(HandKey(table, hand)) for table in ("red", "blue") for hand in range(1, 20_000)}
    assert len(numbers) == 2 * 19_999
    assert all(0 < number < 2**63 for number in numbers)


def test_names_are_parsed_whole_or_refused() -> None:
    assert parse_hand("tables/red-1/hands/12") == HandKey("red-1", 12)
    assert parse_hand("hands/12") == 12
    assert parse_table("tables/red") == "red"
    assert parse_player("players/p1") == "players/p1"
    assert parse_rulebook("rulebooks/house") == "house"
    for wrong in ("hands/0", f"hands/{2**63}", "tables/red/hands/01", "tables/red/hands/1/", " tables/red/hands/1"):
        with pytest.raises(Fault, match="INVALID_REQUEST"):
            parse_hand(wrong)
    for parse in (parse_table, parse_player, parse_rulebook):
        for wrong in ("", "x", "tables/", "players/a b", "players/", "rulebooks/X Y"):
            with pytest.raises(Fault, match="INVALID_REQUEST"):
                parse(wrong)
