"""Which batches share a commit, and when a second commit runs beside the first."""

from __future__ import annotations

import asyncio

import pytest

from services.runtime.clock import SystemClock
from services.runtime.database import DatabaseBusyError
from services.runtime.errors import Fault
from services.wallet import commands as c
from services.wallet.books import BooksBrokenError
from services.wallet.commits import GroupCommitter
from services.wallet.group import no_failpoint


class Disk:
    """Takes the groups in, and ends each commit when it is told to."""

    def __init__(self) -> None:
        self.groups: list[list[str]] = []
        self.shards: list[int] = []
        self._ends: list[asyncio.Event] = []

    async def write(self, _decide, asked, shard, _now_ms, _failpoint):
        end = asyncio.Event()
        self.groups.append([key for key, _ in asked])
        self.shards.append(shard)
        self._ends.append(end)
        await end.wait()
        return [c.Balance("EUR", int(key)) for key, _ in asked]

    async def end(self, group: int) -> None:
        self._ends[group].set()
        await settle()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


class Line:
    """A committer before a disk, with batches called by a number and put in by subject."""

    def __init__(self, *, lanes: int = 2, crowd_min: int = 4, group_max: int = 3, queue_max: int = 10) -> None:
        self.disk = Disk()
        self._committer = GroupCommitter(
            self.disk,  # type: ignore[arg-type]
            SystemClock(),
            lanes=lanes,
            crowd_min=crowd_min,
            group_max=group_max,
            queue_max=queue_max,
            wait_ms=0,
            shard=14,
            failpoint=no_failpoint,
        )
        self.asked: list[asyncio.Task[c.Answer]] = []

    async def put(self, *subjects: str) -> None:
        for subject in subjects:
            key = str(len(self.asked))
            command = c.Deposit(key, subject, "EUR", 1)
            self.asked.append(asyncio.create_task(self._committer.submit(key, subject, command)))
        await settle()

    async def close(self) -> None:
        await self._committer.close()


async def test_what_waits_shares_the_next_commit_as_far_as_a_group_goes():
    line = Line(lanes=1)
    await line.put("a", "b")
    await line.put("c", "d", "e", "f")
    assert line.disk.groups == [["0", "1"]]
    await line.disk.end(0)
    assert line.disk.groups == [["0", "1"], ["2", "3", "4"]]
    await line.disk.end(1)
    await line.disk.end(2)
    assert [task.result() for task in line.asked] == [c.Balance("EUR", number) for number in range(6)]


async def test_a_second_lane_opens_for_a_crowd_only_and_closes_after_it():
    line = Line()
    await line.put("a")
    await line.put("b", "c", "d", "e")
    assert line.disk.groups == [["0"]]
    await line.put("f")
    # Five wait, more than four: the second lane takes three of them, to an account of its own.
    assert line.disk.groups == [["0"], ["1", "2", "3"]]
    assert line.disk.shards == [14, 15]
    # Two are left, no crowd, so the lane that ends first leaves them to the other.
    await line.disk.end(0)
    assert len(line.disk.groups) == 2
    await line.disk.end(1)
    assert line.disk.groups[2] == ["4", "5"]
    await line.disk.end(2)
    await line.close()
    assert all(task.done() for task in line.asked)


async def test_a_subjects_batches_are_never_in_two_commits_at_once():
    line = Line(crowd_min=0)
    await line.put("a")
    await line.put("a", "b", "a")
    assert line.disk.groups == [["0"], ["2"]]
    # Nothing but the busy subject waits: the second lane has nothing to take, and the first goes on with it in order.
    await line.disk.end(1)
    assert len(line.disk.groups) == 2
    await line.disk.end(0)
    assert line.disk.groups[2] == ["1", "3"]
    await line.disk.end(2)
    assert [task.result().amount_minor for task in line.asked] == [0, 1, 2, 3]


async def test_past_the_queues_limit_a_batch_is_refused_whatever_the_lanes():
    line = Line(queue_max=2, crowd_min=2)
    await line.put("a")
    await line.put("b", "c", "d")
    with pytest.raises(Fault) as refusal:
        line.asked[3].result()
    assert refusal.value.reason == "QUEUE_FULL"
    await line.disk.end(0)
    await line.disk.end(1)
    assert [task.done() for task in line.asked] == [True] * 4


async def test_a_mistake_in_the_program_is_heard_and_the_line_goes_on():
    line = Line(lanes=1)

    async def broken(*_):
        raise LookupError("a mistake")

    write, line.disk.write = line.disk.write, broken
    await line.put("a")
    assert isinstance(line.asked[0].exception(), LookupError)
    line.disk.write = write
    await line.put("a")
    await line.disk.end(0)
    assert line.asked[1].result() == c.Balance("EUR", 1)


async def test_a_contradiction_that_cannot_be_recorded_leaves_nobody_waiting():
    line = Line(lanes=1)
    write = line.disk.write

    async def spoiled(*asked):
        # Closing the ledger fails too: its first value is no decision of a group.
        if len(asked) != 5:
            raise DatabaseBusyError("busy")
        if "1" in [key for key, _ in asked[1]]:
            raise BooksBrokenError("a pot that is not what its entries say")
        return [c.Balance("EUR", int(key)) for key, _ in asked[1]]

    line.disk.write = spoiled
    await line.put("a", "b", "c")
    answers = [task.exception() or task.result() for task in line.asked]
    assert answers[0] == c.Balance("EUR", 0)
    assert answers[1].reason == "SERVICE_UNAVAILABLE"
    assert answers[2] == c.Balance("EUR", 2)
    line.disk.write = write
    await line.put("d")
    await line.disk.end(0)
    assert line.asked[3].result() == c.Balance("EUR", 3)
    await line.close()
