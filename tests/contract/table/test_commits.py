"""What a commit promises: all or nothing, on one line of history, and the same answer when it is repeated."""

from __future__ import annotations

import asyncio

from services.table.store import CLEAR_DEADLINE, Version
from tests.contract.table.commits import TABLE, Line


async def test_a_table_that_was_never_written_is_not_there(store) -> None:
    assert await store.load(TABLE) is None
    assert await store.read_log(TABLE, 1, 0, 10) == []


async def test_a_commit_writes_state_sequence_and_log_at_once(store) -> None:
    line = Line(store)
    committed = await line.write(3, deadline=5_000)
    stored = await store.load(TABLE)
    assert (stored.at, stored.blob, stored.sequence) == (line.at, b"state 1.3", 3)
    assert stored.deadline_ms == committed.deadline_ms == committed.now_ms + 5_000
    assert stored.now_ms >= committed.now_ms
    (logged,) = await store.read_log(TABLE, 1, 0, 10)
    assert (logged.epoch, logged.first, logged.last, logged.at_ms) == (1, 1, 3, committed.now_ms)
    assert [entry.public for entry in logged.entries] == [b"1.1", b"1.2", b"1.3"]
    assert logged.entries[0].private[0].sealed == b"sealed\x00\xff"


async def test_a_deadline_is_kept_cleared_or_replaced(store) -> None:
    line = Line(store)
    first = await line.write(1, deadline=60_000)
    kept = await line.write(1)
    assert kept.deadline_ms == first.deadline_ms
    replaced = await line.write(0, deadline=0)
    assert replaced.deadline_ms == replaced.now_ms
    cleared = await line.write(1, deadline=CLEAR_DEADLINE)
    assert cleared.deadline_ms == 0
    assert (await store.load(TABLE)).deadline_ms == 0


async def test_of_two_writers_on_one_version_only_the_first_is_taken(store) -> None:
    ours = Line(store)
    await ours.write(2)
    theirs = Line(store, at=ours.at, sequence=ours.sequence)
    assert await ours.write(1) is not None
    assert await theirs.write(5) is None
    assert (await store.load(TABLE)).at == ours.at
    assert [each.last for each in await store.read_log(TABLE, 1, 0, 99)] == [2, 3]


async def test_an_equal_version_with_another_commit_id_is_another_line(store) -> None:
    line = Line(store)
    await line.write(1)
    lookalike = Line(store, at=Version(1, 1, "somebody else's"), sequence=1)
    assert await lookalike.write(1) is None


async def test_a_writer_that_never_loaded_cannot_begin_again(store) -> None:
    await Line(store).write(1)
    assert await Line(store).write(1) is None


async def test_the_same_commit_again_gets_the_first_answer_and_writes_nothing(store) -> None:
    line = Line(store)
    commit = line.next(2, deadline=3_000)
    first = await store.commit(TABLE, commit)
    assert await store.commit(TABLE, commit) == first
    assert len(await store.read_log(TABLE, 1, 0, 99)) == 1


async def test_a_commit_repeated_after_others_have_followed_is_refused(store) -> None:
    line = Line(store)
    lost = line.next(1)
    await store.commit(TABLE, lost)
    following = Line(store, at=lost.following, sequence=lost.sequence)
    await following.write(1)
    assert await store.commit(TABLE, lost) is None
    assert (await store.load(TABLE)).sequence == 2


async def test_a_higher_epoch_wins_whatever_it_expected(store) -> None:
    line = Line(store)
    await line.write(4)
    stale = Line(store, at=Version(1, 77, "lost"), sequence=90)
    assert await stale.write(1, epoch=2) is not None
    stored = await store.load(TABLE)
    assert (stored.at.epoch, stored.at.version, stored.sequence) == (2, 1, 1)
    assert await line.write(1) is None, "the old epoch is over"


async def test_of_two_rebuilds_to_one_epoch_only_the_first_is_taken(store) -> None:
    line = Line(store)
    await line.write(1)
    other = Line(store, at=line.at, sequence=line.sequence)
    assert await line.write(1, epoch=2) is not None
    assert await other.write(1, epoch=2) is None


async def test_many_writers_at_once_leave_one_line_without_gap_or_fork(store) -> None:
    async def writer() -> int:
        taken = 0
        while taken < 10:
            stored = await store.load(TABLE)
            line = Line(store, at=stored.at, sequence=stored.sequence) if stored else Line(store)
            taken += await line.write(2) is not None
        return taken

    await asyncio.gather(*(writer() for _ in range(5)))
    stored = await store.load(TABLE)
    assert (stored.at.version, stored.sequence) == (50, 100)
    batches = await store.read_log(TABLE, 1, 0, 1_000)
    assert [each.first for each in batches] == list(range(1, 100, 2))


async def test_tables_do_not_touch_each_other(store) -> None:
    await Line(store, "oak").write(1)
    await Line(store, "elm").write(3)
    assert (await store.load("oak")).sequence == 1
    assert (await store.load("elm")).sequence == 3


async def test_large_numbers_survive(store) -> None:
    line = Line(store, at=Version(), sequence=0)
    await line.write(1, deadline=600_000)
    far = Line(store, at=line.at, sequence=2**53)
    assert await far.write(2) is not None
    assert (await store.load(TABLE)).sequence == 2**53 + 2
    (logged,) = await store.read_log(TABLE, 1, 2**53, 10)
    assert logged.first == 2**53 + 1
