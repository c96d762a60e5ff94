"""Small pieces that several formats share: times, names, cards, refusals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from fivedraw.history.v1 import history_service_pb2
from fivedraw.table.v1 import table_pb2
from google.protobuf.timestamp_pb2 import Timestamp

from services.rules.cards import parse_cards
from services.rules.ranking import hand_name
from services.runtime.errors import Fault

OUTCOMES: Final[dict[int, str]] = {
    table_pb2.HAND_OUTCOME_UNSPECIFIED: "unknown",
    table_pb2.HAND_OUTCOME_SHOWDOWN: "showdown",
    table_pb2.HAND_OUTCOME_UNCONTESTED: "uncontested",
    table_pb2.HAND_OUTCOME_PASSED_OUT: "passed_out",
    table_pb2.HAND_OUTCOME_VOID: "void",
}


def cannot_express(hand: history_service_pb2.Hand, form: str, why: str) -> Fault:
    """The refusal of a format that has no words for a hand."""
    return Fault("FORMAT_CANNOT_EXPRESS", f"{hand.name}: {form} has no words for {why}", hand=hand.name, format=form)


def name_of_hand(cards: list[str]) -> str:
    """What five cards are called in English."""
    return hand_name(parse_cards(cards))


def moment(stamp: Timestamp) -> datetime:
    """A timestamp in UTC."""
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=stamp.ToMilliseconds())


def eastern(stamp: Timestamp) -> datetime:
    """A timestamp in the time of New York, by the rule in force since 2007.

    Worked out here because a bare machine has no time zone database.
    """
    utc = moment(stamp)
    begins = datetime(utc.year, 3, 8, 7, tzinfo=UTC)
    begins += timedelta(days=(6 - begins.weekday()) % 7)
    ends = datetime(utc.year, 11, 1, 6, tzinfo=UTC)
    ends += timedelta(days=(6 - ends.weekday()) % 7)
    return utc.astimezone(timezone(timedelta(hours=-4 if begins <= utc < ends else -5)))


def one_line(name: str) -> str:
    """A name without line breaks and control characters, which would make two lines of one."""
    cleaned = "".join(character if character.isprintable() else " " for character in name)
    return " ".join(cleaned.split()) or "?"


def names_by_seat(hand: history_service_pb2.Hand) -> dict[int, str]:
    """Display names of the seats dealt in; the player's id where there is none."""
    return {seat.seat: one_line(seat.display_name or seat.player.removeprefix("players/")) for seat in hand.seats}
