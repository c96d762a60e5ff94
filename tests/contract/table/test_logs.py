"""The log: reading on from any sequence, over epochs, and trimming only what no unwritten hand needs."""

from __future__ import annotations

import pytest

from services.table.store import Unwritten
from tests.contract.table.commits import TABLE, Line


async def written(store, *sizes: int, epoch: int = 1) -> Line:
    line = Line(store)
    for size in sizes:
        await line.write(size, epoch=epoch)
    return line


@pytest.mark.parametrize("after", range(8))
async def test_reading_after_any_sequence_begins_with_the_batch_that_holds_the_next(store, after) -> None:
    await written(store, 3, 1, 2)  # 1-3, 4, 5-6
    batches = await store.read_log(TABLE, 1, after, 99)
    expected = [(1, 3), (4, 4), (5, 6)]
    assert [(each.first, each.last) for each in batches] == [place for place in expected if place[1] > after]


async def test_reading_stops_at_about_the_limit_and_can_go_on(store) -> None:
    await written(store, *[2] * 300)
    seen: list[int] = []
    while True:
        batches = await store.read_log(TABLE, 1, seen[-1] if seen else 0, 150)
        if not batches:
            break
        assert sum(len(each.entries) for each in batches) <= 151
        seen += [each.last for each in batches]
    assert seen == list(range(2, 601, 2))


async def test_an_epochs_log_ends_with_the_epoch(store) -> None:
    line = await written(store, 2, 2)
    await line.write(1, epoch=2)
    await line.write(3)
    assert [each.last for each in await store.read_log(TABLE, 1, 0, 99)] == [2, 4]
    assert [(each.first, each.last) for each in await store.read_log(TABLE, 2, 0, 99)] == [(1, 1), (2, 4)]
    assert await store.read_log(TABLE, 3, 0, 99) == []


async def test_reading_from_an_event_goes_on_over_all_later_epochs(store) -> None:
    line = await written(store, 2, 3)
    await line.write(1, epoch=4)
    await line.write(2)
    batches = await store.read_from(TABLE, 1, 4, 99)  # in the middle of 3-5
    assert [(each.epoch, each.first) for each in batches] == [(1, 3), (4, 1), (4, 2)]
    assert [(each.epoch, each.first) for each in await store.read_from(TABLE, 4, 1, 99)] == [(4, 1), (4, 2)]


async def test_a_commit_without_events_leaves_no_gap(store) -> None:
    line = await written(store, 2)
    await line.write(0)
    await line.write(1)
    assert [(each.first, each.last) for each in await store.read_log(TABLE, 1, 0, 99)] == [(1, 2), (3, 3)]


async def test_trimming_keeps_the_last_batches(store) -> None:
    await written(store, *[1] * 12)
    await store.confirm_written(TABLE, 1, 7, keep=5)
    assert [each.first for each in await store.read_log(TABLE, 1, 0, 99)] == [8, 9, 10, 11, 12]


async def test_trimming_a_short_log_changes_nothing(store) -> None:
    await written(store, 1, 1)
    await store.confirm_written(TABLE, 1, 1, keep=5)
    assert len(await store.read_log(TABLE, 1, 0, 99)) == 2


async def test_trimming_keeps_what_an_unwritten_hand_needs_in_the_middle_of_a_batch_too(store) -> None:
    await written(store, *[2] * 10)
    await store.mark_unwritten(Unwritten(TABLE, 1, 1, 1, 1))
    await store.mark_unwritten(Unwritten(TABLE, 1, 2, 1, 6))  # the second event of 5-6
    await store.confirm_written(TABLE, 1, 1, keep=2)
    assert (await store.read_from(TABLE, 1, 6, 99))[0].first == 5
    assert await store.read_log(TABLE, 1, 0, 99) == await store.read_from(TABLE, 1, 5, 99)
    await store.confirm_written(TABLE, 1, 2, keep=2)
    assert [each.first for each in await store.read_log(TABLE, 1, 0, 99)] == [17, 19]


async def test_trimming_keeps_a_hand_of_an_older_epoch(store) -> None:
    line = await written(store, 1, 1, 1)
    await store.mark_unwritten(Unwritten(TABLE, 1, 9, 1, 2))
    for _ in range(6):
        await line.write(1, epoch=2)
    await store.confirm_written(TABLE, 2, 10, keep=2)
    assert (await store.read_from(TABLE, 1, 2, 99))[0].first == 2
    await store.confirm_written(TABLE, 1, 9, keep=2)
    assert await store.read_log(TABLE, 1, 0, 99) == []
    assert [each.first for each in await store.read_log(TABLE, 2, 0, 99)] == [5, 6]


async def test_unwritten_hands_are_listed_once_and_the_first_place_counts(store) -> None:
    await store.mark_unwritten(Unwritten(TABLE, 1, 3, 1, 40))
    await store.mark_unwritten(Unwritten(TABLE, 1, 3, 1, 99))
    assert await store.find_unwritten(TABLE, 1, 3) == Unwritten(TABLE, 1, 3, 1, 40)
    listed = await store.list_unwritten(10, 0)
    assert [(each.table_id, each.epoch, each.hand) for each in listed] == [(TABLE, 1, 3)]
    await store.confirm_written(TABLE, 1, 3, keep=5)
    assert await store.find_unwritten(TABLE, 1, 3) is None
    assert await store.list_unwritten(10, 0) == []


async def test_unwritten_hands_of_all_tables_come_oldest_first_and_bounded(store) -> None:
    await store.mark_unwritten(Unwritten("oak", 1, 7, 1, 1))
    marked_ms = await store.now_ms()
    while await store.now_ms() == marked_ms:
        pass
    for hand in range(1, 4):
        for table in ("oak", "elm", "ash"):
            await store.mark_unwritten(Unwritten(table, 1, hand, 1, 1))
    listed = await store.list_unwritten(5, 0)
    assert len(listed) == 5
    assert (listed[0].table_id, listed[0].hand) == ("oak", 7)
    assert len(await store.list_unwritten(100, 0)) == 10
    assert await store.list_unwritten(100, 3_600_000) == [], "none has waited for an hour"


async def test_confirming_what_is_not_listed_is_no_change(store) -> None:
    await store.confirm_written("nowhere", 1, 1, keep=5)
    assert await store.find_unwritten("nowhere", 1, 1) is None


async def test_unwritten_hands_are_counted_over_all_tables_with_the_age_of_the_oldest(store) -> None:
    assert await store.unwritten() == (0, 0)
    await store.mark_unwritten(Unwritten("oak", 1, 7, 1, 1))
    marked_ms = await store.now_ms()
    while await store.now_ms() < marked_ms + 5:
        pass
    for table in ("elm", "ash", "fir", "yew"):
        await store.mark_unwritten(Unwritten(table, 1, 1, 1, 1))
    count, age_ms = await store.unwritten()
    assert count == 5
    assert 5 <= age_ms <= await store.now_ms() - marked_ms + 1_000
    await store.confirm_written("oak", 1, 7, keep=5)
    assert (await store.unwritten())[0] == 4
