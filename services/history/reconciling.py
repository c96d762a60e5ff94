"""Rows for hands whose log was lost: every number that a table gave out is looked up, and written from the ledger.

A table's numbers are looked at in order and a mark in SQL remembers how far all have been settled, so that a round
costs what was played since the last one. Rounds may run twice, and in several workers at once.
"""

from __future__ import annotations

from typing import Final, Protocol

from fivedraw.history.v1 import record_pb2
from fivedraw.table.v1 import table_pb2

from services.history import store
from services.history.names import HandKey, parse_table
from services.history.record import record_of_ledger, to_ms
from services.history.settings import HistorySettings
from services.history.writing import EXPECTED, FinishedHand, HandWriter, LedgerReader, reason_of
from services.runtime import telemetry
from services.runtime.clock import Clock
from services.runtime.database import Database

TABLE_PAGES_MAX: Final = 20
# Numbers of one table that are looked at in a round, and hands of all tables that the ledger is asked for.
NUMBERS_OF_A_TABLE_MAX: Final = 500
ASKED_MAX: Final = 500
LAST_HANDS_MAX: Final = 20_000
MS_OF_DAY: Final = 24 * 3_600_000
NEVER_SEEN: Final = "the house lost this hand before a chip moved"

_MADE_UP: Final = telemetry.counter(
    "fivedraw_history_made_up_total", "Hands without a log that were written from what the ledger knows."
)


class TableList(Protocol):
    """The tables of the house."""

    async def page(self, token: str) -> tuple[list[table_pb2.Table], str]:
        """Tables by name, closed ones too, and the token of the next page; empty at the end."""
        ...


class Reconciler:
    """Finds hands that have no row and are over for the ledger, and writes what can be known of them."""

    def __init__(
        self,
        database: Database,
        tables: TableList,
        ledger: LedgerReader,
        writer: HandWriter,
        *,
        clock: Clock,
        settings: HistorySettings,
    ) -> None:
        self._database = database
        self._tables = tables
        self._ledger = ledger
        self._writer = writer
        self._clock = clock
        self._settings = settings
        self._token = ""
        # Numbers of hands that were their table's last one, without a row, when they were looked at before.
        self._last: dict[str, int] = {}
        self._asked = 0
        self._log = telemetry.logger("history.reconciling")

    async def round(self) -> int:
        """Looks at the next tables, at most `TABLE_PAGES_MAX` pages of them; returns how many lost hands it settled.

        Where a peer is away the round ends, and the next one begins there.
        """
        settled = self._asked = 0
        try:
            for _ in range(TABLE_PAGES_MAX):
                tables, following = await self._tables.page(self._token)
                found = await self._settle_tables(tables)
                settled += found
                is_over = self._asked >= ASKED_MAX
                if not (is_over and found):
                    self._token = following
                # Where the round ended within a page that has more, the next one begins with the same page.
                if is_over or not following:
                    break
        except EXPECTED as error:
            self._log.warning("hands not reconciled", error=reason_of(error))
        return settled

    async def _settle_tables(self, tables: list[table_pb2.Table]) -> int:
        marks = await self._database.read(store.reconciled, [parse_table(table.name) for table in tables])
        moved: dict[str, int] = {}
        settled = 0
        try:
            for table in tables:
                table_id = parse_table(table.name)
                mark = marks.get(table_id, 0)
                if table.hand > mark and self._asked < ASKED_MAX:
                    moved[table_id], found = await self._settle_table(table, table_id, mark)
                    settled += found
        finally:
            await self._database.write(store.mark_reconciled, moved)
        return settled

    async def _settle_table(self, table: table_pb2.Table, table_id: str, mark: int) -> tuple[int, int]:
        """Settles what follows a mark; returns the new mark and how many hands without a row were settled."""
        last = min(table.hand, mark + NUMBERS_OF_A_TABLE_MAX)
        there = await self._database.read(store.numbers_written, table_id, mark, last)
        found, unbroken = 0, True
        for number in range(mark + 1, last + 1):
            settled = number in there
            if not settled and self._is_to_be_asked(table, number):
                self._asked += 1
                settled = await self._settle_hand(table, HandKey(table_id, number))
                found += settled
            if not settled:
                unbroken = False
            elif unbroken:
                mark = number
        return mark, found

    def _is_to_be_asked(self, table: table_pb2.Table, number: int) -> bool:
        """Not what is being played, as a table's last hand mostly is: that one only when it has been so for a round."""
        if self._asked >= ASKED_MAX:
            return False
        if number < table.hand:
            return True
        was_so = self._last.get(table.name) == number
        if len(self._last) >= LAST_HANDS_MAX:
            self._last.clear()
        self._last[table.name] = number
        return was_so

    async def _settle_hand(self, table: table_pb2.Table, key: HandKey) -> bool:
        """Writes a hand that has no row; False if it is not over, too fresh, or cannot be written."""
        known = await self._ledger.read(key)
        if known is None:
            # The number may still be that of a hand which is about to begin, until another one was given out.
            if key.hand >= table.hand:
                return False
            known = self._never_seen(table, key)
        elif not known.HasField("close_time") or not self._is_due(known):
            return False
        elif self._is_past_retention(known):
            return True
        try:
            await self._writer.write_hand(
                FinishedHand(key.table, known.epoch, key.hand), record_of_ledger(table, known)
            )
        except EXPECTED as error:
            self._log.warning("lost hand not written", hand=key.name, error=reason_of(error))
            return False
        _MADE_UP.inc()
        self._log.info("a hand without a row was written", hand=key.name)
        return True

    def _never_seen(self, table: table_pb2.Table, key: HandKey) -> record_pb2.LedgerHand:
        """A number that was given out and that the ledger never saw: nobody paid anything. Its time is now."""
        hand = record_pb2.LedgerHand(hand=key.hand, epoch=table.epoch, void=True, reason=NEVER_SEEN)
        for stamp in (hand.open_time, hand.close_time):
            stamp.FromMilliseconds(self._clock.now_ms())
        return hand

    def _is_due(self, hand: record_pb2.LedgerHand) -> bool:
        """Whether its task has had its time."""
        age_ms = self._clock.now_ms() - to_ms(hand.close_time)
        return age_ms >= self._settings.history_reconcile_after_seconds * 1000

    def _is_past_retention(self, hand: record_pb2.LedgerHand) -> bool:
        days = self._settings.history_retention_days
        return bool(days) and to_ms(hand.close_time) < self._clock.now_ms() - days * MS_OF_DAY
