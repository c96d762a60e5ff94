"""Revenue and activity reports agree with the ledger to the unit; statements and balances as of a time."""

from __future__ import annotations

import pytest_asyncio

from services.runtime.clock import SystemClock
from services.wallet import commands as c
from services.wallet.ledger import Ledger
from services.wallet.reads import EntryQuery
from services.wallet.reports import DAY_MS, ChipsInPlay, RakeRow
from tests.integration.wallet.house import House, antes, wins

MONDAY_MS = 1_767_571_200_000  # 2026-01-05T00:00:00Z


class DayClock(SystemClock):
    """A clock whose hands the test turns."""

    def __init__(self) -> None:
        self.at_ms = MONDAY_MS

    def now_ms(self) -> int:
        return self.at_ms


@pytest_asyncio.fixture
async def days(ledger_database):
    """A house with two tables, three days of play, and the clock behind it."""
    clock = DayClock()
    ledger = Ledger(ledger_database[1], clock)
    house = House(ledger)
    await house.open("ann", "bob")
    await house.register("idle", 70)
    second = House(ledger, table="t2")
    await second.register("cid")
    await second.buy_in("cid", 300)
    for day in range(3):
        clock.at_ms = MONDAY_MS + day * DAY_MS + 3_600_000
        await house.play(2 * day + 1)
        await house.play(2 * day + 2)
        await second.forced(day + 1, "cid", antes(cid=10))
        await second.award(day + 1, wins(cid=3), rake=7)
    await house.forced(9, "ann bob", antes(ann=4, bob=4))
    await second.forced(9, "cid", antes(cid=5))
    await second.award(9, carry=5)
    yield house, clock
    await ledger.close()


async def test_the_rake_by_table_and_day_adds_up_to_the_rake_account(days):
    house, _ = days
    report = await house.ledger.get_rake_report(MONDAY_MS, MONDAY_MS + 3 * DAY_MS)
    assert report.rows == tuple(
        row
        for day in ("2026-01-05", "2026-01-06", "2026-01-07")
        for row in (RakeRow("t1", day, "EUR", 2, 2), RakeRow("t2", day, "EUR", 7, 1))
    )
    totals = {total.kind.name: total.amount_minor for total in (await house.ledger.get_ledger_summary()).totals}
    assert sum(row.rake_minor for row in report.rows) == totals["RAKE"] == 27
    of_tuesday = await house.ledger.get_rake_report(MONDAY_MS + DAY_MS, MONDAY_MS + 2 * DAY_MS, "t2")
    assert of_tuesday.rows == (RakeRow("t2", "2026-01-06", "EUR", 7, 1),)


async def test_chips_in_play_are_stacks_pots_and_carries(days):
    house, _ = days
    found = await house.ledger.list_chips_in_play()
    # ann won 9 and paid 5 in each of six hands; 4 each are in the pot. cid lost 7 three times and 5 to the carry.
    assert found == (ChipsInPlay("t1", "EUR", 2, 786, 8, 0), ChipsInPlay("t2", "EUR", 1, 274, 0, 5))
    totals = {total.kind.name: total.amount_minor for total in (await house.ledger.get_ledger_summary()).totals}
    assert sum(row.stacks_minor + row.pot_minor + row.carry_minor for row in found) == (
        totals["STACK"] + totals["POT"] + totals["CARRY"]
    )
    assert [row.table for row in await house.ledger.list_chips_in_play("t1", 5)] == ["t2"]


async def test_dormant_balances_have_not_moved_since(days):
    house, clock = days
    clock.at_ms = MONDAY_MS + 5 * DAY_MS
    await house.deposit("bob", 1)
    found = await house.ledger.list_dormant_balances(MONDAY_MS + DAY_MS, 2)
    assert [(each.player, each.amount_minor) for each in found.balances] == [("cid", 700), ("ann", 600)]
    assert {each.last_entry_ms for each in found.balances} == {MONDAY_MS}
    assert found.totals == (c.Balance("EUR", 1370),)


async def test_a_statement_and_a_balance_as_of_a_time(days):
    house, _ = days
    tuesday, wednesday = MONDAY_MS + DAY_MS, MONDAY_MS + 2 * DAY_MS
    page = await house.ledger.list_entries(EntryQuery("ann", from_ms=tuesday, before_ms=wednesday))
    assert [entry.hand for entry in page.entries] == [4, 4, 4, 3, 3, 3]
    at = await house.ledger.get_balances("ann", tuesday)
    assert at == c.Balances((c.Balance("EUR", 600),), (c.Balance("EUR", 408),))
    assert await house.ledger.get_balances("ann", MONDAY_MS) == c.Balances((c.Balance("EUR", 0),), ())
    now = await house.ledger.get_balances("ann")
    assert now == await house.ledger.get_balances("ann", wednesday + DAY_MS)
