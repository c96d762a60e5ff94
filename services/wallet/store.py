"""Reads the rows that a group of batches needs, under lock and in account order, and writes back what it changed.

One table's hands, sittings, stacks, pots and carry change only under that table's row lock, so only tables and the
other accounts are locked: tables by id, then accounts by name. On SQLite the transaction itself is the lock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, Final

from sqlalchemy import Connection, Table

from services.wallet import chart, limits, needs, schema
from services.wallet import commands as c
from services.wallet.books import (
    AccountRow,
    Books,
    HandRow,
    PlayerRow,
    ReservationRow,
    SittingRow,
    StoredBatch,
    TableRow,
)
from services.wallet.chart import (
    AccountKind,
    HandOutcome,
    PlayerState,
    ReservationState,
    TransferCode,
    note_paid,
)
from services.wallet.row_sets import (
    Row,
    Statement,
    among,
    as_json,
    deleted_among,
    inserted,
    is_postgresql,
    locked_among,
    run,
    updated,
)

# The sealer takes this lock alone for a moment, so that no number below its mark is still on the way to disk.
SEALING_LOCK: Final = 0x66697665_00000001

# Every statement of a group goes by key. A generic plan made while the tables were small would be kept when they no
# longer are, and the planner's guess at how many rows are wanted makes it read tables whole.
_BEGIN_ON_POSTGRESQL: Final = """
    SELECT closed_reason, pg_advisory_xact_lock_shared(%s), set_config('plan_cache_mode', 'force_generic_plan', true),
        set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
        set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true)
    FROM ledger_state"""
_BEGIN_ON_SQLITE: Final = "SELECT closed_reason FROM ledger_state"

_NUMBERS_ON_POSTGRESQL: Final = "SELECT nextval('batch_numbers') FROM generate_series(1, %s)"
_NUMBERS_ON_SQLITE: Final = """
    WITH RECURSIVE n (number, left_over) AS (
        SELECT coalesce(max(batch_no), 0) + 1, ? FROM batches
        UNION ALL SELECT number + 1, left_over - 1 FROM n WHERE left_over > 1)
    SELECT number FROM n"""

_TABLES: Final = """
    SELECT table_id, currency, epoch, fenced_epoch, fenced_hand, last_hand, open_hand, carry_since_hand,
        closed_reason
    FROM table_ledgers"""
_BATCHES: Final = "SELECT batch_key, operation, content, outcome, answer FROM batches"
_ACCOUNTS: Final = "SELECT account, kind, owner, currency, balance, opened_ms FROM accounts"
_PLAYERS: Final = "SELECT player, display_name, display_key, state, created_ms FROM players"
_HANDS: Final = """
    SELECT h.table_id, h.hand, h.epoch, h.outcome, h.steps, h.last_round, h.opened_ms, h.closed_ms, h.reason
    FROM hands h"""
_HANDS_ON_POSTGRESQL: Final = f"""{_HANDS}
    JOIN json_array_elements(%s::json) AS w ON h.table_id = w ->> 0 AND h.hand = (w ->> 1)::bigint"""
_HANDS_ON_SQLITE: Final = f"""{_HANDS}
    JOIN json_each(?) AS w ON h.table_id = json_extract(w.value, '$[0]') AND h.hand = json_extract(w.value, '$[1]')"""
# The open and the last hand of each table.
_CURRENT_HANDS: Final = f"""{_HANDS}
    JOIN table_ledgers t ON t.table_id = h.table_id AND (h.hand = t.last_hand OR h.hand = t.open_hand)"""
_SITTINGS: Final = """
    SELECT s.sitting, s.table_id, s.player, s.seat, s.currency, s.open, s.locked_hand, s.cashed_out, s.opened_ms,
        p.display_name, p.display_key, p.state, p.created_ms
    FROM sittings s LEFT JOIN players p ON p.player = s.player"""

_RESERVATIONS: Final = """
    SELECT r.reservation, r.table_id, r.epoch, r.sitting, r.player, r.seat, r.currency, r.amount, r.state, r.opened_ms,
        r.expires_ms, r.closed_ms, p.display_name, p.display_key, p.state, p.created_ms
    FROM reservations r LEFT JOIN players p ON p.player = r.player"""
_RESERVED_SITTINGS: Final = f"{_SITTINGS} JOIN reservations r ON r.sitting = s.sitting"

_LINES_OF_HANDS: Final = """
    SELECT t.code, t.debit, t.credit, t.amount FROM batches b JOIN transfers t ON t.batch_no = b.batch_no
    WHERE b.table_id = {0} AND b.hand > 0 AND b.hand >= {0} AND b.hand <= {0} ORDER BY t.batch_no, t.line"""

# By their numbers: an enumeration takes four times as long to look one up, and a group has hundreds.
_KINDS: Final = {int(kind): kind for kind in AccountKind}
_STATES: Final = {int(state): state for state in PlayerState}
_OUTCOMES: Final = {int(outcome): outcome for outcome in HandOutcome}


def load(conn: Connection, asked: Sequence[tuple[str, c.Command]], shard: int, now_ms: int) -> Books:
    """Reads and locks what these (batch key, command) pairs need."""
    books = Books(now_ms=now_ms, shard=shard)
    wanted = [command for _, command in asked]
    tables = needs.tables(wanted)
    if not _load_under_tables(conn, books, asked, tables):
        fresh = [_of(TableRow.unknown(name)) for name in tables if name not in books.tables]
        run(conn, [inserted(conn, schema.table_ledgers, fresh, unless_there=True)])
        _load_under_tables(conn, books, asked, tables)
    names = needs.accounts(wanted, books)
    # Numbers are taken under all locks, so that on every account they ascend with the commits.
    # Limits are read under those locks too: what a day has used of them must not change before this is decided.
    giving_back = sorted(needs.hands_giving_back(wanted))
    of_tables = {name for name in names if chart.is_tables(name)}
    shared, found, taken, limited, *of_hands = run(
        conn,
        [
            locked_among(conn, _ACCOUNTS, "account", names - of_tables),
            among(conn, _ACCOUNTS, "account", of_tables),
            _numbers(conn, len(asked)),
            limits.question(conn, needs.limited(wanted, books), now_ms),
            *(_lines_of_hands(conn, table_id, hand, hand) for table_id, hand in giving_back),
        ],
    )
    _add_accounts(books, (*shared, *found))
    limits.add(books, limited)
    for at, lines in zip(giving_back, of_hands, strict=True):
        books.paid_in[at] = _net(lines)
    books.numbers = _in_order(taken)
    return books


def load_accounts(conn: Connection, books: Books, names: Iterable[str]) -> None:
    """Reads and locks accounts that are not yet at hand and belong to no table."""
    missing = set(names) - books.accounts.keys()
    if not missing:
        return
    # Until now another could post to these, under numbers above those that are left here: they are drawn anew.
    left = sum(1 for _ in books.numbers)
    found, taken = run(conn, [locked_among(conn, _ACCOUNTS, "account", missing), _numbers(conn, left)])
    _add_accounts(books, found)
    books.numbers = _in_order(taken)


def load_sittings(conn: Connection, books: Books, names: Collection[str]) -> None:
    """Reads sittings by name that are not yet at hand."""
    missing = set(names) - books.sittings.keys()
    _add_sittings(books, run(conn, [among(conn, _SITTINGS, "s.sitting", missing)])[0])


def contributions(conn: Connection, table_id: str, first_hand: int, last_hand: int) -> dict[str, int]:
    """What each stack account put into the pots of these hands and did not get back as unmatched or void.

    Stacks that this leaves at nothing are not named. Chips won do not count against what was paid.
    """
    paid = _net(run(conn, [_lines_of_hands(conn, table_id, first_hand, last_hand)])[0])
    return {account: amount for account, amount in paid.items() if amount and account.startswith("stack/")}


def carried_in(conn: Connection, table_id: str, hand: int) -> int:
    """What a hand took in from the table's carry."""
    lines = run(conn, [_lines_of_hands(conn, table_id, hand, hand)])[0]
    return sum(amount for code, _, _, amount in lines if code == TransferCode.CARRY_IN)


def flush(conn: Connection, books: Books) -> None:
    """Writes what changed; the books can then be used further in the same transaction."""
    run(conn, _changes(conn, books))
    books.mark_written()


def _changes(conn: Connection, books: Books) -> Iterator[Statement | None]:
    """What writes the changes down, made one by one: the server works on the first while the next is made."""
    yield inserted(conn, schema.transfers, books.new_transfers)
    yield inserted(conn, schema.batches, books.new_batches)
    yield inserted(conn, schema.players, map(_of, books.new_players.values()))
    yield inserted(conn, schema.accounts, map(_of, books.new_accounts.values()))
    yield inserted(conn, schema.hands, map(_of, books.new_hands.values()))
    yield inserted(conn, schema.sittings, map(_of, books.new_sittings.values()))
    yield inserted(conn, schema.reservations, map(_of, books.new_reservations.values()))
    balances = sorted(books.changed_accounts - books.new_accounts.keys())
    rows = [(account, books.accounts[account].balance) for account in balances]
    yield updated(conn, schema.accounts, ("account",), ("balance",), rows)
    yield deleted_among(conn, schema.accounts, "account", books.dropped_accounts)
    yield _updated(conn, schema.table_ledgers, [books.tables[key] for key in sorted(books.changed_tables)])
    hands = sorted(books.changed_hands - books.new_hands.keys())
    yield _updated(conn, schema.hands, [books.hands[at] for at in hands])
    sittings = sorted(books.changed_sittings - books.new_sittings.keys())
    yield _updated(conn, schema.sittings, [books.sittings[key] for key in sittings])
    reservations = sorted(books.changed_reservations - books.new_reservations.keys())
    yield _updated(conn, schema.reservations, [books.reservations[key] for key in reservations])


def _load_under_tables(
    conn: Connection, books: Books, asked: Sequence[tuple[str, c.Command]], tables: Sequence[str]
) -> bool:
    """Locks the tables, then reads what belongs to them; whether every table was there."""
    state, locked, stored, *of_tables, by_name, by_display = run(conn, _under_tables(conn, asked, tables))
    books.closed_reason = state[0][0]
    for row in locked:
        books.tables[row[0]] = TableRow(*row)
    if len(locked) < len(tables):
        return False
    for key, *rest in stored:
        books.batches[key] = StoredBatch(*rest)
    current_hands, named_hands, named_sittings, open_sittings, reserved_sittings, reserved = of_tables
    for table_id, hand, epoch, outcome, *rest in (*current_hands, *named_hands):
        books.hands[table_id, hand] = HandRow(table_id, hand, epoch, _OUTCOMES[outcome], *rest)
    _add_sittings(books, (*named_sittings, *open_sittings, *reserved_sittings))
    _add_reservations(books, reserved)
    for player, display_name, display_key, state_no, created_ms in (*by_name, *by_display):
        profile = PlayerRow(player, display_name, display_key, _STATES[state_no], created_ms)
        books.players.setdefault(player, profile)
        books.display_keys[display_key] = player
    return True


def _under_tables(
    conn: Connection, asked: Sequence[tuple[str, c.Command]], tables: Sequence[str]
) -> Iterator[Statement | None]:
    wanted = [command for _, command in asked]
    on_postgresql = is_postgresql(conn)
    yield Statement(_BEGIN_ON_POSTGRESQL, (SEALING_LOCK,)) if on_postgresql else Statement(_BEGIN_ON_SQLITE, ())
    yield locked_among(conn, _TABLES, "table_id", tables)
    yield among(conn, _BATCHES, "batch_key", {key for key, _ in asked if key})
    yield among(conn, _CURRENT_HANDS, "t.table_id", tables)
    named = sorted(needs.hands(wanted))
    of_hands = _HANDS_ON_POSTGRESQL if on_postgresql else _HANDS_ON_SQLITE
    yield Statement(of_hands, (as_json(named),)) if named else None
    yield among(conn, _SITTINGS, "s.sitting", needs.sittings(wanted))
    yield among(conn, _SITTINGS, "s.table_id", needs.whole_tables(wanted), "AND s.open")
    reservations = needs.reservations(wanted)
    yield among(conn, _RESERVED_SITTINGS, "r.reservation", reservations)
    yield among(conn, _RESERVATIONS, "r.reservation", reservations)
    yield among(conn, _PLAYERS, "player", needs.players(wanted))
    yield among(conn, _PLAYERS, "display_key", needs.display_keys(wanted))


def _add_accounts(books: Books, rows: Iterable[Row]) -> None:
    for account, kind, owner, currency, balance, opened_ms in rows:
        books.accounts[account] = AccountRow(account, _KINDS[kind], owner, currency, balance, opened_ms)


def _add_sittings(books: Books, rows: Iterable[Row]) -> None:
    for row in rows:
        *of_sitting, display_name, display_key, state, created_ms = row
        sitting = SittingRow(*of_sitting)
        sitting.open = bool(sitting.open)
        books.add_sitting(sitting)
        _add_owner(books, sitting.player, display_name, display_key, state, created_ms)


def _add_reservations(books: Books, rows: Iterable[Row]) -> None:
    for row in rows:
        *of_reservation, display_name, display_key, state, created_ms = row
        reservation = ReservationRow(*of_reservation)
        reservation.state = ReservationState(reservation.state)
        books.reservations[reservation.reservation] = reservation
        _add_owner(books, reservation.player, display_name, display_key, state, created_ms)


def _add_owner(books: Books, player: str, *profile: Any) -> None:
    """The player of a joined row, which is nobody's where it only marks an id as used."""
    display_name, display_key, state, created_ms = profile
    if state is not None and player not in books.players:
        books.players[player] = PlayerRow(player, display_name, display_key, _STATES[state], created_ms)


def _numbers(conn: Connection, count: int) -> Statement:
    return Statement(_NUMBERS_ON_POSTGRESQL if is_postgresql(conn) else _NUMBERS_ON_SQLITE, (count,))


def _in_order(taken: Iterable[Row]) -> Iterator[int]:
    return iter(sorted(number for (number,) in taken))


def _lines_of_hands(conn: Connection, table_id: str, first_hand: int, last_hand: int) -> Statement:
    query = _LINES_OF_HANDS.format("%s" if is_postgresql(conn) else "?")
    return Statement(query, (table_id, first_hand, last_hand))


def _net(lines: Iterable[Row]) -> dict[str, int]:
    paid: dict[str, int] = {}
    for line in lines:
        note_paid(paid, *line)
    return paid


def _updated(conn: Connection, table: Table, rows: Sequence[Any]) -> Statement | None:
    """Writes what a decision may change of rows that are there; all else of them stays as it was made."""
    keys, columns = _CHANGING[table.name]
    values = attrgetter(*keys, *columns)
    return updated(conn, table, keys, columns, [values(row) for row in rows])


def _of(row: Any) -> Row:
    values: Row = _VALUES_OF[type(row)](row)
    return values


_VALUES_OF: Final = {
    kind: attrgetter(*kind.__slots__) for kind in (PlayerRow, AccountRow, TableRow, HandRow, SittingRow, ReservationRow)
}

# The keys of a table and the columns that change under them.
_CHANGING: Final = {
    "table_ledgers": (
        ("table_id",),
        ("currency", "epoch", "fenced_epoch", "fenced_hand", "last_hand", "open_hand", "carry_since_hand"),
    ),
    "hands": (("table_id", "hand"), ("outcome", "steps", "last_round", "closed_ms", "reason")),
    "sittings": (("sitting",), ("open", "locked_hand", "cashed_out")),
    "reservations": (("reservation",), ("state", "closed_ms")),
}
