"""The operators' audit log shows what was changed, removed or put in between."""

from __future__ import annotations

import asyncio

import pytest
import sqlalchemy as sa

from services.console.approvals import Approvals
from services.console.audit_log import GENESIS, AuditLog, Line, link_of
from services.runtime.clock import SystemClock
from services.runtime.database import Database
from services.runtime.errors import Fault
from services.runtime.sealing import Sealer

# A day of the year 2100.
LATER_MS = 4_102_444_800_000
LINE = Line("olga", "", "pause", "tables/oak", "a test", "done")


@pytest.fixture
async def opened(database) -> Database:
    return await database("console")


@pytest.fixture
async def log(opened) -> AuditLog:
    log = AuditLog(opened, SystemClock())
    for _ in range(5):
        await log.add(LINE)
    return log


async def test_lines_follow_from_each_other(log):
    lines = await log.newest()
    assert [kept.number for kept in lines] == [5, 4, 3, 2, 1]
    assert lines[-1].previous == GENESIS
    assert lines[0].link == link_of(lines[1].link, 5, lines[0].at_ms, LINE)
    verdict = await log.verify()
    assert (verdict.lines, verdict.head, verdict.broken_at) == (5, lines[0].link, 0)
    assert [kept.number for kept in await log.newest(3)] == [2, 1]


@pytest.mark.parametrize(
    ("change", "broken_at"),
    [
        ("UPDATE console_audit SET reason = 'nothing' WHERE number = 3", 3),
        ("UPDATE console_audit SET person = 'otto' WHERE number = 1", 1),
        ("DELETE FROM console_audit WHERE number = 2", 2),
        ("DELETE FROM console_audit WHERE number = 1", 1),
    ],
)
async def test_a_change_outside_of_the_console_is_found(log, opened, change, broken_at):
    await opened.write(lambda conn: conn.execute(sa.text(change)) and None)
    assert (await log.verify()).broken_at == broken_at


async def test_who_prepared_an_action_cannot_approve_it_and_it_is_approved_once(opened):
    approvals = Approvals(opened, Sealer([("k", bytes(32))]), SystemClock(), 60)
    prepared = await approvals.prepare(
        "olga", "olga's token", "void", "tables/oak/hands/3", "stuck", token_ends_ms=LATER_MS
    )
    assert await approvals.waiting() == [prepared]
    with pytest.raises(Fault, match="SECOND_PERSON_REQUIRED"):
        await approvals.take(prepared.id, "olga")
    assert await approvals.take(prepared.id, "otto") == (prepared, "olga's token")
    assert await approvals.waiting() == []
    with pytest.raises(Fault, match="waits no more"):
        await approvals.take(prepared.id, "otto")


async def test_an_action_waits_for_its_time_only(opened):
    approvals = Approvals(opened, Sealer([("k", bytes(32))]), SystemClock(), 0)
    prepared = await approvals.prepare("olga", "t", "void", "tables/oak/hands/3", "stuck", token_ends_ms=LATER_MS)
    assert await approvals.waiting() == []
    with pytest.raises(Fault, match="waits no more"):
        await approvals.take(prepared.id, "otto")


async def test_an_action_waits_no_longer_than_the_token_of_who_prepared_it(opened):
    clock = SystemClock()
    approvals = Approvals(opened, Sealer([("k", bytes(32))]), clock, 900)
    soon_ms = clock.now_ms() + 60_000
    kept = await approvals.prepare("olga", "t", "void", "tables/oak/hands/3", "stuck", token_ends_ms=soon_ms)
    assert kept.expires_ms == soon_ms
    await approvals.prepare("olga", "t", "void", "tables/oak/hands/3", "stuck", token_ends_ms=clock.now_ms())
    assert await approvals.waiting() == [kept]


async def test_an_action_that_was_not_done_waits_on_as_it_was_even_where_no_new_one_has_room(opened, monkeypatch):
    monkeypatch.setattr("services.console.approvals.PENDING_MAX", 1)
    approvals = Approvals(opened, Sealer([("k", bytes(32))]), SystemClock(), 60)
    first = await approvals.prepare("olga", "t", "void", "tables/oak/hands/3", "stuck", token_ends_ms=LATER_MS)
    taken, token = await approvals.take(first.id, "otto")
    second = await approvals.prepare("olga", "t", "void", "tables/elm/hands/1", "stuck", token_ends_ms=LATER_MS)
    with pytest.raises(Fault, match="QUEUE_FULL"):
        await approvals.prepare("olga", "t", "void", "tables/elm/hands/2", "stuck", token_ends_ms=LATER_MS)
    await approvals.put_back(taken, token)
    assert await approvals.waiting() == [first, second]
    assert await approvals.take(first.id, "otto") == (first, "t")


async def test_of_two_who_approve_at_the_same_moment_one_takes_it(opened):
    approvals = Approvals(opened, Sealer([("k", bytes(32))]), SystemClock(), 60)
    kept = await approvals.prepare("olga", "t", "void", "tables/oak/hands/3", "stuck", token_ends_ms=LATER_MS)
    takes = [approvals.take(kept.id, approver) for approver in ("otto", "ottilie", "oswald", "odette")]
    results = await asyncio.gather(*takes, return_exceptions=True)
    assert [each for each in results if not isinstance(each, Fault)] == [(kept, "t")]
    assert [each.reason for each in results if isinstance(each, Fault)] == ["HAND_NOT_FOUND"] * 3
