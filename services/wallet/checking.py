"""Checks what is new in the ledger, from the last seal that was found sound to the newest one.

The checker keeps books of its own: `audited_balances` is what each account held under the last seal that it found
sound. A round reads the seals after it with everything under them, holds each line to those books, compares the
accounts that were touched with what they hold now, and only then moves its own books on. What it finds keeps it where
it is, so that every round finds it again until somebody has looked. Accounts that nothing new touches, and what rows
say of each other, are the whole audit's business.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from msgspec import Struct
from sqlalchemy import Connection, select, update

from services.wallet import chain, row_sets
from services.wallet.entries import EntryWalk
from services.wallet.schema import accounts, audited_balances, batches, ledger_state, seals, transfers

# What one round reads at most; the next one goes on.
BATCHES_PER_ROUND_MAX: Final = 10_000
_ACCOUNTS_AT_ONCE: Final = 1_000


class Checked(Struct, frozen=True):
    """What a round found: from which batch to which one it read, its faults, and the books it would move on to.

    `last_batch` is `after` where nothing new is sealed; `behind` is how many batches lie after it.
    """

    after: int
    last_batch: int
    behind: int
    entries_checked: int
    faults: tuple[str, ...]
    balances: dict[str, int]


def check_new(conn: Connection) -> Checked:
    """Reads what is new, on the connection's snapshot; changes nothing."""
    after = conn.scalar(select(ledger_state.c.audited_batch)) or 0
    newest = chain.last_batch(conn)
    up_to = _end_of_round(conn, after)
    since = _seal_ending_at(conn, after) if after else None
    if after and since is None:
        fault = f"SEAL_MISSING: no seal ends with batch {after}, up to which everything was sound"
        return Checked(after, after, newest - after, 0, (fault,), {})
    if up_to == after:
        return Checked(after, after, newest - after, 0, (), {})
    walk = EntryWalk(conn, since=since, known=lambda names: _audited(conn, names))
    walk.walk(up_to)
    if newest - up_to <= BATCHES_PER_ROUND_MAX:
        _compare(conn, walk, up_to)
    faults = tuple(walk.faults)
    return Checked(after, up_to, newest - up_to, walk.entries, faults, walk.balances)


def move_on(conn: Connection, checked: Checked) -> bool:
    """Takes a sound round into the checker's books; False where another process has done so."""
    moved = conn.execute(
        update(ledger_state)
        .where(ledger_state.c.id == 1, ledger_state.c.audited_batch == checked.after)
        .values(audited_batch=checked.last_batch)
    )
    if moved.rowcount != 1:
        return False
    kept = [(account, balance) for account, balance in sorted(checked.balances.items()) if balance]
    row_sets.run(
        conn,
        [
            row_sets.deleted_among(conn, audited_balances, "account", checked.balances),
            row_sets.inserted(conn, audited_balances, kept),
        ],
    )
    return True


def _end_of_round(conn: Connection, after: int) -> int:
    """The last batch of the seals that one round reads: whole ones, at least one."""
    up_to, read = after, 0
    found = conn.execute(
        select(seals.c.last_batch, seals.c.batch_count)
        .where(seals.c.last_batch > after)
        .order_by(seals.c.seal_no)
        .limit(BATCHES_PER_ROUND_MAX)
    )
    for last_batch, count in found:
        read += count
        if read > BATCHES_PER_ROUND_MAX and up_to > after:
            break
        up_to = last_batch
    return up_to


def _seal_ending_at(conn: Connection, batch: int) -> chain.Seal | None:
    row = conn.execute(select(*seals.c).where(seals.c.last_batch == batch)).first()
    return None if row is None else chain.Seal(*row)


def _audited(conn: Connection, names: Collection[str]) -> dict[str, int]:
    query = "SELECT account, balance FROM audited_balances"
    return dict(row_sets.run(conn, [row_sets.among(conn, query, "account", names)])[0])


def _compare(conn: Connection, walk: EntryWalk, up_to: int) -> None:
    """Holds the accounts that the round touched to what they hold now, with what came after the last seal."""
    expected = dict(walk.balances)
    later = select(transfers.c.debit, transfers.c.credit, transfers.c.amount).where(transfers.c.batch_no > up_to)
    for debit, credit, amount in conn.execute(later.join(batches, batches.c.batch_no == transfers.c.batch_no)):
        for account, change in ((debit, -amount), (credit, amount)):
            if account in expected:
                expected[account] += change
    query = f"SELECT account, balance FROM {accounts.name}"  # noqa: S608 - a name of the schema
    names = sorted(expected)
    held: dict[str, int] = {}
    for start in range(0, len(names), _ACCOUNTS_AT_ONCE):
        some = names[start : start + _ACCOUNTS_AT_ONCE]
        held.update(row_sets.run(conn, [row_sets.among(conn, query, "account", some)])[0])
    for account, balance in expected.items():
        # A pot, or what a reservation held, is dropped when it is empty.
        if held.get(account, 0) != balance:
            walk.fault("BALANCE_DIFFERS", f"{account} holds {held.get(account, 0)}; its entries make {balance}")
