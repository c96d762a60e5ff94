"""The books open on the desk: the rows that one group of batches needs, changed in memory and written back at once.

A decision reads and changes rows here, guards first; `post` checks a whole list of transfers before it applies any,
so a refused batch leaves the books as they were.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from services.runtime.errors import Fault
from services.wallet import chart
from services.wallet.chart import (
    BALANCE_MAX_MINOR,
    AccountKind,
    HandOutcome,
    PlayerState,
    ReservationState,
    TransferCode,
)

LINES_MAX: Final = 4096


class BooksBrokenError(RuntimeError):
    """The stored books contradict themselves; nothing of the group is written."""


@dataclass(slots=True)
class PlayerRow:
    """A player's profile."""

    player: str
    display_name: str
    display_key: str
    state: PlayerState
    created_ms: int


@dataclass(slots=True)
class AccountRow:
    """An account and its balance."""

    account: str
    kind: AccountKind
    owner: str
    currency: str
    balance: int
    opened_ms: int


@dataclass(slots=True)
class TableRow:
    """What the ledger knows of a table; hand numbers and epochs are 0 where there is none.

    `closed_reason` says why it takes no new hand, and is empty where it does.
    """

    table_id: str
    currency: str
    epoch: int
    fenced_epoch: int
    fenced_hand: int
    last_hand: int
    open_hand: int
    carry_since_hand: int
    closed_reason: str

    @classmethod
    def unknown(cls, table_id: str) -> TableRow:
        """A table of which the ledger knows nothing yet."""
        return cls(table_id, "", 0, 0, 0, 0, 0, 0, "")


@dataclass(slots=True)
class HandRow:
    """One hand; `steps` counts its batches, `last_round` is the last round collected."""

    table_id: str
    hand: int
    epoch: int
    outcome: HandOutcome
    steps: int
    last_round: int
    opened_ms: int
    closed_ms: int
    reason: str


@dataclass(slots=True)
class SittingRow:
    """One player's stay at one table; `locked_hand` is the hand that holds its stack, or 0."""

    sitting: str
    table_id: str
    player: str
    seat: int
    currency: str
    open: bool
    locked_hand: int
    cashed_out: int
    opened_ms: int


@dataclass(slots=True)
class ReservationRow:
    """Cash held for a buy-in until it is committed, released or expired; `closed_ms` is 0 until then.

    One without a player was released before it was made.
    """

    reservation: str
    table_id: str
    epoch: int
    sitting: str
    player: str
    seat: int
    currency: str
    amount: int
    state: ReservationState
    opened_ms: int
    expires_ms: int
    closed_ms: int


@dataclass(slots=True)
class LimitRow:
    """A player's limits of a day in one currency (0 is none), and what the day has used of them."""

    deposit_day_max: int
    buy_in_day_max: int
    deposited: int
    bought_in: int


@dataclass(slots=True, frozen=True)
class StoredBatch:
    """An earlier batch: what was asked and what was answered."""

    operation: str
    content: str
    outcome: str
    answer: str


@dataclass(slots=True, frozen=True)
class Move:
    """A transfer that a decision wants: one debit, one credit, one positive amount."""

    code: TransferCode
    debit: str
    credit: str
    amount_minor: int


@dataclass(slots=True)
class Books:
    """The rows at hand. `shard` is this writer's sub-account of the hot accounts, `numbers` those for new batches."""

    now_ms: int
    shard: int
    closed_reason: str = ""
    numbers: Iterator[int] = field(default_factory=lambda: iter(()))
    players: dict[str, PlayerRow] = field(default_factory=dict)
    display_keys: dict[str, str] = field(default_factory=dict)
    accounts: dict[str, AccountRow] = field(default_factory=dict)
    tables: dict[str, TableRow] = field(default_factory=dict)
    hands: dict[tuple[str, int], HandRow] = field(default_factory=dict)
    sittings: dict[str, SittingRow] = field(default_factory=dict)
    sittings_at: dict[str, list[SittingRow]] = field(default_factory=dict)
    reservations: dict[str, ReservationRow] = field(default_factory=dict)
    limits: dict[str, LimitRow] = field(default_factory=dict)
    batches: dict[str, StoredBatch] = field(default_factory=dict)
    paid_in: dict[tuple[str, int], dict[str, int]] = field(default_factory=dict)
    new_players: dict[str, PlayerRow] = field(default_factory=dict)
    new_accounts: dict[str, AccountRow] = field(default_factory=dict)
    new_hands: dict[tuple[str, int], HandRow] = field(default_factory=dict)
    new_sittings: dict[str, SittingRow] = field(default_factory=dict)
    new_reservations: dict[str, ReservationRow] = field(default_factory=dict)
    new_batches: list[tuple[object, ...]] = field(default_factory=list)
    new_transfers: list[tuple[object, ...]] = field(default_factory=list)
    dropped_accounts: set[str] = field(default_factory=set)
    changed_accounts: set[str] = field(default_factory=set)
    changed_tables: set[str] = field(default_factory=set)
    changed_hands: set[tuple[str, int]] = field(default_factory=set)
    changed_sittings: set[str] = field(default_factory=set)
    changed_reservations: set[str] = field(default_factory=set)
    posted: list[tuple[Move, str, int, int]] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)

    def balance(self, account: str) -> int:
        """An account's balance; one that was never opened holds nothing."""
        row = self.accounts.get(account)
        return 0 if row is None else row.balance

    def at_table(self, table_id: str) -> TableRow:
        """The row of a table, which the store has loaded or made."""
        row = self.tables.get(table_id)
        if row is None:
            raise BooksBrokenError(f"table {table_id} was not loaded")
        return row

    def add_sitting(self, row: SittingRow) -> None:
        """Takes a sitting onto the books, unless it is there."""
        if row.sitting not in self.sittings:
            self.sittings[row.sitting] = row
            self.sittings_at.setdefault(row.table_id, []).append(row)

    def locked_by(self, table_id: str, hand: int) -> list[SittingRow]:
        """The sittings dealt into an open hand, by seat."""
        rows = [row for row in self.sittings_at.get(table_id, ()) if row.locked_hand == hand]
        return sorted(rows, key=lambda row: (row.seat, row.sitting))

    def open_account(self, account: str, kind: AccountKind, owner: str, currency: str) -> None:
        """Opens an account with nothing in it, unless it is there."""
        if account in self.accounts:
            return
        row = AccountRow(account, kind, owner, currency, 0, self.now_ms)
        self.accounts[account] = row
        self.new_accounts[account] = row
        self.opened.append(account)

    def mark_written(self) -> None:
        """Forgets what is new or changed: the store has written it."""
        for new in (self.new_players, self.new_accounts, self.new_hands, self.new_sittings, self.new_reservations):
            new.clear()
        for changed in (self.changed_accounts, self.changed_tables, self.changed_sittings, self.changed_reservations):
            changed.clear()
        self.dropped_accounts.clear()
        self.changed_hands.clear()
        self.new_batches.clear()
        self.new_transfers.clear()

    def drop_account(self, account: str) -> None:
        """Takes the pot of a closed hand, or what a closed reservation held, off the books. It must be empty."""
        if self._row(account).balance:
            raise BooksBrokenError(f"{account} is to be dropped and holds {self.balance(account)}")
        del self.accounts[account]
        self.changed_accounts.discard(account)
        if self.new_accounts.pop(account, None) is None:
            self.dropped_accounts.add(account)

    def close_batch(self, *, refused: bool) -> list[tuple[Move, str, int, int]]:
        """Ends one batch: its lines (transfer, currency, balances afterwards); a refused one leaves no account open."""
        if refused:
            for account in self.opened:
                del self.accounts[account], self.new_accounts[account]
                self.changed_accounts.discard(account)
        lines, self.posted, self.opened = self.posted, [], []
        return lines

    def open_cash(self, player: str, currency: str) -> str:
        """A player's cash account, opened when first needed."""
        account = chart.cash_account(player, currency)
        self.open_account(account, AccountKind.PLAYER, player, currency)
        return account

    def post_to_pot(self, at: tuple[str, int], moves: Sequence[Move]) -> None:
        """Applies the moves of a hand's step as `post` does, and keeps `paid_in` of that hand, where it was read."""
        self.post(moves)
        paid = self.paid_in.get(at)
        if paid is None:
            return
        for move in moves:
            chart.note_paid(paid, move.code, move.debit, move.credit, move.amount_minor)

    def post(self, moves: Sequence[Move]) -> None:
        """Applies all moves, or raises a `Fault` and applies none.

        INSUFFICIENT_FUNDS (metadata `account`) where one but the cashier would fall below zero, BALANCE_OVERFLOW where
        one would leave int64 or the cashier would issue more than its share. Both accounts must be open.
        """
        if len(moves) > LINES_MAX:
            raise BooksBrokenError(f"a batch of {len(moves)} transfers")
        balances: dict[str, int] = {}
        lines: list[tuple[Move, str, int, int]] = []
        for move in moves:
            debit, credit = self._row(move.debit), self._row(move.credit)
            if move.amount_minor <= 0 or debit.currency != credit.currency or debit is credit:
                raise BooksBrokenError(f"not a transfer: {move}")
            if (debit.kind, credit.kind) not in chart.MOVES[move.code]:
                raise BooksBrokenError(f"not in the chart: {move}")
            debit_balance = balances.get(move.debit, debit.balance) - move.amount_minor
            credit_balance = balances.get(move.credit, credit.balance) + move.amount_minor
            if debit.kind is AccountKind.CASHIER:
                if debit_balance < -chart.issued_max_minor(move.debit):
                    raise Fault("BALANCE_OVERFLOW", "the cashier cannot issue so much", account=move.debit)
            elif debit_balance < 0:
                raise Fault(
                    "INSUFFICIENT_FUNDS",
                    f"{move.debit} holds {debit_balance + move.amount_minor}, less than {move.amount_minor}",
                    account=move.debit,
                    needed_minor=str(move.amount_minor),
                )
            if credit_balance > BALANCE_MAX_MINOR:
                raise Fault("BALANCE_OVERFLOW", f"{move.credit} cannot hold so much", account=move.credit)
            balances[move.debit], balances[move.credit] = debit_balance, credit_balance
            lines.append((move, debit.currency, debit_balance, credit_balance))
        for account, balance in balances.items():
            self.accounts[account].balance = balance
            self.changed_accounts.add(account)
        self.posted.extend(lines)

    def _row(self, account: str) -> AccountRow:
        row = self.accounts.get(account)
        if row is None:
            raise BooksBrokenError(f"account {account} is not open")
        return row
