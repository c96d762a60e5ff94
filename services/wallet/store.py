"""Reads the rows that a group of batches needs, under lock and in account order, and writes back what it changed.

One table's hands, sittings, stacks, pots and carry change only under that table's row lock, so only tables and the
accounts are locked: tables by id, then accounts by name. On SQLite the transaction itself is the lock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Table, and_, bindparam, delete, insert, or_, select, text, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite

from services.wallet import chart
from services.wallet import commands as c
from services.wallet.books import AccountRow, Books, HandRow, PlayerRow, SittingRow, StoredBatch, TableRow
from services.wallet.chart import AccountKind, HandOutcome, PlayerState, TransferCode
from services.wallet.schema import (
    accounts,
    batches,
    hands,
    ledger_state,
    players,
    sittings,
    table_ledgers,
    transfers,
)

# The sealer takes this lock alone for a moment, so that no number below its mark is still on the way to disk.
SEALING_LOCK: Final = 0x66697665_00000001

# These end or read a hand, or list the table's stacks: they need every open sitting of their table.
_WHOLE_TABLE: Final = (c.AwardPot, c.VoidHand, c.RefundCarry, c.FenceTable)


def load(conn: Connection, asked: Sequence[tuple[str, c.Command]], shard: int, now_ms: int) -> Books:
    """Reads and locks what these (batch key, command) pairs need."""
    books = Books(now_ms=now_ms, shard=shard)
    wanted = [command for _, command in asked]
    if conn.dialect.name == "postgresql":
        conn.execute(text("SELECT pg_advisory_xact_lock_shared(:lock)"), {"lock": SEALING_LOCK})
    of_tables = [command for command in wanted if isinstance(command, c.TableCommand)]
    _load_tables(conn, books, of_tables)
    _load_batches(conn, books, {key for key, _ in asked if key})
    _load_hands(conn, books, of_tables)
    _load_sittings(conn, books, of_tables)
    _load_players(conn, books, wanted)
    load_accounts(conn, books, _account_names(books, wanted))
    books.closed_reason = conn.execute(select(ledger_state.c.closed_reason)).scalar_one()
    return books


def load_accounts(conn: Connection, books: Books, names: Iterable[str]) -> None:
    """Reads and locks accounts that are not yet at hand."""
    missing = sorted(set(names) - books.accounts.keys())
    query = select(
        accounts.c.account,
        accounts.c.kind,
        accounts.c.owner,
        accounts.c.currency,
        accounts.c.balance,
        accounts.c.opened_ms,
    ).order_by(accounts.c.account)
    for some in _portions(missing):
        for row in conn.execute(query.where(accounts.c.account.in_(some)).with_for_update()):
            books.accounts[row[0]] = AccountRow(row[0], AccountKind(row[1]), row[2], row[3], row[4], row[5])


def contributions(conn: Connection, table_id: str, first_hand: int, last_hand: int) -> dict[str, int]:
    """What each stack account put into the pots of these hands and did not get back as unmatched or void.

    Only stacks that paid more than nothing are named. Chips won do not count against what was paid.
    """
    paid: dict[str, int] = {}
    of_hands = and_(batches.c.table_id == table_id, batches.c.hand >= first_hand, batches.c.hand <= last_hand)
    rows = conn.execute(
        select(transfers.c.code, transfers.c.debit, transfers.c.credit, transfers.c.amount)
        .join(batches, batches.c.batch_no == transfers.c.batch_no)
        .where(of_hands)
        .order_by(transfers.c.batch_no, transfers.c.line)
    )
    into = {TransferCode.ANTE, TransferCode.BLIND, TransferCode.BET}
    back = {TransferCode.RETURN, TransferCode.VOID}
    for code, debit, credit, amount in rows:
        if code in into:
            paid[debit] = paid.get(debit, 0) + amount
        elif code in back:
            paid[credit] = paid.get(credit, 0) - amount
    return {account: amount for account, amount in paid.items() if amount > 0 and account.startswith("stack/")}


def carried_in(conn: Connection, table_id: str, hand: int) -> int:
    """What a hand took in from the table's carry."""
    rows = conn.execute(
        select(transfers.c.amount)
        .join(batches, batches.c.batch_no == transfers.c.batch_no)
        .where(batches.c.table_id == table_id, batches.c.hand == hand, transfers.c.code == TransferCode.CARRY_IN)
    )
    return sum(amount for (amount,) in rows)


def load_sittings(conn: Connection, books: Books, names: Collection[str]) -> None:
    """Reads sittings by name that are not yet at hand."""
    for some in _portions(sorted(set(names) - books.sittings.keys())):
        _add_sittings(conn, books, sittings.c.sitting.in_(some))


def flush(conn: Connection, books: Books) -> None:
    """Writes what changed; the books can then be used further in the same transaction."""
    _insert(conn, players, (_of(row) for row in books.new_players.values()))
    _insert(conn, accounts, (_of(row) for row in books.new_accounts.values()))
    _insert(conn, hands, (_of(row) for row in books.new_hands.values()))
    _insert(conn, sittings, (_of(row) for row in books.new_sittings.values()))
    _insert(conn, batches, books.new_batches)
    _insert(conn, transfers, books.new_transfers)
    _update_balances(conn, books)
    for some in _portions(sorted(books.dropped_accounts)):
        conn.execute(delete(accounts).where(accounts.c.account.in_(some)))
    for table, keys, rows in (
        (table_ledgers, ("table_id",), [books.tables[key] for key in sorted(books.changed_tables)]),
        (
            hands,
            ("table_id", "hand"),
            [books.hands[at] for at in sorted(books.changed_hands - books.new_hands.keys())],
        ),
        (
            sittings,
            ("sitting",),
            [books.sittings[key] for key in sorted(books.changed_sittings - books.new_sittings.keys())],
        ),
    ):
        _update(conn, table, keys, rows)
    for written in (books.new_players, books.new_accounts, books.new_hands, books.new_sittings):
        written.clear()
    for changed in (books.changed_accounts, books.dropped_accounts, books.changed_tables, books.changed_sittings):
        changed.clear()
    books.changed_hands.clear()
    books.new_batches.clear()
    books.new_transfers.clear()


def batch_numbers(conn: Connection, count: int) -> Iterator[int]:
    """The next `count` batch numbers, ascending; on PostgreSQL they are taken under the rows' locks."""
    if conn.dialect.name == "postgresql":
        query = text("SELECT nextval('batch_numbers') FROM generate_series(1, :count)")
        return iter(sorted(number for (number,) in conn.execute(query, {"count": count})))
    last = conn.execute(text("SELECT max(batch_no) FROM batches")).scalar_one() or 0
    return iter(range(last + 1, last + 1 + count))


def _load_tables(conn: Connection, books: Books, asked: Sequence[c.TableCommand]) -> None:
    names = sorted({command.table for command in asked})
    query = select(*table_ledgers.c).order_by(table_ledgers.c.table_id).with_for_update()
    for some in _portions(names):
        _add_tables(conn, books, query.where(table_ledgers.c.table_id.in_(some)))
        missing = [name for name in some if name not in books.tables]
        if missing:
            fresh = [_of(TableRow(name, "", 0, 0, 0, 0, 0, 0)) for name in missing]
            flavour = postgresql.insert if conn.dialect.name == "postgresql" else sqlite.insert
            names_of = table_ledgers.c.keys()
            conn.execute(
                flavour(table_ledgers).on_conflict_do_nothing(),
                [dict(zip(names_of, row, strict=True)) for row in fresh],
            )
            _add_tables(conn, books, query.where(table_ledgers.c.table_id.in_(missing)))


def _add_tables(conn: Connection, books: Books, query: Any) -> None:
    for row in conn.execute(query):
        books.tables[row[0]] = TableRow(*row)


def _load_batches(conn: Connection, books: Books, keys: Collection[str]) -> None:
    query = select(batches.c.batch_key, batches.c.operation, batches.c.content, batches.c.outcome, batches.c.answer)
    for some in _portions(sorted(keys)):
        for row in conn.execute(query.where(batches.c.batch_key.in_(some))):
            books.batches[row[0]] = StoredBatch(*row[1:])


def _load_hands(conn: Connection, books: Books, asked: Sequence[c.TableCommand]) -> None:
    wanted = {(row.table_id, row.open_hand) for row in books.tables.values() if row.open_hand}
    wanted |= {(row.table_id, row.last_hand) for row in books.tables.values() if row.last_hand}
    wanted |= {
        (command.table, command.hand)
        for command in asked
        if isinstance(command, c.PostForced | c.CollectBets | c.AwardPot | c.VoidHand)
    }
    for some in _portions(sorted(wanted)):
        for row in conn.execute(select(*hands.c).where(tuple_(hands.c.table_id, hands.c.hand).in_(some))):
            table_id, hand, epoch, outcome, *rest = row
            books.hands[table_id, hand] = HandRow(table_id, hand, epoch, HandOutcome(outcome), *rest)


def _load_sittings(conn: Connection, books: Books, asked: Sequence[c.TableCommand]) -> None:
    named = {sitting for command in asked for sitting in sittings_named(command)}
    whole = {command.table for command in asked if isinstance(command, _WHOLE_TABLE)}
    for some in _portions(sorted(named | whole)):
        names, tables = [each for each in some if each in named], [each for each in some if each in whole]
        _add_sittings(
            conn,
            books,
            or_(sittings.c.sitting.in_(names), and_(sittings.c.table_id.in_(tables), sittings.c.open.is_(True))),
        )


def sittings_named(command: c.TableCommand) -> tuple[str, ...]:
    """The sittings that a command names."""
    match command:
        case c.BuyIn() | c.TopUp() | c.CashOut():
            return (command.sitting,)
        case c.PostForced():
            return (*command.dealt_in, *(line.sitting for line in command.postings))
        case c.CollectBets():
            return tuple(line.sitting for line in (*command.bets, *command.returned))
        case c.AwardPot():
            return tuple(line.sitting for line in command.wins)
        case _:
            return ()


def _add_sittings(conn: Connection, books: Books, condition: Any) -> None:
    query = (
        select(*sittings.c, players.c.display_name, players.c.display_key, players.c.state, players.c.created_ms)
        .outerjoin(players, players.c.player == sittings.c.player)
        .where(condition)
    )
    for row in conn.execute(query):
        *of_sitting, display_name, display_key, state, created_ms = row
        sitting = SittingRow(*of_sitting)
        books.sittings.setdefault(sitting.sitting, sitting)
        if state is not None and sitting.player not in books.players:
            books.players[sitting.player] = PlayerRow(
                sitting.player, display_name, display_key, PlayerState(state), created_ms
            )


def _load_players(conn: Connection, books: Books, asked: Sequence[c.Command]) -> None:
    names = {
        command.player
        for command in asked
        if isinstance(command, c.CreatePlayer | c.Deposit | c.Withdraw | c.BuyIn | c.SetPlayerState)
    } - books.players.keys()
    keys = {command.display_name.casefold() for command in asked if isinstance(command, c.CreatePlayer)}
    for some in _portions(sorted(names | keys)):
        condition = or_(players.c.player.in_(some), players.c.display_key.in_(some))
        for player, display_name, display_key, state, created_ms in conn.execute(select(*players.c).where(condition)):
            books.players.setdefault(
                player, PlayerRow(player, display_name, display_key, PlayerState(state), created_ms)
            )
    for row in books.players.values():
        books.display_keys[row.display_key] = row.player


def _account_names(books: Books, asked: Sequence[c.Command]) -> set[str]:
    names: set[str] = set()
    for command in asked:
        match command:
            case c.Deposit() | c.Withdraw():
                names.add(chart.cash_account(command.player, command.currency))
                names.add(chart.cashier_account(command.currency, books.shard))
            case c.BuyIn():
                names.add(chart.cash_account(command.player, command.currency))
                names.add(chart.stack_account(command.sitting))
            case c.TopUp() | c.CashOut():
                row = books.sittings.get(command.sitting)
                if row is not None:
                    names.add(chart.cash_account(row.player, row.currency))
                names.add(chart.stack_account(command.sitting))
            case c.PostForced() | c.CollectBets():
                names.update(chart.stack_account(sitting) for sitting in sittings_named(command))
                names.add(chart.pot_account(command.table, command.hand))
                names.add(chart.carry_account(command.table))
            case c.AwardPot() | c.VoidHand() | c.RefundCarry() | c.FenceTable():
                names |= _whole_table_accounts(books, command)
    return names


def _whole_table_accounts(books: Books, command: c.AwardPot | c.VoidHand | c.RefundCarry | c.FenceTable) -> set[str]:
    table = books.at_table(command.table)
    names = {chart.stack_account(row.sitting) for row in books.sittings.values() if row.table_id == command.table}
    names.add(chart.carry_account(command.table))
    if table.open_hand:
        names.add(chart.pot_account(command.table, table.open_hand))
    if isinstance(command, c.AwardPot | c.VoidHand):
        names.add(chart.pot_account(command.table, command.hand))
    if isinstance(command, c.AwardPot) and command.rake_minor and table.currency:
        names.add(chart.rake_account(table.currency, books.shard))
    return names


# Below the least number of parameters that either database takes in one statement.
_PORTION: Final = 5_000


def _portions(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), _PORTION):
        yield items[start : start + _PORTION]


def _of(row: Any) -> tuple[Any, ...]:
    return tuple(getattr(row, name) for name in row.__slots__)


def _insert(conn: Connection, table: Table, rows: Iterable[tuple[Any, ...]]) -> None:
    names = table.c.keys()
    values = [dict(zip(names, row, strict=True)) for row in rows]
    if values:
        conn.execute(insert(table), values)


def _update(conn: Connection, table: Table, keys: tuple[str, ...], rows: Sequence[Any]) -> None:
    if not rows:
        return
    names = [column.name for column in table.c if column.name not in keys]
    statement = (
        update(table)
        .where(*(table.c[key] == bindparam(f"at_{key}") for key in keys))
        .values({name: bindparam(f"to_{name}") for name in names})
    )
    conn.execute(
        statement,
        [
            {f"at_{key}": getattr(row, key) for key in keys} | {f"to_{name}": getattr(row, name) for name in names}
            for row in rows
        ],
    )


def _update_balances(conn: Connection, books: Books) -> None:
    changed = sorted(books.changed_accounts - books.new_accounts.keys())
    if not changed:
        return
    statement = update(accounts).where(accounts.c.account == bindparam("at")).values(balance=bindparam("to"))
    conn.execute(statement, [{"at": name, "to": books.accounts[name].balance} for name in changed])
