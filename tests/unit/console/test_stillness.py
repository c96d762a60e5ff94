"""Which tables stand still, as the console comes to know it: from the lobby, from looks, and from a table's log."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest
from fivedraw.table.v1 import event_pb2, table_pb2
from fivedraw.table.v1 import table_service_pb2 as pb

from services.console.stillness import LOOK_AFTER_MS, LOOKS_A_ROUND, STUCK_MS, Stillness

BEGAN_MS = 1_000_000_000


@dataclass
class HandClock:
    """A clock that stands until it is moved."""

    at_ms: int = BEGAN_MS

    def now_ms(self) -> int:
        return self.at_ms

    def monotonic(self) -> float:
        return self.at_ms / 1000

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing here waits")


class Stream:
    """A call that streams one message, then waits for ever unless it is cancelled."""

    def __init__(self, message: pb.WatchTableResponse) -> None:
        self._message = message
        self.is_cancelled = False

    async def __aiter__(self) -> AsyncIterator[pb.WatchTableResponse]:
        yield self._message
        raise AssertionError("more was read than the last event")

    def cancel(self) -> None:
        self.is_cancelled = True


@dataclass
class Tables:
    """The table service: `views` by name, and the time of each one's last event."""

    views: dict[str, table_pb2.TableView] = field(default_factory=dict)
    moved_ms: dict[str, int] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)

    async def GetTable(self, request: pb.GetTableRequest, **_: Any) -> pb.GetTableResponse:
        self.asked.append(request.name)
        if request.name not in self.views:
            raise grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata())
        return pb.GetTableResponse(view=self.views[request.name])

    def WatchTable(self, request: pb.WatchTableRequest, **_: Any) -> Stream:
        event = event_pb2.TableEvent(sequence=request.resume_after + 1)
        event.commit_time.FromMilliseconds(self.moved_ms[request.table])
        self.streams.append(Stream(pb.WatchTableResponse(events=[event])))
        return self.streams[-1]


def a_table(name: str = "tables/oak", **facts: Any) -> table_pb2.Table:
    return table_pb2.Table(**({"name": name, "state": table_pb2.TABLE_STATE_OPEN, "hand": 7, "epoch": 1} | facts))


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def stillness(clock) -> Stillness:
    return Stillness(clock)


@pytest.fixture
def tables() -> Tables:
    return Tables()


def in_hand(tables: Tables, table: table_pb2.Table, *, moved_ms: int, sequence: int = 40, deadline_ms: int = 0) -> None:
    view = table_pb2.TableView(table=table, hand=7, sequence=sequence, stage=table_pb2.STAGE_FIRST_ROUND)
    if deadline_ms:
        view.turn.seat = 3
        view.turn.deadline.FromMilliseconds(deadline_ms)
    else:
        view.waiting = table_pb2.WAITING_WALLET
    tables.views[table.name] = view
    tables.moved_ms[table.name] = moved_ms


async def test_a_hand_that_stood_still_before_anybody_looked_is_known_at_the_first_look(stillness, tables, clock):
    oak = a_table()
    in_hand(tables, oak, moved_ms=BEGAN_MS - 130_000)
    stillness.told([oak])
    assert stillness.of(oak).shown == ("", False)
    await stillness.look(tables, "token")
    assert stillness.of(oak).shown == ("2 min, waits for the wallet", True)
    assert tables.streams[0].is_cancelled


async def test_a_running_clock_is_no_standing_still_however_long_it_is(stillness, tables, clock):
    oak = a_table()
    day_ms = 86_400_000
    in_hand(tables, oak, moved_ms=BEGAN_MS, deadline_ms=BEGAN_MS + day_ms)
    stillness.told([oak])
    for _ in range(3):
        await stillness.look(tables, "token")
        clock.at_ms += 4 * 3_600_000
    assert stillness.of(oak).shown == ("12 h, clock runs", False)
    # Once it is over, time counts from its end.
    clock.at_ms = BEGAN_MS + day_ms + STUCK_MS
    await stillness.look(tables, "token")
    assert stillness.of(oak).shown == ("10 s, seat 3 to act", True)
    assert stillness.of(oak).overdue_ms == STUCK_MS


@pytest.mark.parametrize("state", [table_pb2.TABLE_STATE_PAUSED, table_pb2.TABLE_STATE_CLOSED])
async def test_a_paused_table_does_not_stand_still_wrongly(stillness, tables, state):
    oak = a_table(state=state)
    in_hand(tables, oak, moved_ms=BEGAN_MS - 600_000)
    stillness.told([oak])
    await stillness.look(tables, "token")
    assert not stillness.of(oak).is_stuck


@pytest.mark.parametrize("stage", [table_pb2.STAGE_UNSPECIFIED, table_pb2.STAGE_FINISHED])
async def test_a_table_that_waits_for_players_does_not_stand_still_wrongly(stillness, tables, clock, stage):
    oak = a_table()
    tables.views[oak.name] = table_pb2.TableView(table=oak, hand=7, sequence=40, stage=stage)
    tables.moved_ms[oak.name] = BEGAN_MS - 600_000
    stillness.told([oak])
    await stillness.look(tables, "token")
    clock.at_ms += LOOK_AFTER_MS
    await stillness.look(tables, "token")
    # Its second look found it where it was, so that its log was asked since when.
    assert stillness.of(oak).shown == ("10 min", False)


async def test_pots_that_are_not_paid_are_a_hand_that_stands_still(stillness, tables):
    oak = a_table()
    view = table_pb2.TableView(table=oak, hand=7, sequence=40, stage=table_pb2.STAGE_FINISHED, pot_minor=30)
    view.waiting = table_pb2.WAITING_WALLET
    tables.views[oak.name], tables.moved_ms[oak.name] = view, BEGAN_MS - 60_000
    stillness.told([oak])
    await stillness.look(tables, "token")
    assert stillness.of(oak).shown == ("1 min, waits for the wallet", True)


async def test_what_moved_is_no_longer_still(stillness, tables, clock):
    oak = a_table()
    in_hand(tables, oak, moved_ms=BEGAN_MS - 60_000)
    stillness.told([oak])
    await stillness.look(tables, "token")
    assert stillness.of(oak).is_stuck
    clock.at_ms += LOOK_AFTER_MS
    in_hand(tables, oak, moved_ms=clock.at_ms, sequence=41)
    await stillness.look(tables, "token")
    assert stillness.of(oak).shown == ("", False)
    # A row of the lobby that differs says the same, without a look.
    clock.at_ms += 60_000
    await stillness.look(tables, "token")
    assert stillness.of(oak).is_stuck
    stillness.told([a_table(hand=8)])
    assert stillness.of(oak).shown == ("", False)


async def test_those_that_stand_still_come_first_the_longest_first_of_all(stillness, tables):
    names = ["ash", "beech", "cedar", "oak"]
    ash, beech, cedar, oak = rows = [a_table(f"tables/{name}") for name in names]
    in_hand(tables, ash, moved_ms=BEGAN_MS, deadline_ms=BEGAN_MS + 30_000)
    in_hand(tables, beech, moved_ms=BEGAN_MS - 60_000)
    in_hand(tables, oak, moved_ms=BEGAN_MS - 300_000)
    stillness.told(rows)
    await stillness.look(tables, "token")
    assert [table.name for table, _ in stillness.ordered(rows)] == [oak.name, beech.name, ash.name, cedar.name]


async def test_a_round_looks_at_so_many_tables_and_at_each_but_once(stillness, tables, clock):
    rows = [a_table(f"tables/t{number:03}") for number in range(LOOKS_A_ROUND + 30)]
    for row in rows:
        in_hand(tables, row, moved_ms=BEGAN_MS, deadline_ms=BEGAN_MS + 600_000)
    stillness.told(rows)
    await stillness.look(tables, "token")
    assert len(tables.asked) == LOOKS_A_ROUND
    await stillness.look(tables, "token")
    assert sorted(tables.asked) == [row.name for row in rows]
    await stillness.look(tables, "token")
    assert len(tables.asked) == len(rows)
    # What the lobby tells of, moves: it need not be looked at.
    clock.at_ms += LOOK_AFTER_MS
    stillness.told([a_table(row.name, hand=8) for row in rows])
    await stillness.look(tables, "token")
    assert len(tables.asked) == len(rows)


async def test_a_service_that_does_not_answer_is_asked_again_later(stillness, tables, clock):
    oak = a_table()
    stillness.told([oak])
    await stillness.look(tables, "token")
    in_hand(tables, oak, moved_ms=BEGAN_MS - 60_000)
    await stillness.look(tables, "token")
    assert tables.asked == [oak.name]
    clock.at_ms += LOOK_AFTER_MS
    await stillness.look(tables, "token")
    assert stillness.of(oak).is_stuck
