"""One commit's worth of batches: each decided in order on the same books, then all written at once.

The order of precedence for every batch: the stored answer or BATCH_CONFLICT, LEDGER_CLOSED, then the guards of its
decision from the top (docs/ledger.md has the table). A refusal by a decision is stored like an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import Connection

from services.runtime.errors import Fault
from services.wallet import adjust_desk, cash_desk, closing_desk, hand_desk, house_desk, reserve_desk, seats_desk, store
from services.wallet import commands as c
from services.wallet.books import Books, StoredBatch

OK: Final = "OK"

Failpoint = Callable[[str], None]
"""Called with the name of each point where a process may die; tests make it die there."""

_DECISIONS: Final[dict[type, Callable[[Books, Any], c.Answer]]] = {
    c.CreatePlayer: cash_desk.create_player,
    c.Deposit: cash_desk.deposit,
    c.Withdraw: cash_desk.withdraw,
    c.AdjustBalance: adjust_desk.adjust_balance,
    c.BuyIn: seats_desk.buy_in,
    c.TopUp: seats_desk.top_up,
    c.CashOut: seats_desk.cash_out,
    c.PostForced: hand_desk.post_forced,
    c.CollectBets: hand_desk.collect_bets,
    c.AwardPot: hand_desk.award_pot,
    c.ReserveBuyIn: reserve_desk.reserve_buy_in,
    c.CommitReservation: reserve_desk.commit_reservation,
    c.ReleaseReservation: reserve_desk.release_reservation,
    c.ExpireReservation: reserve_desk.expire_reservation,
    c.SweepHouse: house_desk.sweep_house,
}

# These read entries, which must all be in the database by then.
_READING_DECISIONS: Final[dict[type, Callable[[Connection, Books, Any], c.Answer]]] = {
    c.VoidHand: closing_desk.void_hand,
    c.RefundCarry: closing_desk.refund_carry,
    c.FenceTable: closing_desk.fence_table,
}

# Who stood behind a batch is booked with it and no part of what it asks: another may approve the repeat of one whose
# answer was lost.
_WITNESSES: Final = frozenset({"approved_by"})

_ANSWERS: Final[dict[str, type[c.Answer]]] = {
    "CreatePlayer": c.Player,
    "Deposit": c.Balance,
    "Withdraw": c.Balance,
    "AdjustBalance": c.Balance,
    "BuyIn": c.Stack,
    "TopUp": c.Stack,
    "CashOut": c.CashedOut,
    "PostForced": c.Pot,
    "CollectBets": c.Pot,
    "AwardPot": c.Awarded,
    "VoidHand": c.Voided,
    "RefundCarry": c.CarryRefunded,
    "FenceTable": c.Fenced,
    "ReserveBuyIn": c.Reservation,
    "CommitReservation": c.Stack,
    "ReleaseReservation": c.Released,
    "ExpireReservation": c.Released,
    "SweepHouse": c.Swept,
}


class _StoredRefusal(msgspec.Struct, frozen=True):
    message: str
    metadata: dict[str, str]


def no_failpoint(_: str) -> None:
    """The failpoint of a process that means to live."""


def batch_key(caller: str, command: c.Command) -> str:
    """The unique key of a batch: its id within its caller's namespace. A fence has none until it acts."""
    if isinstance(command, c.FenceTable | c.SetPlayerState | c.SetPlayerLimits):
        return ""
    return f"{caller} {command.batch_id}"


def decide_group(
    conn: Connection,
    asked: Sequence[tuple[str, c.Command]],
    shard: int,
    now_ms: int,
    failpoint: Failpoint = no_failpoint,
) -> list[c.Answer | Fault]:
    """Decides (batch key, command) pairs in order within the connection's transaction; one outcome for each."""
    books = store.load(conn, asked, shard, now_ms)
    failpoint("loaded")
    outcomes = [_decide(conn, books, key, command) for key, command in asked]
    store.flush(conn, books)
    failpoint("written")
    return outcomes


def content_of(command: c.Command) -> str:
    """What a batch asks, as canonical JSON: the fields in their declared order."""
    return msgspec.json.encode(command).decode()


def stored_answer(batch: StoredBatch) -> c.Answer | Fault:
    """The answer or refusal of an earlier batch."""
    if batch.outcome == OK:
        return msgspec.json.decode(batch.answer, type=_ANSWERS[batch.operation])
    refusal = msgspec.json.decode(batch.answer, type=_StoredRefusal)
    return Fault(batch.outcome, refusal.message, **refusal.metadata)


def _decide(conn: Connection, books: Books, key: str, command: c.Command) -> c.Answer | Fault:
    stored = books.batches.get(key) if key else None
    if stored is not None:
        return _again(stored, command)
    if isinstance(command, c.PostForced):
        closed = _closed(books, command.table)
        if closed is not None:
            return closed
    fenced_before = books.at_table(command.table).fenced_epoch if isinstance(command, c.FenceTable) else 0
    try:
        answer = _answer(conn, books, command)
    except Fault as fault:
        if isinstance(command, c.FenceTable):
            books.close_batch(refused=True)
            return fault
        refusal = msgspec.json.encode(_StoredRefusal(fault.message, fault.metadata)).decode()
        _record(books, key, command, outcome=fault.reason, answer=refusal)
        return fault
    if isinstance(command, c.FenceTable):
        if fenced_before == command.epoch:
            # The same fence again did nothing, so there is nothing to book.
            books.close_batch(refused=False)
            return answer
        key = f"fence {command.table}/{command.epoch}"
    _record(books, key, command, outcome=OK, answer=msgspec.json.encode(answer).decode())
    return answer


def _closed(books: Books, table: str) -> Fault | None:
    """The refusal of a new hand where the ledger, or this table's part of it, is closed. It is not stored."""
    if books.closed_reason:
        return Fault("LEDGER_CLOSED", f"no new hand: {books.closed_reason}")
    reason = books.at_table(table).closed_reason
    if reason:
        return Fault("LEDGER_CLOSED", f"no new hand at table {table}: {reason}", table=f"tables/{table}")
    return None


def _answer(conn: Connection, books: Books, command: c.Command) -> c.Answer:
    reading = _READING_DECISIONS.get(type(command))
    if reading is None:
        return _DECISIONS[type(command)](books, command)
    store.flush(conn, books)
    return reading(conn, books, command)


def _again(stored: StoredBatch, command: c.Command) -> c.Answer | Fault:
    operation = type(command).__name__
    if stored.operation != operation:
        return _conflict(stored, "operation", stored.operation, operation)
    if stored.content == content_of(command):
        return stored_answer(stored)
    before: dict[str, Any] = msgspec.json.decode(stored.content)
    after: dict[str, Any] = msgspec.json.decode(content_of(command))
    differing = [name for name in {**after, **before} if before.get(name) != after.get(name) and name not in _WITNESSES]
    if not differing:
        return stored_answer(stored)
    field = differing[0]
    return _conflict(stored, field, str(before.get(field)), str(after.get(field)))


def _conflict(stored: StoredBatch, field: str, before: str, after: str) -> Fault:
    return Fault(
        "BATCH_CONFLICT",
        f"this id came before with another {field}: {before[:100]}, now {after[:100]}",
        field=field,
        outcome=stored.outcome,
    )


def _record(books: Books, key: str, command: c.Command, *, outcome: str, answer: str) -> None:
    number = next(books.numbers)
    lines = books.close_batch(refused=outcome != OK)
    operation, content = type(command).__name__, content_of(command)
    table_id = getattr(command, "table", "")
    hand = getattr(command, "hand", 0)
    if isinstance(command, c.FenceTable):
        hand = books.at_table(table_id).fenced_hand
    books.batches[key] = StoredBatch(operation, content, outcome, answer)
    books.new_batches.append(
        (number, key, operation, table_id, hand, content, outcome, answer, len(lines), books.now_ms)
    )
    books.new_transfers.extend(
        (number, at, int(move.code), move.debit, move.credit, currency, move.amount_minor, debited, credited)
        for at, (move, currency, debited, credited) in enumerate(lines, start=1)
    )
