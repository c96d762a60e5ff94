"""Players' names as a tracker's lines can carry them: one that could be taken for a part of the format is bent."""

from __future__ import annotations

import re
from typing import Final

from fivedraw.history.v1 import history_service_pb2

from services.history.formats.words import names_by_seat

# How the format's own lines begin, and what in the middle of a line decides what kind of line it is.
_BEGINNINGS: Final = (
    *("PokerStars ", "Betting is ", "Table ", "Seat ", "*** ", "Board ", "Dealt to ", "Uncalled ", "Total pot "),
    *("The deck is ", "Pair on board "),
)
_MARKS: Final = (
    *(" said, ", " collected ", " joins the table at ", " finished the tournament in ", " wins the tournament "),
    " in chips)",
)
_COLON: Final = re.compile(r":\s+")


def tracker_names(hand: history_service_pb2.Hand) -> dict[int, str]:
    """Names of the seats dealt in, as they stand in every line of the hand."""
    return {seat: _bent(name) for seat, name in names_by_seat(hand).items()}


def _bent(name: str) -> str:
    # A colon and a space end a name in every line of an action.
    name = _COLON.sub(":", name)
    reads_like_a_line = f"{name} ".startswith(_BEGINNINGS) or any(mark in f" {name} " for mark in _MARKS)
    return name.replace(" ", "_") if reads_like_a_line else name
