"""The index of due tables: entered before, claimed by one, settled only if nobody has entered another time since."""

from __future__ import annotations

import asyncio

from services.table.store import Outage
from tests.contract.table.commits import Line

HOLD_MS = 60_000


async def due_since(store, table: str, ms: int = 1) -> int:
    """Enters a table that has been due for so long."""
    due_ms = await store.now_ms() - ms
    await store.enter_due(table, due_ms)
    return due_ms


async def claimed(store, limit: int = 100) -> list[str]:
    return sorted(each.table_id for each in await store.claim_due(limit, HOLD_MS))


async def test_what_is_due_is_claimed_once_within_the_hold(store) -> None:
    await due_since(store, "oak")
    await store.enter_due("elm", await store.now_ms() + 60_000)
    assert await claimed(store) == ["oak"]
    assert await claimed(store) == []


async def test_many_sweepers_share_the_due_tables(store) -> None:
    tables = sorted(f"t-{number}" for number in range(40))
    for table in tables:
        await due_since(store, table)
    claims = await asyncio.gather(*(claimed(store) for _ in range(4)))
    assert sorted(table for claim in claims for table in claim) == tables


async def test_an_earlier_entry_is_never_moved_to_a_later_time(store) -> None:
    await due_since(store, "oak")
    await store.enter_due("oak", await store.now_ms() + 60_000)
    assert await claimed(store) == ["oak"]


async def test_a_later_entry_is_moved_to_an_earlier_time(store) -> None:
    await store.enter_due("oak", await store.now_ms() + 60_000)
    await due_since(store, "oak")
    assert await claimed(store) == ["oak"]


async def test_a_due_time_noted_beside_commits_is_never_lost(store) -> None:
    now_ms = await store.now_ms()
    await store.note_due("oak", now_ms + 60_000)
    await store.note_due("oak", now_ms + 90_000)  # an earlier one is there
    assert await claimed(store) == []
    await store.note_due("oak", now_ms - 1)
    (due,) = await store.claim_due(10, HOLD_MS)
    await store.note_due("oak", now_ms - 1)  # after a claim it is entered again, whatever was entered before
    await store.settle_due(due, HOLD_MS, 0)
    assert await claimed(store) == ["oak"]


async def test_settled_tables_are_out_or_put_off(store) -> None:
    for table in ("oak", "elm", "ash"):
        await due_since(store, table)
    by_id = {each.table_id: each for each in await store.claim_due(10, HOLD_MS)}
    await store.settle_due(by_id["oak"], HOLD_MS, 0)
    await store.settle_due(by_id["elm"], HOLD_MS, await store.now_ms() + 60_000)
    await store.settle_due(by_id["ash"], HOLD_MS, await store.now_ms() - 1)
    assert await claimed(store) == ["ash"]


async def test_what_was_entered_after_the_claim_survives_its_settling(store) -> None:
    """The race that loses clocks: swept, found idle, and a commit enters a deadline before it is taken out."""
    await due_since(store, "oak")
    (due,) = await store.claim_due(10, HOLD_MS)
    await due_since(store, "oak")
    await store.settle_due(due, HOLD_MS, 0)
    assert await claimed(store) == ["oak"]


async def test_a_later_deadline_entered_after_the_claim_survives_too(store) -> None:
    await due_since(store, "oak")
    (due,) = await store.claim_due(10, 50)
    await store.enter_due("oak", await store.now_ms() + 60_000)
    await store.settle_due(due, 50, 0)
    claims: list[str] = []
    while not claims:  # it comes up when the hold is over, and is looked at again
        await asyncio.sleep(0.01)
        claims = await claimed(store)
    assert claims == ["oak"]


async def test_a_claim_that_was_claimed_again_cannot_be_settled(store) -> None:
    await due_since(store, "oak")
    (first,) = await store.claim_due(10, 0)
    second = []
    while not second:  # the hold of none is over at the next millisecond
        await asyncio.sleep(0.002)
        second = await store.claim_due(10, HOLD_MS)
    await store.settle_due(first, 0, 0)
    await store.settle_due(second[0], HOLD_MS, await store.now_ms() - 1)
    assert await claimed(store) == ["oak"], "the second claim was still there to be settled"


async def test_claims_are_bounded(store) -> None:
    for number in range(30):
        await due_since(store, f"t-{number}")
    first = await store.claim_due(1, HOLD_MS)
    assert 1 <= len(first) <= 8, "at most one from each shard"


async def test_a_commits_deadline_is_in_the_index(store) -> None:
    await Line(store, "oak").write(1, deadline=0)
    await Line(store, "elm").write(1, deadline=60_000)
    claims: list[str] = []
    while not claims:
        claims = await claimed(store)
    assert claims == ["oak"]


async def test_a_shorter_deadline_after_a_longer_one_is_in_the_index(store) -> None:
    line = Line(store, "oak")
    await line.write(1, deadline=60_000)
    await line.write(1, deadline=0)
    claims: list[str] = []
    while not claims:
        claims = await claimed(store)
    assert claims == ["oak"]


async def test_a_deadline_after_a_claim_is_entered_again(store) -> None:
    line = Line(store, "oak")
    await line.write(1, deadline=0)
    due = []
    while not due:
        due = await store.claim_due(10, HOLD_MS)
    await store.settle_due(due[0], HOLD_MS, 0)
    await line.write(1, deadline=0)
    claims: list[str] = []
    while not claims:
        claims = await claimed(store)
    assert claims == ["oak"]


async def test_heartbeats_notice_the_time_without_one(store) -> None:
    assert await store.beat(10) == Outage()
    assert await store.beat(60_000) == Outage()
    await asyncio.sleep(0.05)
    outage = await store.beat(10)
    assert outage.end_ms - outage.start_ms >= 40
    assert await store.beat(60_000) == outage, "it stays known to whoever beats next"
