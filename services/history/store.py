"""Writing and reading the history's rows: functions on one connection, to be run by `runtime.database.Database`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from services.history.names import HAND_ID_ATTEMPTS_MAX, HandKey, hand_id
from services.history.record import decode
from services.history.schema import AUDIT_READS, HAND_PLAYERS, HAND_RECORDS, HANDS, RECONCILED_TABLES
from services.history.summary import Summary, summarise

DELETE_BATCH_MAX: Final = 500


class HandIdsExhaustedError(RuntimeError):
    """Every number that this hand could have is another hand's; no chance explains that, so nothing is written."""


class Written(Enum):
    """What became of a write."""

    NEW = "new"
    # The hand was there; nothing changed.
    UNCHANGED = "unchanged"
    # An incomplete row was there, made from the ledger, and is now the whole hand.
    COMPLETED = "completed"


class StoredHand(NamedTuple):
    """Which hand a row is, its number, its end and its record's bytes."""

    key: HandKey
    hand_id: int
    end_ms: int
    record: bytes


class NewHand(NamedTuple):
    """A hand to be written: its sums, its record's bytes, and when that is."""

    summary: Summary
    record: bytes
    written_ms: int


def insert_hands(conn: Connection, hands: Sequence[NewHand]) -> list[Written]:
    """Writes hands as `insert_hand` does, those that are new by shared statements; answers in the order given."""
    fresh: dict[int, int] = {}
    keys: set[HandKey] = set()
    for place, hand in enumerate(hands):
        number = hand_id(hand.summary.key)
        # A hand that is there twice, and two hands of one number, are rare; they are written one by one, below.
        if number not in fresh and hand.summary.key not in keys:
            fresh[number] = place
            keys.add(hand.summary.key)
    written = _insert_new(conn, [(number, hands[place]) for number, place in fresh.items()])
    outcomes: dict[int, Written] = {fresh[number]: Written.NEW for number in written}
    for place, hand in enumerate(hands):
        if place not in outcomes:
            outcomes[place] = insert_hand(conn, *hand)
    return [outcomes[place] for place in range(len(hands))]


def insert_hand(conn: Connection, summary: Summary, record: bytes, written_ms: int) -> Written:
    """Writes a hand once. A hand that is there stays as it is, but a whole one takes an incomplete one's place.

    Raises `HandIdsExhaustedError`.
    """
    row = conn.execute(_IS_THERE, {"of_table": summary.key.table_id, "of_hand": summary.key.hand}).one_or_none()
    if row is not None and (summary.incomplete or not row.incomplete):
        return Written.UNCHANGED
    if row is not None:
        _remove(conn, row.seq, row.hand_id)
        _insert(conn, summary, record, written_ms, row.hand_id)
        return Written.COMPLETED
    for attempt in range(HAND_ID_ATTEMPTS_MAX):
        if _insert(conn, summary, record, written_ms, hand_id(summary.key, attempt)):
            return Written.NEW
        # Either another worker wrote this hand a moment ago, or the number is another hand's.
        if conn.execute(_IS_THERE, {"of_table": summary.key.table_id, "of_hand": summary.key.hand}).first():
            return Written.UNCHANGED
    raise HandIdsExhaustedError(f"{summary.key.name}: no free number in {HAND_ID_ATTEMPTS_MAX} attempts")


def hand_is_written(conn: Connection, key: HandKey) -> bool:
    """Whether the hand has a row, be it an incomplete one."""
    return conn.execute(_IS_THERE, {"of_table": key.table_id, "of_hand": key.hand}).one_or_none() is not None


def read_hand(conn: Connection, which: HandKey | int) -> StoredHand | None:
    """The stored hand of a table and number there, or with a number of its own; or None."""
    if isinstance(which, int):
        row = conn.execute(_READ_BY_ID, {"of_hand_id": which}).one_or_none()
    else:
        row = conn.execute(_READ, {"of_table": which.table_id, "of_hand": which.hand}).one_or_none()
    if row is None:
        return None
    return StoredHand(HandKey(row.table_id, row.hand), row.hand_id, row.end_ms, bytes(row.record))


def numbers_written(conn: Connection, table_id: str, after: int, last: int) -> set[int]:
    """Which hands of a table have a row, of those after one number and up to another."""
    query = sa.select(HANDS.c.hand).where(HANDS.c.table_id == table_id, HANDS.c.hand > after, HANDS.c.hand <= last)
    return {row.hand for row in conn.execute(query)}


def reconciled(conn: Connection, table_ids: Sequence[str]) -> dict[str, int]:
    """The number up to which all hands of these tables are settled; a table without one is left out."""
    query = sa.select(RECONCILED_TABLES).where(RECONCILED_TABLES.c.table_id.in_(table_ids))
    return {row.table_id: row.hand for row in conn.execute(query)}


def mark_reconciled(conn: Connection, marks: Mapping[str, int]) -> None:
    """Notes up to which number all hands of these tables are settled. A lower one than before costs a second look."""
    if not marks:
        return
    # In one order, so that two workers cannot wait for each other.
    rows = [{"table_id": table_id, "hand": marks[table_id]} for table_id in sorted(marks)]
    conn.execute(_MARKS[conn.dialect.name], rows)


def count_hands(conn: Connection) -> int:
    """How many hands are stored."""
    return int(conn.execute(sa.select(sa.func.count()).select_from(HANDS)).scalar_one())


def delete_before(conn: Connection, end_ms: int, limit: int = DELETE_BATCH_MAX) -> int:
    """Deletes at most `limit` hands that ended before `end_ms`, oldest first. Returns how many were."""
    query = (
        sa.select(HANDS.c.seq, HANDS.c.hand_id)
        .where(HANDS.c.end_ms < end_ms)
        .order_by(HANDS.c.end_ms, HANDS.c.hand_id)
        .limit(min(limit, DELETE_BATCH_MAX))
    )
    rows = conn.execute(query).all()
    for row in rows:
        _remove(conn, row.seq, row.hand_id)
    return len(rows)


def insert_audit_read(conn: Connection, reader: str, key: HandKey, purpose: str, read_ms: int) -> None:
    """Notes that an auditor reads a hand's sealed cards; to be durable before the cards go out."""
    conn.execute(
        AUDIT_READS.insert(),
        {
            "reader": reader,
            "table_id": key.table_id,
            "hand": key.hand,
            "purpose": purpose,
            "read_ms": read_ms,
        },
    )


_IS_THERE: Final = sa.select(HANDS.c.seq, HANDS.c.hand_id, HANDS.c.incomplete).where(
    HANDS.c.table_id == sa.bindparam("of_table"), HANDS.c.hand == sa.bindparam("of_hand")
)
_RECORD_OF: Final = sa.select(
    HANDS.c.table_id, HANDS.c.hand, HANDS.c.hand_id, HANDS.c.end_ms, HAND_RECORDS.c.record
).join_from(HANDS, HAND_RECORDS, HANDS.c.seq == HAND_RECORDS.c.seq)
_READ: Final = _RECORD_OF.where(HANDS.c.table_id == sa.bindparam("of_table"), HANDS.c.hand == sa.bindparam("of_hand"))
_READ_BY_ID: Final = _RECORD_OF.where(HANDS.c.hand_id == sa.bindparam("of_hand_id"))
_WHOLE: Final = (
    sa.select(HANDS.c.table_id, HANDS.c.hand, HANDS.c.end_ms, HAND_RECORDS.c.record)
    .join_from(HANDS, HAND_RECORDS, HANDS.c.seq == HAND_RECORDS.c.seq)
    .where(HANDS.c.seq == sa.bindparam("of_seq"))
)
_DELETE_PLAYER: Final = HAND_PLAYERS.delete().where(
    HAND_PLAYERS.c.player == sa.bindparam("of_player"),
    HAND_PLAYERS.c.end_ms == sa.bindparam("of_end_ms"),
    HAND_PLAYERS.c.hand_id == sa.bindparam("of_hand_id"),
)
_INSERTS: Final = {
    "sqlite": sqlite.insert(HANDS).on_conflict_do_nothing().returning(HANDS.c.hand_id, HANDS.c.seq),
    "postgresql": postgresql.insert(HANDS).on_conflict_do_nothing().returning(HANDS.c.hand_id, HANDS.c.seq),
}

_SQLITE_MARK: Final = sqlite.insert(RECONCILED_TABLES)
_POSTGRESQL_MARK: Final = postgresql.insert(RECONCILED_TABLES)
_MARKS: Final = {
    "sqlite": _SQLITE_MARK.on_conflict_do_update(
        index_elements=["table_id"], set_={"hand": _SQLITE_MARK.excluded.hand}
    ),
    "postgresql": _POSTGRESQL_MARK.on_conflict_do_update(
        index_elements=["table_id"], set_={"hand": _POSTGRESQL_MARK.excluded.hand}
    ),
}


def _insert(conn: Connection, summary: Summary, record: bytes, written_ms: int, number: int) -> bool:
    return number in _insert_new(conn, [(number, NewHand(summary, record, written_ms))])


def _insert_new(conn: Connection, hands: Sequence[tuple[int, NewHand]]) -> set[int]:
    """Inserts the hands whose name and number are free, and returns the numbers of those."""
    if not hands:
        return set()
    made = conn.execute(_INSERTS[conn.dialect.name], [_row(number, hand) for number, hand in hands])
    seqs = {row.hand_id: row.seq for row in made}
    inserted = [(number, hand) for number, hand in hands if number in seqs]
    if inserted:
        conn.execute(HAND_RECORDS.insert(), [{"seq": seqs[number], "record": hand.record} for number, hand in inserted])
    players = [row for number, hand in inserted for row in _player_rows(number, hand.summary)]
    if players:
        conn.execute(HAND_PLAYERS.insert(), players)
    return set(seqs)


def _row(number: int, hand: NewHand) -> dict[str, Any]:
    summary = hand.summary
    return {
        **_shared(number, summary),
        "epoch": summary.epoch,
        "start_ms": summary.start_ms,
        "rake_minor": summary.rake_minor,
        "carry_in_minor": summary.carry_in_minor,
        "carry_out_minor": summary.carry_out_minor,
        "written_ms": hand.written_ms,
    }


def _player_rows(number: int, summary: Summary) -> Iterator[dict[str, Any]]:
    shared = _shared(number, summary)
    for player in summary.players:
        yield {
            **shared,
            "player": player.player,
            "net_minor": player.net_minor,
            "won_minor": player.won_minor,
            "voluntary": player.voluntary,
            "showdown": player.showdown,
        }


def _shared(number: int, summary: Summary) -> dict[str, Any]:
    """What a hand's row and its players' rows have in common."""
    return {
        "hand_id": number,
        "table_id": summary.key.table_id,
        "hand": summary.key.hand,
        "rulebook": summary.rulebook,
        "currency": summary.currency,
        "end_ms": summary.end_ms,
        "outcome": summary.outcome,
        "pot_minor": summary.pot_minor,
        "incomplete": summary.incomplete,
    }


def _remove(conn: Connection, seq: int, number: int) -> None:
    """Deletes a hand with its record. Who played it is read from the record, so that no index is kept for that."""
    found = conn.execute(_WHOLE, {"of_seq": seq}).one()
    summary = summarise(HandKey(found.table_id, found.hand), decode(bytes(found.record)))
    players = [
        {"of_player": player.player, "of_end_ms": found.end_ms, "of_hand_id": number} for player in summary.players
    ]
    if players:
        conn.execute(_DELETE_PLAYER, players)
    conn.execute(HAND_RECORDS.delete().where(HAND_RECORDS.c.seq == seq))
    conn.execute(HANDS.delete().where(HANDS.c.seq == seq))
