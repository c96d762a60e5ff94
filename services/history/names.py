"""Resource names and the stable number of a hand."""

from __future__ import annotations

import hashlib
import re
from typing import Final, NamedTuple

from services.runtime.errors import Fault

# Two hands in a house of a thousand million have the same first number with a chance of one in twenty; a house of a
# million, one in twenty million. Either way the unique index notices, and the later hand takes its second number.
HAND_ID_ATTEMPTS_MAX: Final = 8
NAME_CHARACTERS_MAX: Final = 200

_TABLE: Final = re.compile(r"tables/([a-z0-9-]{1,40})")
_HAND: Final = re.compile(r"tables/([a-z0-9-]{1,40})/hands/([1-9][0-9]{0,17})")
_HAND_BY_NUMBER: Final = re.compile(r"hands/([1-9][0-9]{0,18})")
_PLAYER: Final = re.compile(r"players/([^/\s\x00-\x1f\x7f]{1,100})")
_RULEBOOK: Final = re.compile(r"rulebooks/([a-z0-9_-]{1,40})")


class HandKey(NamedTuple):
    """Which hand: the table's id (without `tables/`) and the hand's number there."""

    table_id: str
    hand: int

    @property
    def name(self) -> str:
        """`tables/{table}/hands/{hand}`."""
        return f"tables/{self.table_id}/hands/{self.hand}"

    @property
    def table(self) -> str:
        """`tables/{table}`."""
        return f"tables/{self.table_id}"


def hand_id(key: HandKey, attempt: int = 0) -> int:
    """The hand's number for trackers: 1 .. 2**63 - 1, the same for the same hand in any database.

    It is a hash of table and number and not a count, because a count would change when hands are imported again, and
    because a table's id does not fit into 63 bits. `attempt` is above 0 only where another hand took the number.
    """
    content = f"{key.name}|{attempt}" if attempt else key.name
    number = int.from_bytes(hashlib.sha256(content.encode()).digest()[:8]) >> 1
    return number or 1


def parse_table(name: str, field: str = "table") -> str:
    """The id in `tables/{table}`. Raises `Fault` INVALID_REQUEST naming the field."""
    return _parsed(_TABLE, name, field, "tables/{table}")


def parse_player(name: str, field: str = "player") -> str:
    """The full name of `players/{player}`, checked. Raises `Fault` INVALID_REQUEST naming the field."""
    _parsed(_PLAYER, name, field, "players/{player}")
    return name


def parse_rulebook(name: str, field: str = "rulebook") -> str:
    """The id in `rulebooks/{rulebook}`. Raises `Fault` INVALID_REQUEST naming the field."""
    return _parsed(_RULEBOOK, name, field, "rulebooks/{rulebook}")


def parse_hand(name: str, field: str = "name") -> HandKey | int:
    """The hand that `tables/{table}/hands/{hand}` names, or the number in `hands/{hand_id}`.

    Raises `Fault` INVALID_REQUEST naming the field.
    """
    by_number = _HAND_BY_NUMBER.fullmatch(name)
    if by_number is not None and int(by_number[1]) < 2**63:
        return int(by_number[1])
    match = _HAND.fullmatch(name) if len(name) <= NAME_CHARACTERS_MAX else None
    if match is None:
        raise Fault("INVALID_REQUEST", f"{field}: not of the form tables/{{table}}/hands/{{hand}}", field=field)
    return HandKey(match[1], int(match[2]))


def _parsed(pattern: re.Pattern[str], name: str, field: str, form: str) -> str:
    match = pattern.fullmatch(name) if len(name) <= NAME_CHARACTERS_MAX else None
    if match is None:
        raise Fault("INVALID_REQUEST", f"{field}: not of the form {form}", field=field)
    return match[1]
