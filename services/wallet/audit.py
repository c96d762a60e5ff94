"""Reads the whole ledger on one snapshot and says what is wrong with it.

Each fault begins with its name (docs/ledger.md lists them). First comes what the chain says, then what the entries say
of themselves, then what the rows say against the entries.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, select, text

from services.wallet import chart, triggers
from services.wallet import commands as c
from services.wallet.chart import AccountKind
from services.wallet.entries import FAULTS_MAX, EntryWalk, kind_of
from services.wallet.row_checks import RowChecks
from services.wallet.schema import accounts, audited_balances, ledger_state

_ACCOUNTS_PER_PAGE: Final = 10_000


def examine(conn: Connection, published_head: str = "") -> c.AuditReport:
    """Audits everything in the connection's snapshot.

    `published_head` is a head that was written down elsewhere: it must be in the chain, or the chain was replaced.
    """
    return _Audit(conn, published_head).report()


class _Audit:
    def __init__(self, conn: Connection, published_head: str) -> None:
        self._conn = conn
        self._published_head = published_head
        # Rows are compared while the batches are read, and told of after what the chain and the entries say.
        self._of_rows: list[tuple[str, str]] = []
        self._rows = RowChecks(conn, self._tell_of_rows)
        self._checked_to = conn.scalar(select(ledger_state.c.audited_batch)) or 0
        self._walk = EntryWalk(conn, compare=self._rows.compare, remember_at=self._checked_to)

    def report(self) -> c.AuditReport:
        walk = self._walk
        walk.walk(chart.BALANCE_MAX_MINOR)
        if self._published_head and self._published_head not in walk.heads:
            walk.fault("HEAD_NOT_IN_CHAIN", f"{self._published_head} was published and is not in the chain")
        self._rows.finish(walk.story)
        for name, what in self._of_rows:
            walk.fault(name, what)
        self._compare_checkers_books()
        self._compare_accounts()
        for name, question in _QUESTIONS:
            self._ask(name, question)
        triggers.check(self._conn, walk.fault)
        return c.AuditReport(tuple(walk.faults), walk.entries, walk.head)

    def _tell_of_rows(self, name: str, what: str) -> None:
        if len(self._of_rows) < FAULTS_MAX:
            self._of_rows.append((name, what))

    def _compare_checkers_books(self) -> None:
        """What the check of what is new goes on from, or it would pass over what somebody moved its mark past."""
        made = self._walk.remembered
        if made is None:
            self._walk.fault("SEAL_MISSING", f"no seal ends with batch {self._checked_to}, up to which all is checked")
            return
        kept = {row.account: row.balance for row in self._conn.execute(select(audited_balances))}
        for account in sorted(made.keys() | kept.keys()):
            if kept.get(account, 0) != made.get(account, 0):
                self._walk.fault("CHECKER_DIFFERS", f"{account} was not checked at {kept.get(account, 0)}")

    def _compare_accounts(self) -> None:
        sums: dict[str, int] = {}
        after = ""
        while True:
            page = self._conn.execute(
                select(*(accounts.c[name] for name in ("account", "kind", "owner", "currency", "balance")))
                .where(accounts.c.account > after)
                .order_by(accounts.c.account)
                .limit(_ACCOUNTS_PER_PAGE)
            ).all()
            if not page:
                break
            for account, kind, owner, currency, balance in page:
                sums[currency] = sums.get(currency, 0) + balance
                entries_say = self._walk.balances.pop(account, 0)
                if balance != entries_say:
                    self._walk.fault("BALANCE_DIFFERS", f"{account} holds {balance}; its entries make {entries_say}")
                if kind != kind_of(account):
                    self._walk.fault("ACCOUNT_KIND_WRONG", f"{account} is of kind {kind}")
                if (owner, currency) != _named(account, owner, currency):
                    self._walk.fault("OWNER_DIFFERS", f"{account} is said to be {owner}'s, in {currency}")
                if balance < 0 and kind != AccountKind.CASHIER:
                    self._walk.fault("NEGATIVE_BALANCE", f"{account} holds {balance}")
            after = page[-1][0]
        for account, balance in sorted(self._walk.balances.items()):
            self._walk.fault("ACCOUNT_MISSING", f"{account} has entries of {balance} and no account")
        for currency, total in sorted(sums.items()):
            if total:
                self._walk.fault("SUM_NOT_ZERO", f"all accounts in {currency} add up to {total}")

    def _ask(self, name: str, question: str) -> None:
        for (what,) in self._conn.execute(text(f"{question} LIMIT {FAULTS_MAX}")):
            self._walk.fault(name, what)


def _named(account: str, owner: str, currency: str) -> tuple[str, str]:
    """Owner and currency as the account's name tells them; as they are where it does not."""
    kind, *parts = account.split("/")
    match kind, parts:
        case "player", [named_owner, named_currency]:
            return named_owner, named_currency
        case (("rake" | "cashier"), [named_currency, _]):
            return "house", named_currency
        case "pot", [table, _]:
            return table, currency
        case "carry", [table]:
            return table, currency
        case _:
            return owner, currency


# Each question answers with one text per fault.
_QUESTIONS: Final = (
    (
        "TRANSFER_WITHOUT_BATCH",
        """SELECT 'line ' || t.line || ' of batch ' || t.batch_no || ' has no batch'
        FROM transfers t LEFT JOIN batches b ON b.batch_no = t.batch_no WHERE b.batch_no IS NULL""",
    ),
    (
        "CURRENCY_DIFFERS",
        """SELECT 'line ' || t.line || ' of batch ' || t.batch_no || ' moves ' || t.currency || ' between '
        || t.debit || ' and ' || t.credit
        FROM transfers t JOIN accounts d ON d.account = t.debit JOIN accounts c ON c.account = t.credit
        WHERE d.currency <> t.currency OR c.currency <> t.currency""",
    ),
    (
        "POT_NOT_EMPTY",
        """SELECT 'pot/' || h.table_id || '/' || h.hand || ' of a closed hand holds ' || a.balance
        FROM hands h JOIN accounts a ON a.account = 'pot/' || h.table_id || '/' || h.hand
        WHERE h.outcome <> 1 AND a.balance <> 0""",
    ),
    (
        "HAND_WITHOUT_END",
        """SELECT 'hand ' || h.hand || ' of ' || h.table_id || ' is closed and no batch closed it' FROM hands h
        WHERE h.outcome <> 1 AND NOT EXISTS (
            SELECT 1 FROM batches b WHERE b.table_id = h.table_id AND b.hand = h.hand AND b.hand > 0
            AND b.outcome = 'OK' AND ((h.outcome = 2 AND b.operation = 'AwardPot')
            OR (h.outcome = 3 AND b.operation IN ('VoidHand', 'FenceTable'))))""",
    ),
    (
        "HAND_MISSING",
        """SELECT 'hand ' || b.hand || ' of ' || b.table_id || ' was opened by batch ' || b.batch_no
        || ' and is not known' FROM batches b LEFT JOIN hands h ON h.table_id = b.table_id AND h.hand = b.hand
        WHERE b.operation = 'PostForced' AND b.outcome = 'OK' AND h.hand IS NULL""",
    ),
    (
        "HAND_REOPENED",
        """SELECT 'hand ' || h.hand || ' of ' || h.table_id || ' is open and batch ' || b.batch_no || ' closed it'
        FROM hands h JOIN batches b ON b.table_id = h.table_id AND b.hand = h.hand AND b.hand > 0
        WHERE h.outcome = 1 AND b.outcome = 'OK' AND b.operation IN ('AwardPot', 'VoidHand', 'FenceTable')""",
    ),
    (
        "TABLE_DIFFERS",
        """SELECT 'table ' || t.table_id || ' says that hand ' || t.open_hand || ' is open' FROM table_ledgers t
        WHERE t.open_hand > 0 AND NOT EXISTS (
            SELECT 1 FROM hands h WHERE h.table_id = t.table_id AND h.hand = t.open_hand AND h.outcome = 1)""",
    ),
    (
        "TABLE_DIFFERS",
        """SELECT 'hand ' || h.hand || ' of ' || h.table_id || ' is open and its table does not say so'
        FROM hands h LEFT JOIN table_ledgers t ON t.table_id = h.table_id AND t.open_hand = h.hand
        WHERE h.outcome = 1 AND t.table_id IS NULL""",
    ),
    (
        "STACK_LOCK_WRONG",
        """SELECT 'sitting ' || s.sitting || ' is locked by hand ' || s.locked_hand FROM sittings s
        LEFT JOIN hands h ON h.table_id = s.table_id AND h.hand = s.locked_hand
        WHERE s.locked_hand > 0 AND (h.outcome IS NULL OR h.outcome <> 1)""",
    ),
    (
        "CLOSED_STACK_NOT_EMPTY",
        """SELECT 'sitting ' || s.sitting || ' is closed and holds ' || a.balance
        FROM sittings s JOIN accounts a ON a.account = 'stack/' || s.sitting
        WHERE NOT s.open AND a.balance <> 0""",
    ),
    (
        "RESERVATION_DIFFERS",
        """SELECT 'reservation ' || r.reservation || ' of ' || r.amount || ' is open and holds '
        || coalesce(a.balance, 0) FROM reservations r LEFT JOIN accounts a ON a.account = 'reserved/' || r.reservation
        WHERE r.state = 1 AND coalesce(a.balance, 0) <> r.amount""",
    ),
    (
        "RESERVATION_DIFFERS",
        """SELECT a.account || ' holds ' || a.balance || ' for no open reservation' FROM accounts a
        LEFT JOIN reservations r ON 'reserved/' || r.reservation = a.account AND r.state = 1 AND r.player = a.owner
        WHERE a.kind = 7 AND r.reservation IS NULL""",
    ),
    (
        "STACK_WITHOUT_SITTING",
        """SELECT a.account || ' holds ' || a.balance || ' and belongs to nobody' FROM accounts a
        LEFT JOIN sittings s ON 'stack/' || s.sitting = a.account AND s.player = a.owner
        WHERE a.kind = 2 AND s.sitting IS NULL""",
    ),
    (
        "CASH_WITHOUT_PLAYER",
        """SELECT a.account || ' holds ' || a.balance || ' and belongs to nobody' FROM accounts a
        LEFT JOIN players p ON p.player = a.owner WHERE a.kind = 1 AND p.player IS NULL""",
    ),
)
