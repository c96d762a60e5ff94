"""Reads the rows that a group of batches needs, under lock and in account order, and writes back what it changed.

One table's hands, sittings, stacks, pots and carry change only under that table's row lock, so only tables and the
accounts are locked: tables by id, then accounts by name. On SQLite the transaction itself is the lock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Table

from services.wallet import commands as c
from services.wallet import needs, schema
from services.wallet.books import AccountRow, Books, HandRow, PlayerRow, SittingRow, StoredBatch, TableRow
from services.wallet.chart import AccountKind, HandOutcome, PlayerState, TransferCode
from services.wallet.row_sets import (
    Row,
    as_json,
    delete_among,
    insert_rows,
    is_postgresql,
    lock_among,
    select_among,
    update_rows,
)

# The sealer takes this lock alone for a moment, so that no number below its mark is still on the way to disk.
SEALING_LOCK: Final = 0x66697665_00000001

# A generic plan made while the tables were small would be kept when they no longer are.
_BEGIN_ON_POSTGRESQL: Final = """
    SELECT closed_reason, pg_advisory_xact_lock_shared(%s), set_config('plan_cache_mode', 'force_custom_plan', true)
    FROM ledger_state"""
_BEGIN_ON_SQLITE: Final = "SELECT closed_reason FROM ledger_state"

_TABLES: Final = """
    SELECT table_id, currency, epoch, fenced_epoch, fenced_hand, last_hand, open_hand, carry_since_hand
    FROM table_ledgers"""
_BATCHES: Final = "SELECT batch_key, operation, content, outcome, answer FROM batches"
_ACCOUNTS: Final = "SELECT account, kind, owner, currency, balance, opened_ms FROM accounts"
_PLAYERS: Final = "SELECT player, display_name, display_key, state, created_ms FROM players"
_HANDS: Final = """
    SELECT h.table_id, h.hand, h.epoch, h.outcome, h.steps, h.last_round, h.opened_ms, h.closed_ms, h.reason
    FROM hands h"""
_SITTINGS: Final = """
    SELECT s.sitting, s.table_id, s.player, s.seat, s.currency, s.open, s.locked_hand, s.cashed_out, s.opened_ms,
        p.display_name, p.display_key, p.state, p.created_ms
    FROM sittings s LEFT JOIN players p ON p.player = s.player"""

_LINES_OF_HANDS: Final = """
    SELECT t.code, t.debit, t.credit, t.amount FROM batches b JOIN transfers t ON t.batch_no = b.batch_no
    WHERE b.table_id = {0} AND b.hand > 0 AND b.hand >= {0} AND b.hand <= {0} ORDER BY t.batch_no, t.line"""


def load(conn: Connection, asked: Sequence[tuple[str, c.Command]], shard: int, now_ms: int) -> Books:
    """Reads and locks what these (batch key, command) pairs need."""
    books = Books(now_ms=now_ms, shard=shard)
    wanted = [command for _, command in asked]
    if is_postgresql(conn):
        books.closed_reason = conn.exec_driver_sql(_BEGIN_ON_POSTGRESQL, (SEALING_LOCK,)).scalar_one()
    else:
        books.closed_reason = conn.exec_driver_sql(_BEGIN_ON_SQLITE).scalar_one()
    _load_tables(conn, books, needs.tables(wanted))
    _load_batches(conn, books, sorted({key for key, _ in asked if key}))
    _load_hands(conn, books, sorted(needs.hands(wanted, books)))
    load_sittings(conn, books, needs.sittings(wanted))
    _add_sittings(books, select_among(conn, _SITTINGS, "s.table_id", needs.whole_tables(wanted), "AND s.open"))
    _load_players(conn, books, wanted)
    load_accounts(conn, books, needs.accounts(wanted, books))
    return books


def load_accounts(conn: Connection, books: Books, names: Iterable[str]) -> None:
    """Reads and locks accounts that are not yet at hand."""
    missing = sorted(set(names) - books.accounts.keys())
    for account, kind, owner, currency, balance, opened_ms in lock_among(conn, _ACCOUNTS, "account", missing):
        books.accounts[account] = AccountRow(account, AccountKind(kind), owner, currency, balance, opened_ms)


def load_sittings(conn: Connection, books: Books, names: Collection[str]) -> None:
    """Reads sittings by name that are not yet at hand."""
    missing = sorted(set(names) - books.sittings.keys())
    _add_sittings(books, select_among(conn, _SITTINGS, "s.sitting", missing))


def contributions(conn: Connection, table_id: str, first_hand: int, last_hand: int) -> dict[str, int]:
    """What each stack account put into the pots of these hands and did not get back as unmatched or void.

    Only stacks that paid more than nothing are named. Chips won do not count against what was paid.
    """
    paid: dict[str, int] = {}
    into = {TransferCode.ANTE, TransferCode.BLIND, TransferCode.BET}
    back = {TransferCode.RETURN, TransferCode.VOID}
    for code, debit, credit, amount in _lines_of_hands(conn, table_id, first_hand, last_hand):
        if code in into:
            paid[debit] = paid.get(debit, 0) + amount
        elif code in back:
            paid[credit] = paid.get(credit, 0) - amount
    return {account: amount for account, amount in paid.items() if amount > 0 and account.startswith("stack/")}


def carried_in(conn: Connection, table_id: str, hand: int) -> int:
    """What a hand took in from the table's carry."""
    lines = _lines_of_hands(conn, table_id, hand, hand)
    return sum(amount for code, _, _, amount in lines if code == TransferCode.CARRY_IN)


def flush(conn: Connection, books: Books) -> None:
    """Writes what changed; the books can then be used further in the same transaction."""
    for table, new in (
        (schema.players, books.new_players),
        (schema.accounts, books.new_accounts),
        (schema.hands, books.new_hands),
        (schema.sittings, books.new_sittings),
    ):
        insert_rows(conn, table, (_of(row) for row in new.values()))
    insert_rows(conn, schema.batches, books.new_batches)
    insert_rows(conn, schema.transfers, books.new_transfers)
    balances = sorted(books.changed_accounts - books.new_accounts.keys())
    update_rows(
        conn,
        schema.accounts,
        ("account",),
        ("balance",),
        [(account, books.accounts[account].balance) for account in balances],
    )
    delete_among(conn, schema.accounts, "account", sorted(books.dropped_accounts))
    _update(conn, schema.table_ledgers, 1, [books.tables[key] for key in sorted(books.changed_tables)])
    _update(conn, schema.hands, 2, [books.hands[at] for at in sorted(books.changed_hands - books.new_hands.keys())])
    changed_sittings = sorted(books.changed_sittings - books.new_sittings.keys())
    _update(conn, schema.sittings, 1, [books.sittings[key] for key in changed_sittings])
    books.mark_written()


def batch_numbers(conn: Connection, count: int) -> Iterator[int]:
    """The next `count` batch numbers, ascending; on PostgreSQL they are taken under the rows' locks."""
    if is_postgresql(conn):
        query = "SELECT nextval('batch_numbers') FROM generate_series(1, %s)"
        return iter(sorted(number for (number,) in conn.exec_driver_sql(query, (count,))))
    last = conn.exec_driver_sql("SELECT max(batch_no) FROM batches").scalar_one() or 0
    return iter(range(last + 1, last + 1 + count))


def _load_tables(conn: Connection, books: Books, names: Sequence[str]) -> None:
    rows = lock_among(conn, _TABLES, "table_id", names)
    if len(rows) < len(names):
        missing = sorted(set(names) - {row[0] for row in rows})
        fresh = [(name, "", 0, 0, 0, 0, 0, 0) for name in missing]
        insert_rows(conn, schema.table_ledgers, fresh, unless_there=True)
        rows = [*rows, *lock_among(conn, _TABLES, "table_id", missing)]
    for row in rows:
        books.tables[row[0]] = TableRow(*row)


def _load_batches(conn: Connection, books: Books, keys: Sequence[str]) -> None:
    for key, *rest in select_among(conn, _BATCHES, "batch_key", keys):
        books.batches[key] = StoredBatch(*rest)


def _load_hands(conn: Connection, books: Books, wanted: Sequence[tuple[str, int]]) -> None:
    if not wanted:
        return
    if is_postgresql(conn):
        pairs = "json_array_elements(%s::json) AS w ON h.table_id = w ->> 0 AND h.hand = (w ->> 1)::bigint"
    else:
        marks = "json_extract(w.value, '$[0]') AND h.hand = json_extract(w.value, '$[1]')"
        pairs = f"json_each(?) AS w ON h.table_id = {marks}"
    rows = conn.exec_driver_sql(f"{_HANDS} JOIN {pairs}", (as_json(wanted),))
    for table_id, hand, epoch, outcome, *rest in rows:
        books.hands[table_id, hand] = HandRow(table_id, hand, epoch, HandOutcome(outcome), *rest)


def _add_sittings(books: Books, rows: Iterable[Row]) -> None:
    for row in rows:
        *of_sitting, display_name, display_key, state, created_ms = row
        sitting = SittingRow(*of_sitting)
        sitting.open = bool(sitting.open)
        books.add_sitting(sitting)
        if state is not None and sitting.player not in books.players:
            books.players[sitting.player] = PlayerRow(
                sitting.player, display_name, display_key, PlayerState(state), created_ms
            )


def _load_players(conn: Connection, books: Books, wanted: Sequence[c.Command]) -> None:
    rows = [
        *select_among(conn, _PLAYERS, "player", sorted(needs.players(wanted) - books.players.keys())),
        *select_among(conn, _PLAYERS, "display_key", sorted(needs.display_keys(wanted))),
    ]
    for player, display_name, display_key, state, created_ms in rows:
        row = PlayerRow(player, display_name, display_key, PlayerState(state), created_ms)
        books.players.setdefault(player, row)
    for row in books.players.values():
        books.display_keys[row.display_key] = row.player


def _lines_of_hands(conn: Connection, table_id: str, first_hand: int, last_hand: int) -> Sequence[Row]:
    query = _LINES_OF_HANDS.format("%s" if is_postgresql(conn) else "?")
    return conn.exec_driver_sql(query, (table_id, first_hand, last_hand)).all()


def _update(conn: Connection, table: Table, key_count: int, rows: Sequence[Any]) -> None:
    names = table.c.keys()
    update_rows(conn, table, names[:key_count], names[key_count:], [_of(row) for row in rows])


def _of(row: Any) -> Row:
    return tuple(getattr(row, name) for name in row.__slots__)
