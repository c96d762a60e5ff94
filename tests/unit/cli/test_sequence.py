"""The client's check of a stream's promise."""

from __future__ import annotations

import pytest
from fivedraw.table.v1 import event_pb2, table_pb2, table_service_pb2
from fivedraw_client import Position, SequenceKeeper, StreamViolationError

Update = table_service_pb2.WatchTableResponse


def snapshot(epoch: int, sequence: int) -> Update:
    return Update(snapshot=table_pb2.TableView(table=table_pb2.Table(epoch=epoch), sequence=sequence))


def events(epoch: int, *sequences: int) -> Update:
    return Update(events=[event_pb2.TableEvent(epoch=epoch, sequence=sequence) for sequence in sequences])


def keeper_at(epoch: int, sequence: int) -> SequenceKeeper:
    keeper = SequenceKeeper()
    keeper.accept(snapshot(epoch, sequence))
    return keeper


def test_events_follow_one_by_one():
    keeper = keeper_at(1, 10)
    keeper.accept(events(1, 11, 12))
    keeper.accept(events(1, 13))
    keeper.accept(Update(heartbeat_sequence=13))
    assert keeper.position == Position(1, 13)
    assert keeper.events == 3


@pytest.mark.parametrize("broken", [events(1, 12), events(1, 10), events(1, 11, 13), events(2, 11)])
def test_a_gap_a_repeat_or_another_epoch_breaks_the_promise(broken: Update):
    keeper = keeper_at(1, 10)
    with pytest.raises(StreamViolationError):
        keeper.accept(broken)


def test_the_last_good_position_stays_after_a_gap():
    keeper = keeper_at(1, 10)
    with pytest.raises(StreamViolationError, match="held 1/11, got 1/13"):
        keeper.accept(events(1, 11, 13))
    assert keeper.position == Position(1, 11)


def test_a_heartbeat_shows_missing_events():
    keeper = keeper_at(1, 10)
    with pytest.raises(StreamViolationError, match="missing"):
        keeper.accept(Update(heartbeat_sequence=11))


def test_events_before_a_snapshot_break_the_promise():
    with pytest.raises(StreamViolationError, match="before the first snapshot"):
        SequenceKeeper().accept(events(1, 1))


def test_a_snapshot_may_lead_forward_and_into_a_new_epoch_but_not_back():
    keeper = keeper_at(1, 10)
    keeper.accept(snapshot(1, 40))
    keeper.accept(snapshot(2, 3))
    keeper.accept(events(2, 4))
    with pytest.raises(StreamViolationError, match="went back"):
        keeper.accept(snapshot(2, 3))
    with pytest.raises(StreamViolationError, match="went back"):
        keeper.accept(snapshot(1, 99))
