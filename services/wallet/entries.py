"""Reads batches and their transfers in order, beside the seals over them, and says what they contradict.

The whole ledger is read from its beginning, where all balances are 0; what is new, from a seal up to which everything
was found sound before, with the balances of that time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

from sqlalchemy import Connection, select

from services.wallet import chain, chart, contents, retelling
from services.wallet.chart import AccountKind
from services.wallet.group import OK
from services.wallet.schema import seals
from services.wallet.story import Over, Story

FAULTS_MAX: Final = 100

_MOVES: Final = {int(code): moves for code, moves in chart.MOVES.items()}
_KIND_BY_PREFIX: Final = {kind.name.lower(): kind for kind in AccountKind}
_CLOSES: Final = frozenset({"AwardPot", "VoidHand", "FenceTable"})
_STEPS: Final = frozenset({"CollectBets", "AwardPot"})

KnownBalances = Callable[[Collection[str]], dict[str, int]]
"""The balances of these accounts as they were found sound before; what is missing is 0."""


class EntryWalk:
    """One reading of entries. `faults` says what is wrong, `balances` what the entries make of each account.

    `since` is the last seal that was found sound, and `known` tells the balances under it; both are given or neither.
    Where neither is, `compare` may be given: it gets the rows that the batches made and that no later one changes, page
    by page, and `story` is what the batches made of the rest. Where a seal ends with batch `remember_at`, `remembered`
    is what the accounts held under it.
    """

    def __init__(
        self,
        conn: Connection,
        *,
        since: chain.Seal | None = None,
        known: KnownBalances | None = None,
        compare: Callable[[Over], None] | None = None,
        remember_at: int = 0,
    ) -> None:
        self._conn = conn
        self._since = since
        self._known = known
        self.faults: list[str] = []
        # Without `known` an account that is empty is forgotten, or a long ledger would not fit into memory.
        self.balances: dict[str, int] = {}
        self.story = Story(self.fault, self.balances)
        self._compare = compare
        self._remember_at = remember_at
        self.remembered: dict[str, int] | None = None if remember_at else {}
        # The open hand (or 0) and the last one opened, by table.
        self._hands: dict[str, tuple[int, int]] = {}
        self.entries = 0
        self.head = since.head if since else chain.GENESIS
        self.heads = {self.head}

    def fault(self, name: str, what: str) -> None:
        """Takes a fault down, unless there are enough of them."""
        if len(self.faults) < FAULTS_MAX:
            self.faults.append(f"{name}: {what}")

    def walk(self, up_to: int) -> None:
        """Reads seals and batches side by side, up to a batch number."""
        links = self._links(up_to)
        link = next(links, None)
        under_way = chain.HeadUnderWay(link.previous_head) if link else None
        for page in chain.pages(self._conn, self._since.last_batch if self._since else 0, up_to):
            self._recall(page)
            for batch, lines in page:
                while link is not None and under_way is not None and batch[0] > link.last_batch:
                    self._close_link(link, under_way)
                    link = next(links, None)
                    under_way = chain.HeadUnderWay(link.previous_head) if link else None
                if under_way is not None:
                    under_way.add(batch, lines)
                self._read_batch(batch, lines)
            self._compare_what_is_over()
        while link is not None and under_way is not None:
            self._close_link(link, under_way)
            link = next(links, None)
            under_way = chain.HeadUnderWay(link.previous_head) if link else None

    def _compare_what_is_over(self) -> None:
        if self._compare is not None:
            self._compare(self.story.over)
            self.story.over = Over()

    def _links(self, up_to: int) -> Iterator[chain.Seal]:
        since = self._since
        previous, number, after = (since.head, since.seal_no + 1, since.last_batch) if since else (chain.GENESIS, 1, 0)
        query = select(*seals.c).where(seals.c.seal_no >= number, seals.c.last_batch <= up_to)
        # Tens of thousands of links at most are read at once: one a second makes some hundred bytes a second.
        for row in self._conn.execute(query.order_by(seals.c.seal_no)).yield_per(1_000):
            link = chain.Seal(*row)
            if link.seal_no != number or link.first_batch <= after:
                self.fault("SEAL_MISSING", f"seal {link.seal_no} follows batch {after} instead of seal {number}")
            if link.previous_head != previous:
                self.fault("SEAL_UNLINKED", f"seal {link.seal_no} does not carry the head before it")
            yield link
            previous, number, after = link.head, link.seal_no + 1, link.last_batch

    def _recall(self, page: chain.Page) -> None:
        """Looks up the balances of the accounts that this page touches first."""
        if self._known is None:
            return
        touched = {account for _, lines in page for line in lines for account in (line[3], line[4])}
        fresh = touched - self.balances.keys()
        self.balances.update(dict.fromkeys(fresh, 0) | self._known(fresh))

    def _close_link(self, link: chain.Seal, under_way: chain.HeadUnderWay) -> None:
        counted = (under_way.batch_count, under_way.transfer_count)
        if counted != (link.batch_count, link.transfer_count):
            sealed = f"{link.batch_count} batches and {link.transfer_count} transfers"
            self.fault("SEAL_BROKEN", f"seal {link.seal_no} covers {sealed}; there are {counted[0]} and {counted[1]}")
        elif under_way.head() != link.head:
            self.fault(
                "SEAL_BROKEN",
                f"seal {link.seal_no} over batches {link.first_batch} to {link.last_batch} does not match them",
            )
        self.heads.add(link.head)
        self.head = link.head
        if link.last_batch == self._remember_at:
            self.remembered = dict(self.balances)

    def _read_batch(self, batch: tuple[Any, ...], lines: Any) -> None:
        number, _, operation, table, hand, content, outcome, _, line_count, _ = batch
        self.entries += 2 * len(lines)
        if [line[1] for line in lines] != list(range(1, line_count + 1)):
            self.fault("LINES_MISSING", f"batch {number} has {len(lines)} of its {line_count} lines")
        if lines and outcome != OK:
            self.fault("REFUSED_BATCH_MOVED", f"batch {number} was refused and has {len(lines)} lines")
        asked = contents.decoded(content)
        if outcome == OK and contents.differs(operation, asked, lines):
            self.fault("CONTENT_DIFFERS", f"the lines of batch {number} are not what it asked for")
        if self._compare is not None:
            self._tell(batch, asked, lines)
        for line in lines:
            self._read_line(line)
        if outcome == OK and hand:
            self._follow_hand(number, operation, table, hand, moved=bool(lines))

    def _tell(self, batch: tuple[Any, ...], asked: dict[str, Any], lines: Any) -> None:
        try:
            retelling.tell(self.story, batch, asked, lines)
        except (KeyError, TypeError, ValueError, AttributeError):
            self.fault("CONTENT_DIFFERS", f"batch {batch[0]} has no content of a {batch[2]}")

    def _follow_hand(self, number: int, operation: str, table: str, hand: int, *, moved: bool) -> None:
        """Holds each table to one open hand at a time, ascending numbers, and no posting outside of an open hand."""
        # In the middle of a ledger the first step seen of a table tells which hand was open.
        nothing_seen = (0, 0) if self._since is None or operation == "PostForced" else (hand, hand)
        open_hand, last_hand = self._hands.get(table, nothing_seen)
        if operation == "PostForced":
            if open_hand or hand <= last_hand:
                self.fault("HAND_OUT_OF_ORDER", f"batch {number} opens hand {hand} of {table} after {last_hand}")
            self._hands[table] = (hand, hand)
            return
        if hand != open_hand and (moved or operation in _STEPS):
            self.fault("STEP_AFTER_CLOSE", f"batch {number} posts to hand {hand} of {table}, which is not open")
        if hand == open_hand and operation in _CLOSES:
            self._hands[table] = (0, last_hand)

    def _read_line(self, row: tuple[Any, ...]) -> None:
        number, line, code, debit, credit, currency, amount, debit_balance, credit_balance = row
        where = f"line {line} of batch {number}"
        if amount <= 0:
            self.fault("AMOUNT_NOT_POSITIVE", f"{where} moves {amount} {currency}")
        kinds = (kind_of(debit), kind_of(credit))
        if kinds not in _MOVES.get(code, ()):
            self.fault("NOT_IN_CHART", f"{where} moves from {debit} to {credit} with code {code}")
        for account, change, after in ((debit, -amount, debit_balance), (credit, amount, credit_balance)):
            balance = self.balances.get(account, 0) + change
            if balance != after:
                self.fault("BALANCE_BROKEN", f"{where} leaves {after} on {account}; its entries make {balance}")
            if balance < 0 and kind_of(account) is not AccountKind.CASHIER:
                self.fault("NEGATIVE_BALANCE", f"{where} takes {account} to {balance}")
            if balance or self._known is not None:
                self.balances[account] = balance
            else:
                self.balances.pop(account, None)


def kind_of(account: str) -> AccountKind | None:
    """The kind that an account's name tells."""
    return _KIND_BY_PREFIX.get(account.partition("/")[0])
