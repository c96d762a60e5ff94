"""The deck's rows in SQL, read and written for a whole group of steps at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection, RowMapping

from services.deck.records import HandRecord, Stage, TableRecord
from services.deck.sealed import HandSealer

_METADATA: Final = sa.MetaData()

TABLES: Final = sa.Table(
    "deck_tables",
    _METADATA,
    sa.Column("table_name", sa.Text, primary_key=True),
    sa.Column("epoch", sa.BigInteger),
    sa.Column("open_hand", sa.BigInteger),
    sa.Column("last_hand", sa.BigInteger),
    sa.Column("deck_number", sa.BigInteger),
    sa.Column("chain", sa.LargeBinary),
    sa.Column("next_commitment", sa.LargeBinary),
    sa.Column("next_seed", sa.LargeBinary),
    sa.Column("fence_epoch", sa.BigInteger),
    sa.Column("fence_voided", sa.BigInteger),
)
HANDS: Final = sa.Table(
    "deck_hands",
    _METADATA,
    sa.Column("table_name", sa.Text, primary_key=True),
    sa.Column("hand", sa.BigInteger, primary_key=True),
    sa.Column("epoch", sa.BigInteger),
    sa.Column("deck_number", sa.BigInteger),
    sa.Column("stage", sa.SmallInteger),
    sa.Column("commitment", sa.LargeBinary),
    sa.Column("previous_chain", sa.LargeBinary),
    sa.Column("chain", sa.LargeBinary),
    sa.Column("opened_ms", sa.BigInteger),
    sa.Column("closed_ms", sa.BigInteger),
    sa.Column("key_id", sa.Text),
    sa.Column("sealed_key", sa.LargeBinary),
    sa.Column("sealed_secret", sa.LargeBinary),
    sa.Column("sealed_play", sa.LargeBinary),
)
LOTS: Final = sa.Table(
    "deck_lots",
    _METADATA,
    sa.Column("table_name", sa.Text, primary_key=True),
    sa.Column("step_id", sa.Text, primary_key=True),
    sa.Column("digest", sa.LargeBinary),
    sa.Column("seat", sa.SmallInteger),
)

# Rows are locked in the order of their names, so that two replicas with overlapping groups cannot wait in a circle.
_SELECT_TABLES: Final = (
    sa.select(TABLES)
    .where(TABLES.c.table_name.in_(sa.bindparam("tables", expanding=True)))
    .order_by(TABLES.c.table_name)
    .with_for_update()
)
_SELECT_HANDS: Final = (
    sa.select(HANDS)
    .where(sa.tuple_(HANDS.c.table_name, HANDS.c.hand).in_(sa.bindparam("hands", expanding=True)))
    .order_by(HANDS.c.table_name, HANDS.c.hand)
    .with_for_update()
)
_SELECT_HAND: Final = sa.select(HANDS).where(
    HANDS.c.table_name == sa.bindparam("table"), HANDS.c.hand == sa.bindparam("number")
)
_SELECT_LOT: Final = sa.select(LOTS.c.digest, LOTS.c.seat).where(
    LOTS.c.table_name == sa.bindparam("table"), LOTS.c.step_id == sa.bindparam("step")
)
_INSERT_TABLE: Final = sa.insert(TABLES)
_UPDATE_TABLE: Final = (
    sa.update(TABLES)
    .where(TABLES.c.table_name == sa.bindparam("of_table"))
    .values({column.name: sa.bindparam(column.name) for column in TABLES.c if column.name != "table_name"})
)
_INSERT_HAND: Final = sa.insert(HANDS)
_UPDATE_PLAY: Final = (
    sa.update(HANDS)
    .where(HANDS.c.table_name == sa.bindparam("of_table"), HANDS.c.hand == sa.bindparam("of_hand"))
    .values({name: sa.bindparam(name) for name in ("stage", "closed_ms", "sealed_play")})
)
_UPDATE_HAND: Final = (
    sa.update(HANDS)
    .where(HANDS.c.table_name == sa.bindparam("of_table"), HANDS.c.hand == sa.bindparam("of_hand"))
    .values({name: sa.bindparam(name) for name in ("stage", "closed_ms", "sealed_secret", "sealed_play")})
)
_INSERT_LOT: Final = sa.insert(LOTS)


class Book:
    """The records of one transaction: read under lock, changed in memory, written back together by `flush`.

    A step puts a record only when it is decided, so that a refused step leaves the book as it was.
    """

    def __init__(self, conn: Connection, sealer: HandSealer) -> None:
        self._conn = conn
        self._sealer = sealer
        self._tables: dict[str, TableRecord | None] = {}
        self._hands: dict[tuple[str, int], HandRecord | None] = {}
        self._stored_tables: dict[str, TableRecord] = {}
        self._stored_hands: dict[tuple[str, int], HandRecord] = {}
        self._lots: dict[tuple[str, str], tuple[bytes, int]] = {}
        self._new_lots: dict[tuple[str, str], tuple[bytes, int]] = {}

    def load(self, tables: Iterable[str], hands: Iterable[tuple[str, int]]) -> None:
        """Reads and locks what a group of steps will touch, in two queries."""
        wanted_tables, wanted_hands = sorted(set(tables)), sorted(set(hands))
        self._tables.update(dict.fromkeys(wanted_tables))
        self._hands.update(dict.fromkeys(wanted_hands))
        if wanted_tables:
            for row in self._conn.execute(_SELECT_TABLES, {"tables": wanted_tables}).mappings():
                table = self._table_from(row)
                self._tables[table.table] = self._stored_tables[table.table] = table
        if wanted_hands:
            for row in self._conn.execute(_SELECT_HANDS, {"hands": wanted_hands}).mappings():
                hand = hand_from(self._sealer, row)
                self._hands[hand.table, hand.hand] = self._stored_hands[hand.table, hand.hand] = hand

    def table(self, name: str) -> TableRecord | None:
        """The table, or `None` before its first deck."""
        if name not in self._tables:
            self.load((name,), ())
        return self._tables[name]

    def hand(self, table: str, number: int) -> HandRecord | None:
        """The hand, or `None` where it never had a deck."""
        if (table, number) not in self._hands:
            self.load((), ((table, number),))
        return self._hands[table, number]

    def lot(self, table: str, step_id: str) -> tuple[bytes, int] | None:
        """Digest and seat of a lot that was drawn."""
        known = self._lots.get((table, step_id))
        if known is not None:
            return known
        row = self._conn.execute(_SELECT_LOT, {"table": table, "step": step_id}).first()
        return None if row is None else (row.digest, row.seat)

    def put_table(self, record: TableRecord) -> None:
        """Notes a table's new record."""
        self._tables[record.table] = record

    def put_hand(self, record: HandRecord) -> None:
        """Notes a hand's new record."""
        self._hands[record.table, record.hand] = record

    def put_lot(self, table: str, step_id: str, digest: bytes, seat: int) -> None:
        """Notes a drawn lot."""
        self._lots[table, step_id] = self._new_lots[table, step_id] = digest, seat

    def flush(self) -> None:
        """Writes all that changed."""
        self._flush_tables()
        self._flush_hands()
        if self._new_lots:
            rows = [
                {"table_name": table, "step_id": step_id, "digest": digest, "seat": seat}
                for (table, step_id), (digest, seat) in self._new_lots.items()
            ]
            self._conn.execute(_INSERT_LOT, rows)

    def _flush_tables(self) -> None:
        inserts: list[dict[str, Any]] = []
        updates: list[dict[str, Any]] = []
        for name, record in self._tables.items():
            stored = self._stored_tables.get(name)
            if record is None or record is stored:
                continue
            row = self._row_of_table(record)
            if stored is None:
                inserts.append({**row, "table_name": name})
            else:
                updates.append({**row, "of_table": name})
        if inserts:
            self._conn.execute(_INSERT_TABLE, inserts)
        if updates:
            self._conn.execute(_UPDATE_TABLE, updates)

    def _flush_hands(self) -> None:
        inserts: list[dict[str, Any]] = []
        whole: list[dict[str, Any]] = []
        played: list[dict[str, Any]] = []
        for at, record in self._hands.items():
            stored = self._stored_hands.get(at)
            if record is None or record is stored:
                continue
            row = self._row_of_play(record)
            if stored is None:
                inserts.append({**row, **self._row_of_opening(record)})
                continue
            row |= {"of_table": record.table, "of_hand": record.hand}
            if record.secret is stored.secret:
                played.append(row)
            else:
                whole.append({**row, "sealed_secret": self._sealed_secret(record)})
        if inserts:
            self._conn.execute(_INSERT_HAND, inserts)
        if whole:
            self._conn.execute(_UPDATE_HAND, whole)
        if played:
            self._conn.execute(_UPDATE_PLAY, played)

    def _table_from(self, row: RowMapping) -> TableRecord:
        name, deck_number = row["table_name"], row["deck_number"]
        return TableRecord(
            table=name,
            epoch=row["epoch"],
            open_hand=row["open_hand"],
            last_hand=row["last_hand"],
            deck_number=deck_number,
            chain=row["chain"],
            next_commitment=row["next_commitment"],
            next_seed=self._sealer.open_next_seed(name, deck_number + 1, row["next_seed"]),
            fence_epoch=row["fence_epoch"],
            fence_voided=row["fence_voided"],
        )

    def _row_of_table(self, record: TableRecord) -> dict[str, Any]:
        return {
            "epoch": record.epoch,
            "open_hand": record.open_hand,
            "last_hand": record.last_hand,
            "deck_number": record.deck_number,
            "chain": record.chain,
            "next_commitment": record.next_commitment,
            "next_seed": self._sealer.seal_next_seed(record.table, record.deck_number + 1, record.next_seed),
            "fence_epoch": record.fence_epoch,
            "fence_voided": record.fence_voided,
        }

    def _row_of_play(self, record: HandRecord) -> dict[str, Any]:
        return {
            "stage": int(record.stage),
            "closed_ms": record.closed_ms,
            "sealed_play": self._sealer.seal_play(record.table, record.hand, record.key, record.play),
        }

    def _row_of_opening(self, record: HandRecord) -> dict[str, Any]:
        return {
            "table_name": record.table,
            "hand": record.hand,
            "epoch": record.epoch,
            "deck_number": record.deck_number,
            "commitment": record.commitment,
            "previous_chain": record.previous_chain,
            "chain": record.chain,
            "opened_ms": record.opened_ms,
            "key_id": self._sealer.newest_key_id,
            "sealed_key": self._sealer.wrap_key(record.table, record.hand, record.key),
            "sealed_secret": self._sealed_secret(record),
        }

    def _sealed_secret(self, record: HandRecord) -> bytes:
        return self._sealer.seal_secret(record.table, record.hand, record.key, record.secret)


def read_hand(conn: Connection, sealer: HandSealer, table: str, number: int) -> HandRecord | None:
    """A hand without a lock, for reading."""
    row = conn.execute(_SELECT_HAND, {"table": table, "number": number}).mappings().first()
    return None if row is None else hand_from(sealer, row)


def hand_from(sealer: HandSealer, row: RowMapping) -> HandRecord:
    """Opens a stored hand. Raises `SealBrokenError` where the row was changed or the service key is another."""
    table, hand = row["table_name"], row["hand"]
    key = sealer.unwrap_key(table, hand, row["sealed_key"])
    return HandRecord(
        table=table,
        hand=hand,
        epoch=row["epoch"],
        deck_number=row["deck_number"],
        stage=Stage(row["stage"]),
        commitment=row["commitment"],
        previous_chain=row["previous_chain"],
        chain=row["chain"],
        opened_ms=row["opened_ms"],
        closed_ms=row["closed_ms"],
        key=key,
        secret=sealer.open_secret(table, hand, key, row["sealed_secret"]),
        play=sealer.open_play(table, hand, key, row["sealed_play"]),
    )
