"""Buy-ins in two steps: held, then committed, released or expired; each ends once, and every chip is accounted for."""

from __future__ import annotations

import asyncio

import pytest
from fivedraw.wallet.v1 import wallet_service_pb2 as pb

from services.wallet import commands as c
from services.wallet import sweeping
from services.wallet.chart import PlayerState, ReservationState
from services.wallet.ledger import Ledger
from services.wallet.sweeping import Sweeper
from tests.integration.wallet.house import House, refused
from tests.standing_clock import StandingClock


async def reserved(house: House, player: str) -> int:
    """What reservations hold of a player's cash."""
    return sum(each.amount_minor for each in (await house.ledger.get_balances(player)).reserved)


async def assert_sound(house: House, auditor) -> None:
    await auditor.seal()
    assert (await auditor.audit()).faults == ()
    assert {each.amount_minor for each in (await house.ledger.get_ledger_summary()).imbalance} == {0}


async def test_a_committed_reservation_opens_the_sitting_with_what_was_held(house: House, auditor):
    made = await house.reserve("ann", 150)
    assert (made.state, made.amount_minor, made.expires_ms - made.opened_ms) == (ReservationState.OPEN, 150, 60_000)
    assert (await house.cash("ann"), await reserved(house, "ann")) == (450, 150)
    assert (await house.commit()).stack_minor == 150
    assert (await house.cash("ann"), await reserved(house, "ann")) == (450, 0)
    assert (await house.stacks())["late"] == 150
    ended = await house.ledger.get_reservation("t1", "r")
    assert (ended.state, ended.closed_ms >= ended.opened_ms) == (ReservationState.COMMITTED, True)
    await refused(house.release(), "RESERVATION_CLOSED", outcome="committed")
    await refused(house.commit(), "RESERVATION_CLOSED", outcome="committed")
    await assert_sound(house, auditor)


async def test_a_released_reservation_gives_the_cash_back_once(house: House, auditor):
    await house.reserve("ann", 150)
    await house.freeze("ann")
    assert (await house.release()).amount_minor == 150
    assert (await house.release()).amount_minor == 150
    assert (await house.cash("ann"), await reserved(house, "ann")) == (600, 0)
    await refused(house.commit(), "RESERVATION_CLOSED", outcome="released")
    await refused(house.reserve("ann", 1), "RESERVATION_CLOSED", outcome="released")
    await assert_sound(house, auditor)


async def test_the_same_call_again_is_the_stored_answer_and_other_content_a_conflict(house: House):
    made = await house.reserve("ann", 150, id="one")
    await house.commit(id="two")
    assert await house.reserve("ann", 150, id="one") == made
    assert (await house.commit(id="two")).stack_minor == 150
    await refused(house.reserve("ann", 151, id="one"), "BATCH_CONFLICT", field="amount_minor")
    await refused(house.release(id="two"), "BATCH_CONFLICT", field="operation")
    assert (await house.stacks())["late"] == 150


async def test_a_release_that_comes_first_keeps_the_reservation_from_being_made(house: House, auditor):
    await refused(house.release(), "RESERVATION_NOT_FOUND")
    await refused(house.reserve("ann", 150), "RESERVATION_CLOSED")
    await refused(house.commit(), "RESERVATION_NOT_FOUND")
    await refused(house.ledger.get_reservation("t1", "r"), "RESERVATION_NOT_FOUND")
    assert await house.cash("ann") == 600
    await assert_sound(house, auditor)


async def test_what_is_held_can_be_spent_on_nothing_else(house: House):
    await house.reserve("ann", 500)
    await refused(house.withdraw("ann", 101), "INSUFFICIENT_FUNDS")
    await refused(house.top_up("ann", 101), "INSUFFICIENT_FUNDS")
    await refused(house.reserve("ann", 101, name="more"), "INSUFFICIENT_FUNDS")


async def test_a_freeze_refuses_the_commit_and_not_the_release(house: House):
    await house.reserve("ann", 150)
    await house.freeze("ann")
    await refused(house.commit(), "PLAYER_FROZEN")
    await house.freeze("ann", PlayerState.ACTIVE)
    assert (await house.commit()).stack_minor == 150


async def test_a_reservation_of_one_table_is_unknown_at_another(house: House):
    await house.reserve("ann", 150)
    await refused(house.commit(table="t2"), "RESERVATION_NOT_FOUND")
    await refused(house.release(table="t2"), "RESERVATION_NOT_FOUND")
    await refused(house.ledger.get_reservation("t2", "r"), "RESERVATION_NOT_FOUND")
    assert await reserved(house, "ann") == 150


async def test_a_table_that_was_rebuilt_takes_no_reservation_from_before(house: House):
    await house.reserve("ann", 150)
    await house.fence(2)
    await refused(house.commit(), "STALE_EPOCH", epoch="2")
    assert (await house.release()).amount_minor == 150


async def test_commit_and_release_at_the_same_moment_have_one_winner(open_ledger, auditor):
    first, second = House(await open_ledger(shard=0)), House(await open_ledger(shard=1))
    await first.open("ann")
    for number in range(10):
        name = f"r{number}"
        await first.reserve("ann", 10, name=name, sitting=name)
        ends = (first.commit(name, id=f"c{number}"), second.release(name, id=f"l{number}"))
        outcomes = await asyncio.gather(*ends, return_exceptions=True)
        losers = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
        assert [loser.reason for loser in losers] == ["RESERVATION_CLOSED"]
    stacks = await first.stacks()
    assert await first.cash("ann") + sum(stacks.values()) == 1000
    assert await reserved(first, "ann") == 0
    await assert_sound(first, auditor)


async def test_the_open_ones_are_listed_page_by_page(house: House):
    for number in range(5):
        await house.reserve("ann", 10, name=f"r{number}", sitting=f"s{number}")
    await house.release("r1")
    other = House(house.ledger, table="t2")
    await other.reserve("bob", 10, name="r9", sitting="s9")
    assert [each.reservation for each in await house.ledger.list_reservations("t1", "", 3)] == ["r0", "r2", "r3"]
    assert [each.reservation for each in await house.ledger.list_reservations("t1", "r3", 3)] == ["r4"]
    assert [each.reservation for each in await house.ledger.list_reservations("", "r3", 9)] == ["r4", "r9"]


class Expiring:
    """A house on a clock that stands still, and its sweeper."""

    def __init__(self, database) -> None:
        self.clock = StandingClock()
        self.ledger = Ledger(database, self.clock)
        self.house = House(self.ledger)
        self.sweeper = Sweeper(database, self.ledger, self.clock)


@pytest.fixture
async def expiring(ledger_database):
    expiring = Expiring(ledger_database[1])
    await expiring.house.open("ann")
    yield expiring
    await expiring.ledger.close()


async def test_past_its_time_a_reservation_cannot_be_committed_and_is_given_back_once(expiring, auditor):
    house = expiring.house
    await house.reserve("ann", 150, hold_ms=5_000)
    expiring.clock.advance(4.999)
    assert await expiring.sweeper.expire() == 0
    expiring.clock.advance(0.001)
    # Before the sweep it still holds, and is over all the same.
    await refused(house.commit(), "RESERVATION_CLOSED", outcome="expired")
    assert (await house.cash("ann"), await reserved(house, "ann")) == (450, 150)
    assert await expiring.sweeper.expire() == 1
    assert await expiring.sweeper.expire() == 0
    assert (await house.cash("ann"), await reserved(house, "ann")) == (600, 0)
    assert (await house.ledger.get_reservation("t1", "r")).state is ReservationState.EXPIRED
    await refused(house.commit(), "RESERVATION_CLOSED", outcome="expired")
    assert (await house.release()).amount_minor == 150
    await assert_sound(house, auditor)


async def test_two_sweepers_give_a_reservation_back_once(expiring, open_ledger, ledger_database, auditor):
    await expiring.house.reserve("ann", 150, hold_ms=5_000)
    expiring.clock.advance(5)
    other = Sweeper(ledger_database[1], await open_ledger(shard=1), expiring.clock)
    assert await asyncio.gather(expiring.sweeper.expire(), other.expire()) in ([1, 1], [0, 1], [1, 0])
    assert await expiring.house.cash("ann") == 600
    await assert_sound(expiring.house, auditor)


async def test_a_round_of_expiry_is_bounded_and_takes_the_longest_overdue_first(expiring, monkeypatch):
    monkeypatch.setattr(sweeping, "EXPIRED_PER_ROUND_MAX", 2)
    for number in range(3):
        await expiring.house.reserve("ann", 10, name=f"r{number}", sitting=f"s{number}", hold_ms=9_000 - number * 1_000)
    expiring.clock.advance(60)
    assert await expiring.sweeper.expire() == 2
    assert [each.reservation for each in await expiring.ledger.list_reservations()] == ["r0"]
    assert await expiring.sweeper.expire() == 1


async def test_a_reservation_committed_in_time_is_not_expired_later(expiring):
    await expiring.house.reserve("ann", 150, hold_ms=5_000)
    await expiring.house.commit()
    expiring.clock.advance(60)
    assert await expiring.sweeper.expire() == 0
    late = c.ExpireReservation("expire r", "t1", "r")
    await refused(expiring.ledger.expire_reservation(late), "RESERVATION_CLOSED", outcome="committed")
    assert (await expiring.house.stacks())["late"] == 150


def test_states_are_those_of_the_contract():
    assert {state.name: int(state) for state in ReservationState} == {
        name.removeprefix("RESERVATION_STATE_"): number for name, number in pb.ReservationState.items() if number
    }
