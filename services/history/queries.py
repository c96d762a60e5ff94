"""Lists and sums over the history, each a bounded walk along one index.

A list is walked by end time and number, newest first (or oldest first, for files). One filter chooses the index;
the others are looked at row by row, over at most `SCAN_MAX` rows a page, so that a page costs the same at a million
hands as at a thousand. A page may therefore come back short, and says where to go on.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from fivedraw.table.v1 import table_pb2
from sqlalchemy import ColumnElement, Connection

from services.history.names import HandKey
from services.history.schema import AUDIT_READS, HAND_PLAYERS, HAND_RECORDS, HANDS
from services.history.store import StoredHand
from services.runtime.errors import Fault

PAGE_MAX: Final = 200
PAGE_DEFAULT: Final = 50
SCAN_MAX: Final = 5_000
PAGE_TOKEN_CHARACTERS_MAX: Final = 200


@dataclass(frozen=True, slots=True)
class Filters:
    """Which hands. Empty and 0 mean any; `from_ms` is included, `to_ms` is not; ids without their prefix."""

    table_id: str = ""
    # The full name, `players/{player}`.
    player: str = ""
    rulebook: str = ""
    from_ms: int = 0
    to_ms: int = 0
    min_pot_minor: int = 0
    max_pot_minor: int = 0

    def fingerprint(self) -> str:
        """Short text that differs between filters, so that a page token cannot be used with others."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:8]


class Place(NamedTuple):
    """A place in a list: the end time and number of the last hand looked at."""

    end_ms: int
    hand_id: int


@dataclass(frozen=True, slots=True)
class ListedHand:
    """A hand in a list; amounts in minor units. `net_minor` is that of the player asked for, else 0."""

    key: HandKey
    hand_id: int
    rulebook: str
    currency: str
    end_ms: int
    outcome: int
    pot_minor: int
    net_minor: int
    incomplete: bool


@dataclass(frozen=True, slots=True)
class Page:
    """Hands in order, and the place to go on from, or None at the end."""

    hands: list[ListedHand]
    next: Place | None


def list_hands(
    conn: Connection, filters: Filters, after: Place | None, size: int, *, oldest_first: bool = False
) -> Page:
    """One page of at most `size` hands after a place, newest first unless told otherwise."""
    source = HAND_PLAYERS if filters.player else HANDS
    driving, residual = _split(filters, source)
    order = (source.c.end_ms, source.c.hand_id)
    if after is not None:
        here = sa.tuple_(*order)
        there = sa.tuple_(sa.literal(after.end_ms), sa.literal(after.hand_id))
        driving.append(here > there if oldest_first else here < there)
    ordered = [column.asc() if oldest_first else column.desc() for column in order]
    listed = [source.c[name] for name in (*_LISTED, *(("net_minor",) if filters.player else ()))]
    if not residual:
        rows = conn.execute(sa.select(*listed).where(*driving).order_by(*ordered).limit(size)).all()
        last = Place(rows[-1].end_ms, rows[-1].hand_id) if len(rows) == size else None
        return Page([_listed(row) for row in rows], last)
    # The walk is cut off first and filtered then; where it was cut off is where the next page goes on.
    walk = sa.select(*listed).where(*driving).order_by(*ordered).limit(SCAN_MAX).subquery()
    again = [walk.c.end_ms.asc(), walk.c.hand_id.asc()]
    if not oldest_first:
        again = [walk.c.end_ms.desc(), walk.c.hand_id.desc()]
    rows = conn.execute(sa.select(walk).where(*_conditions(residual, walk)).order_by(*again).limit(size)).all()
    found = [_listed(row) for row in rows]
    if len(found) == size:
        return Page(found, Place(rows[-1].end_ms, rows[-1].hand_id))
    edge = conn.execute(sa.select(*order).where(*driving).order_by(*ordered).offset(SCAN_MAX - 1).limit(1)).first()
    return Page(found, None if edge is None else Place(edge.end_ms, edge.hand_id))


_LISTED: Final = (
    *("table_id", "hand", "hand_id", "rulebook", "currency", "end_ms", "outcome", "pot_minor", "incomplete"),
)
# An index begins with the first of these that is filtered by; the others are looked at row by row.
_EQUAL: Final = ("player", "table_id", "rulebook")


def _split(filters: Filters, source: sa.Table) -> tuple[list[ColumnElement[bool]], dict[str, Any]]:
    """The conditions that an index answers, and the names and values of the others."""
    driving: list[ColumnElement[bool]] = []
    residual: dict[str, Any] = {}
    if filters.from_ms:
        driving.append(source.c.end_ms >= filters.from_ms)
    if filters.to_ms:
        driving.append(source.c.end_ms < filters.to_ms)
    by_index = next((name for name in _EQUAL if getattr(filters, name)), None)
    for name in _EQUAL:
        wanted = getattr(filters, name)
        if name == by_index:
            driving.append(source.c[name] == wanted)
        elif wanted:
            residual[name] = wanted
    for name in ("min_pot_minor", "max_pot_minor"):
        if getattr(filters, name):
            residual[name] = getattr(filters, name)
    return driving, residual


def _conditions(residual: dict[str, Any], walk: sa.Subquery) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    for name, wanted in residual.items():
        if name == "min_pot_minor":
            conditions.append(walk.c.pot_minor >= wanted)
        elif name == "max_pot_minor":
            conditions.append(walk.c.pot_minor <= wanted)
        else:
            conditions.append(walk.c[name] == wanted)
    return conditions


def _listed(row: Any) -> ListedHand:
    return ListedHand(
        key=HandKey(row.table_id, row.hand),
        hand_id=row.hand_id,
        rulebook=row.rulebook,
        currency=row.currency,
        end_ms=row.end_ms,
        outcome=row.outcome,
        pot_minor=row.pot_minor,
        net_minor=getattr(row, "net_minor", 0),
        incomplete=row.incomplete,
    )


def read_records(conn: Connection, numbers: list[int]) -> dict[int, StoredHand]:
    """The records of at most `PAGE_MAX` hands by number; one that was deleted meanwhile is left out."""
    query = (
        sa.select(HANDS.c.table_id, HANDS.c.hand, HANDS.c.hand_id, HANDS.c.end_ms, HAND_RECORDS.c.record)
        .join_from(HANDS, HAND_RECORDS, HANDS.c.seq == HAND_RECORDS.c.seq)
        .where(HANDS.c.hand_id.in_(numbers[:PAGE_MAX]))
    )
    return {
        row.hand_id: StoredHand(HandKey(row.table_id, row.hand), row.hand_id, row.end_ms, bytes(row.record))
        for row in conn.execute(query)
    }


class AuditedRow(NamedTuple):
    """What a row says of a hand, and the hand's record."""

    key: HandKey
    end_ms: int
    pot_minor: int
    outcome: int
    record: bytes


def rows_of_share(conn: Connection, turn: int, size: int) -> list[AuditedRow]:
    """The rows of one share of at most `size`; the shares of turn after turn go round all rows."""
    last = conn.execute(sa.select(sa.func.max(HANDS.c.seq))).scalar_one_or_none()
    if last is None:
        return []
    first = turn % (last // size + 1) * size
    query = (
        sa.select(
            *(HANDS.c[name] for name in ("table_id", "hand", "end_ms", "pot_minor", "outcome")), HAND_RECORDS.c.record
        )
        .join_from(HANDS, HAND_RECORDS, HANDS.c.seq == HAND_RECORDS.c.seq)
        .where(HANDS.c.seq >= first, HANDS.c.seq < first + size)
    )
    return [
        AuditedRow(HandKey(row.table_id, row.hand), row.end_ms, row.pot_minor, row.outcome, bytes(row.record))
        for row in conn.execute(query)
    ]


@dataclass(frozen=True, slots=True)
class Statistic:
    """A player's sums in one rulebook and currency; amounts in minor units."""

    rulebook: str
    currency: str
    hands: int
    voluntary: int
    showdowns: int
    won_at_showdown: int
    won: int
    net_minor: int


def player_statistics(conn: Connection, player: str, from_ms: int, to_ms: int) -> list[Statistic]:
    """A player's sums over hands that ended in a time, by rulebook and currency. Void hands count nowhere."""
    columns = HAND_PLAYERS.c
    won = columns.won_minor > 0

    def times(condition: ColumnElement[bool]) -> ColumnElement[int]:
        return sa.func.coalesce(sa.func.sum(sa.case((condition, 1), else_=0)), 0)

    query = (
        sa.select(
            columns.rulebook,
            columns.currency,
            sa.func.count().label("hands"),
            times(columns.voluntary.is_(True)).label("voluntary"),
            times(columns.showdown.is_(True)).label("showdowns"),
            times(sa.and_(columns.showdown.is_(True), won)).label("won_at_showdown"),
            times(won).label("won"),
            sa.func.sum(columns.net_minor).label("net_minor"),
        )
        .where(columns.player == player, columns.outcome != table_pb2.HAND_OUTCOME_VOID)
        .group_by(columns.rulebook, columns.currency)
        .order_by(columns.rulebook, columns.currency)
    )
    if from_ms:
        query = query.where(columns.end_ms >= from_ms)
    if to_ms:
        query = query.where(columns.end_ms < to_ms)
    return [
        Statistic(
            rulebook=row.rulebook,
            currency=row.currency,
            hands=int(row.hands),
            voluntary=int(row.voluntary),
            showdowns=int(row.showdowns),
            won_at_showdown=int(row.won_at_showdown),
            won=int(row.won),
            net_minor=int(row.net_minor),
        )
        for row in conn.execute(query)
    ]


class AuditRead(NamedTuple):
    """One read by an auditor's right."""

    seq: int
    reader: str
    key: HandKey
    purpose: str
    read_ms: int


def list_audit_reads(conn: Connection, before_seq: int, size: int) -> list[AuditRead]:
    """At most `size` audit reads before a number (0: from the newest), newest first."""
    query = sa.select(AUDIT_READS).order_by(AUDIT_READS.c.seq.desc()).limit(size)
    if before_seq:
        query = query.where(AUDIT_READS.c.seq < before_seq)
    return [
        AuditRead(row.seq, row.reader, HandKey(row.table_id, row.hand), row.purpose, row.read_ms)
        for row in conn.execute(query)
    ]


def page_size(asked: int) -> int:
    """The page size to use. Raises `Fault` INVALID_REQUEST outside 0..`PAGE_MAX`."""
    if not 0 <= asked <= PAGE_MAX:
        raise Fault("INVALID_REQUEST", f"page_size: {asked} is not between 1 and {PAGE_MAX}", field="page_size")
    return asked or PAGE_DEFAULT


def place_token(filters: Filters, place: Place | None) -> str:
    """The page token for a place, bound to its filters; empty for None."""
    if place is None:
        return ""
    return _encoded(f"{filters.fingerprint()}:{place.end_ms}:{place.hand_id}")


def parse_place(filters: Filters, token: str) -> Place | None:
    """The place in a page token, None if it is empty. Raises `Fault` INVALID_REQUEST for one of other filters."""
    if not token:
        return None
    parts = _decoded(token).split(":")
    if len(parts) != 3 or parts[0] != filters.fingerprint() or not (parts[1].isdigit() and parts[2].isdigit()):
        raise _token_fault()
    place = Place(int(parts[1]), int(parts[2]))
    if max(place) >= 2**63:
        raise _token_fault()
    return place


def number_token(number: int) -> str:
    """The page token for a plain row number; empty for 0."""
    return _encoded(str(number)) if number else ""


def parse_number(token: str) -> int:
    """The row number in a page token, 0 if it is empty. Raises `Fault` INVALID_REQUEST."""
    if not token:
        return 0
    text = _decoded(token)
    if not text.isdigit() or not 0 < int(text) < 2**63:
        raise _token_fault()
    return int(text)


def _encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decoded(token: str) -> str:
    if len(token) > PAGE_TOKEN_CHARACTERS_MAX or not token.isascii():
        raise _token_fault()
    try:
        return base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        raise _token_fault() from None


def _token_fault() -> Fault:
    return Fault(
        "INVALID_REQUEST", "page_token: not one of this list; begin again with an empty one", field="page_token"
    )
