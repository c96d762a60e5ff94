"""For how long tables have not moved, and which of them stand still in the middle of a hand.

The lobby tells when a hand begins or ends, not that one moves. So while anybody looks at a list of tables, those that
the lobby has told nothing of for a while are looked at one by one, with that person's token, a bounded number a second;
what is seen is kept for all who look. Where a table looks still, the time of its last event is read from its log, so
that a console opened after an alert knows at once since when.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import grpc
from fivedraw.table.v1 import table_pb2
from fivedraw.table.v1 import table_service_pb2 as table_pb

from services.console import words
from services.console.peers import bearer
from services.runtime.clock import Clock

# A table that moved so lately is not looked at; one in a hand without a running clock is looked at again sooner.
LOOK_AFTER_MS: Final = 10_000
LOOK_AGAIN_MS: Final = 3_000
LOOKS_A_ROUND: Final = 100
LOOKS_AT_ONCE: Final = 8
LOOK_SECONDS: Final = 4.0
# Past the clock of its turn, if one runs. What the house does by itself in a hand takes a second at most.
STUCK_MS: Final = 15_000
TABLES_MAX: Final = 5_000

_PLAYS: Final = (table_pb2.TABLE_STATE_OPEN, table_pb2.TABLE_STATE_CLOSING)


@dataclass(frozen=True, slots=True)
class Still:
    """What a row says: for how long (empty for seconds, or where it is not known yet), whether that is wrong, and for
    how long it has been, in milliseconds, for sorting.
    """

    text: str = ""
    is_stuck: bool = False
    overdue_ms: int = 0

    @property
    def shown(self) -> tuple[str, bool]:
        """What of it a page shows."""
        return self.text, self.is_stuck


@dataclass(slots=True)
class _Seen:
    """A table as it was seen last: `row` by the lobby, the rest by a look. `at` is its epoch and sequence."""

    row: tuple[object, ...]
    since_ms: int
    look_ms: int
    at: tuple[int, int] = (0, 0)
    since_is_exact: bool = False
    looked_ms: int = 0
    in_hand: bool = False
    deadline_ms: int = 0
    waiting: str = ""

    @property
    def due_ms(self) -> int:
        """From when on it should have moved."""
        return max(self.since_ms, self.deadline_ms)


class Stillness:
    """What the console has seen of all tables, for all of its pages."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[str, _Seen] = {}

    def told(self, tables: Iterable[table_pb2.Table]) -> None:
        """Takes rows of the lobby in: one that differs has moved, and a new one is to be looked at."""
        now_ms = self._clock.now_ms()
        for table in tables:
            row = (table.epoch, table.hand, table.state, table.seats_taken, table.average_pot_minor, table.carry_minor)
            seen = self._seen.get(table.name)
            if table.state == table_pb2.TABLE_STATE_CLOSED:
                self._seen.pop(table.name, None)
            elif seen is not None and seen.row != row:
                self._seen[table.name] = _Seen(row, now_ms, now_ms + LOOK_AFTER_MS)
            elif seen is None and len(self._seen) < TABLES_MAX:
                self._seen[table.name] = _Seen(row, now_ms, now_ms)

    def of(self, table: table_pb2.Table) -> Still:
        """For how long this table has not moved."""
        seen = self._seen.get(table.name)
        if seen is None:
            return Still()
        now_ms = self._clock.now_ms()
        overdue_ms = now_ms - seen.due_ms
        # As of the last look: since then it may have moved.
        was_due = seen.looked_ms - seen.due_ms >= STUCK_MS
        if table.state in _PLAYS and seen.in_hand and was_due:
            return Still(f"{words.lasting(overdue_ms)}, {seen.waiting}", is_stuck=True, overdue_ms=overdue_ms)
        text = words.lasting(now_ms - seen.since_ms)
        if text and table.state in _PLAYS and seen.in_hand and seen.deadline_ms > now_ms:
            text += ", clock runs"
        return Still(text)

    def ordered(self, tables: Iterable[table_pb2.Table]) -> list[tuple[table_pb2.Table, Still]]:
        """Tables with what their rows say: those that stand still in a hand first, the longest first of all."""
        rows = [(table, self.of(table)) for table in tables]
        return sorted(rows, key=lambda row: (not row[1].is_stuck, -row[1].overdue_ms, row[0].name))

    async def look(self, stub: Any, token: str) -> None:
        """Looks at the tables that are due, those never looked at first; at most `LOOKS_A_ROUND` of them."""
        now_ms = self._clock.now_ms()
        due = [(seen.look_ms, name) for name, seen in self._seen.items() if seen.look_ms <= now_ms]
        names = [name for _, name in sorted(due)[:LOOKS_A_ROUND]]
        for name in names:
            # Before anything is waited for, so that no other page looks at the same one.
            self._seen[name].look_ms = now_ms + LOOK_AFTER_MS
        places = asyncio.Semaphore(LOOKS_AT_ONCE)

        async def look_at(name: str) -> None:
            async with places:
                await self._look_at(stub, token, name)

        await asyncio.gather(*(look_at(name) for name in names))

    async def _look_at(self, stub: Any, token: str, name: str) -> None:
        own = {"metadata": bearer(token), "timeout": LOOK_SECONDS}
        before = self._seen.get(name)
        try:
            view = (await stub.GetTable(table_pb.GetTableRequest(name=name), **own)).view
        except grpc.aio.AioRpcError:
            # Looked at again when it is due; its row says as before.
            return
        seen = self._seen.get(name)
        if seen is None or seen is not before:
            return
        now_ms = self._clock.now_ms()
        at = (view.table.epoch, view.sequence)
        is_same = seen.at == at
        if not is_same:
            first = seen.at == (0, 0)
            seen.at, seen.since_is_exact = at, False
            seen.since_ms = seen.since_ms if first else now_ms
        seen.in_hand = words.in_hand(view)
        seen.deadline_ms = view.turn.deadline.ToMilliseconds() if view.HasField("turn") else 0
        seen.waiting = words.waited_for(view)
        seen.looked_ms = now_ms
        is_suspect = seen.in_hand and seen.deadline_ms <= now_ms
        if is_suspect:
            seen.look_ms = now_ms + LOOK_AGAIN_MS
        if not seen.since_is_exact and (is_same or is_suspect):
            told_ms = await _last_event_ms(stub, own, view)
            if told_ms and seen.at == at:
                seen.since_ms, seen.since_is_exact = min(told_ms, now_ms), True


async def _last_event_ms(stub: Any, own: dict[str, Any], view: table_pb2.TableView) -> int:
    """When the last event of a view was committed, from the table's log; 0 where that cannot be told."""
    asked = table_pb.WatchTableRequest(table=view.table.name, resume_after=view.sequence - 1, epoch=view.table.epoch)
    if asked.resume_after < 1:
        return 0
    call = stub.WatchTable(asked, **own)
    try:
        async for message in call:
            times = [each.commit_time.ToMilliseconds() for each in message.events if each.sequence == view.sequence]
            return times[0] if times else 0
    except grpc.aio.AioRpcError:
        return 0
    finally:
        call.cancel()
    return 0
