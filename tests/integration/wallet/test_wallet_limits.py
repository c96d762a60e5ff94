"""What a player may deposit and take to tables in a day: to the unit, across processes, until midnight by UTC."""

from __future__ import annotations

import asyncio
import sqlite3

import pytest
from sqlalchemy import Connection

from services.runtime.database import Database
from services.wallet import chart, limits, row_sets
from services.wallet import commands as c
from services.wallet.ledger import Ledger
from tests.integration.wallet.house import House, refused
from tests.standing_clock import StandingClock

DAY_SECONDS = 86_400


@pytest.fixture
async def limited(ledger_database):
    """A house at noon; ann has 1000 in cash, of which she took 400 to the table today."""
    clock = StandingClock(now_ms=20_000 * DAY_SECONDS * 1000 + DAY_SECONDS * 500)
    ledger = Ledger(ledger_database[1], clock)
    house = House(ledger)
    await house.open("ann")
    yield house, clock
    await ledger.close()


async def test_deposits_end_at_the_days_limit_and_begin_again_at_midnight(limited):
    house, clock = limited
    await house.limit("ann", deposit=1500)
    # A thousand came in before the limit was set, and counts.
    await refused(house.deposit("ann", 501), "LIMIT_EXCEEDED", limit_minor="1500", left_minor="500")
    await house.deposit("ann", 500)
    await refused(house.deposit("ann", 1), "LIMIT_EXCEEDED", left_minor="0")
    clock.advance(DAY_SECONDS / 2 - 0.001)
    await refused(house.deposit("ann", 1), "LIMIT_EXCEEDED")
    clock.advance(0.001)
    await house.deposit("ann", 1500)
    await refused(house.deposit("ann", 1), "LIMIT_EXCEEDED")


async def test_a_day_counts_what_another_processs_clock_put_before_an_earlier_batch(limited):
    """Two processes whose clocks differ: just after midnight numbers do not ascend with time."""
    house, clock = limited
    clock.advance(DAY_SECONDS / 2 + 5)
    await house.limit("ann", deposit=300)
    await house.deposit("ann", 200)
    clock.advance(-4)
    await house.deposit("ann", 100)
    await refused(house.deposit("ann", 1), "LIMIT_EXCEEDED", left_minor="0")


async def test_a_clock_that_is_hours_behind_lifts_nobodys_limit(limited):
    house, clock = limited
    await house.limit("ann", deposit=1000)
    await refused(house.deposit("ann", 1), "LIMIT_EXCEEDED", left_minor="0")
    clock.advance(-13 * 3600)
    await house.register("bob")
    clock.advance(13 * 3600)
    await refused(house.deposit("ann", 1), "LIMIT_EXCEEDED", left_minor="0")


async def test_what_is_released_may_be_reserved_again_in_the_same_commit(limited):
    house, _ = limited
    await house.limit("ann", buy_in=600)
    await house.reserve("ann", 200, name="first")
    released, reserved = await asyncio.gather(
        house.release("first"), house.reserve("ann", 200, name="second", sitting="other")
    )
    assert (released.amount_minor, reserved.amount_minor) == (200, 200)
    await refused(house.top_up("ann", 1), "LIMIT_EXCEEDED", left_minor="0")


async def test_a_release_by_a_clock_before_midnight_gives_back_to_the_day_of_its_reservation(limited):
    house, clock = limited
    clock.advance(DAY_SECONDS / 2 + 1)
    await house.limit("ann", buy_in=200)
    await house.reserve("ann", 200, name="today")
    clock.advance(-2)
    await house.release("today")
    clock.advance(2)
    await refused(house.top_up("ann", 201), "LIMIT_EXCEEDED", left_minor="200")
    await house.top_up("ann", 200)


async def test_a_days_limit_is_read_from_that_days_entries(tmp_path):
    """Counted in steps of SQLite's machine, so that no clock decides: ten times the history, hardly a step more."""
    clock = StandingClock(now_ms=20_000 * DAY_SECONDS * 1000)
    database = Database(f"sqlite:///{tmp_path}/ledger.sqlite")
    await database.migrate("wallet")
    house = House(Ledger(database, clock))
    await house.open("ann")
    await house.limit("ann", deposit=10**9, buy_in=10**9)

    def steps(conn: Connection) -> int:
        taken = 0

        def count() -> int:
            nonlocal taken
            taken += 1
            return 0

        raw: sqlite3.Connection = conn.connection.driver_connection
        raw.set_progress_handler(count, 1)
        try:
            row_sets.run(conn, [limits.question(conn, [chart.cash_account("ann", "EUR")], clock.now_ms())])
        finally:
            raw.set_progress_handler(None, 0)
        return taken

    async def after_deposits(count: int) -> int:
        for _ in range(count // 100):
            await asyncio.gather(*(house.deposit("ann", 1) for _ in range(100)))
        clock.advance(2 * DAY_SECONDS)
        await house.deposit("ann", 7)
        return await database.read(steps)

    few = await after_deposits(100)
    assert await after_deposits(1_000) < 1.2 * few
    await house.ledger.close()
    await database.close()


async def test_a_release_gives_back_to_the_day_that_it_was_taken_from(limited):
    house, clock = limited
    await house.limit("ann", buy_in=600)
    await house.reserve("ann", 200, name="yesterday", hold_ms=3 * DAY_SECONDS * 1000)
    clock.advance(DAY_SECONDS)
    await house.reserve("ann", 100, name="today", sitting="other")
    assert (await house.release("yesterday")).amount_minor == 200
    await refused(house.top_up("ann", 501), "LIMIT_EXCEEDED", left_minor="500")
    await house.release("today")
    await refused(house.top_up("ann", 601), "LIMIT_EXCEEDED", left_minor="600")
    await house.top_up("ann", 600)


async def test_buy_ins_top_ups_and_reservations_share_one_limit(limited):
    house, clock = limited
    await house.limit("ann", buy_in=600)
    await house.top_up("ann", 50)
    await house.reserve("ann", 100)
    await house.buy_in("ann", 50, sitting="second", seat=2)
    for call in (house.top_up("ann", 1), house.reserve("ann", 1, name="r2"), house.buy_in("ann", 1, sitting="third")):
        await refused(call, "LIMIT_EXCEEDED", left_minor="0")
    # What is given back may be taken again; what is committed was counted when it was reserved.
    await house.release()
    await house.reserve("ann", 100, name="r2")
    assert (await house.commit("r2")).stack_minor == 100
    await refused(house.top_up("ann", 1), "LIMIT_EXCEEDED")
    # Nothing but new risk is limited: cash-outs and withdrawals go through, and free nothing.
    assert (await house.cash_out("ann")).amount_minor == 450
    await house.withdraw("ann", 10)
    await refused(house.buy_in("ann", 1, sitting="fourth"), "LIMIT_EXCEEDED")
    clock.advance(DAY_SECONDS)
    await house.buy_in("ann", 600, sitting="fourth")


async def test_what_is_left_can_be_used_once_by_two_processes_and_in_one_commit(open_ledger):
    first, second = House(await open_ledger(shard=0)), House(await open_ledger(shard=1), table="t2", first_id=1_000)
    await first.register("ann")
    await first.limit("ann", deposit=1050, buy_in=30)
    deposits = (house.deposit("ann", 10) for house in (first, second) * 10)
    outcomes = await asyncio.gather(*deposits, return_exceptions=True)
    assert [getattr(each, "reason", "OK") for each in outcomes].count("OK") == 5
    seats = (house.buy_in("ann", 10, sitting=f"{house.table}{n}") for n in range(5) for house in (first, second))
    outcomes = await asyncio.gather(*seats, return_exceptions=True)
    assert [getattr(each, "reason", "OK") for each in outcomes].count("OK") == 3
    assert await first.cash("ann") == 1050 - 30


async def test_a_reservation_committed_and_topped_up_at_once_is_bound_too(open_ledger):
    house = House(await open_ledger(group_wait_ms=20))
    await house.register("ann", cash=10_000)
    await house.limit("ann", buy_in=1_000)
    await house.reserve("ann", 900, sitting="s")
    outcomes = await asyncio.gather(house.commit(), house.top_up("s", 5_000), return_exceptions=True)
    assert outcomes[0] == c.Stack(900)
    assert outcomes[1].reason == "LIMIT_EXCEEDED"
    assert outcomes[1].metadata["left_minor"] == "100"


async def test_a_limit_is_of_one_currency_and_one_player_and_can_be_lifted(limited):
    house, _ = limited
    await house.register("bob")
    shown = await house.limit("ann", deposit=1, buy_in=2)
    assert shown.limits == (c.PlayerLimits("EUR", 1, 2),)
    assert await house.ledger.get_player("ann") == shown
    await refused(house.deposit("ann", 1), "LIMIT_EXCEEDED")
    await house.deposit("bob", 1)
    dollars = House(house.ledger, table="t9", currency="USD", first_id=5_000)
    await dollars.deposit("ann", 100)
    assert (await house.limit("ann")).limits == ()
    await house.deposit("ann", 1)


async def test_who_set_a_limit_and_why_is_kept(limited, ledger_database):
    house, _ = limited
    await house.limit("ann", deposit=7)
    await refused(house.limit("nobody", deposit=7), "PLAYER_NOT_FOUND")
    await refused(house.limit("ann", deposit=-1), "INVALID_REQUEST", field="deposit_day_max_minor")

    def changes(conn) -> list[tuple]:
        return [tuple(row) for row in conn.exec_driver_sql("SELECT player, reason, changed_by FROM player_changes")]

    assert await ledger_database[1].read(changes) == [("ann", "limits EUR deposit 7 buy-in 0: why", "person/op")]
