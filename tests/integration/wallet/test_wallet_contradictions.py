"""What contradicts itself stops as little as it must: a step that gives too much back, a hand whose books are wrong."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import text

from services.wallet import commands as c
from services.wallet import hand_desk
from services.wallet.chart import TransferCode
from tests.integration.wallet.house import House, antes, bets, lines, refused, returned, wins


async def test_no_sitting_gets_back_more_than_it_put_into_the_pot(house):
    await house.forced(1, "ann bob", antes(ann=10, bob=10))
    facts = {"sitting": "ann", "hand": "1", "returned_minor": "15", "paid_minor": "10"}
    await refused(house.collect(1, 1, (), returned(ann=15)), "RETURN_TOO_LARGE", **facts)
    # What was never paid, what is asked for in two parts, and what another one paid: none of it.
    await refused(house.collect(1, 1, (), returned(ann=6) + returned(ann=5)), "RETURN_TOO_LARGE", paid_minor="4")
    assert (await house.collect(1, 1, bets(ann=2), returned(ann=12))).pot_minor == 10
    await refused(house.collect(1, 2, (), returned(ann=1)), "RETURN_TOO_LARGE", paid_minor="0")
    await house.void(1)
    assert await house.stacks() == {"ann": 400, "bob": 400, "cid": 400}


async def test_nor_does_an_award_return_more(house):
    await house.forced(1, "ann bob", antes(ann=10, bob=10))
    too_much = lines(TransferCode.RETURN, ann=11) + wins(bob=9)
    await refused(house.award(1, too_much), "RETURN_TOO_LARGE", paid_minor="10")
    await house.award(1, lines(TransferCode.RETURN, ann=10) + wins(bob=10))


async def test_what_the_same_commit_opened_and_posted_counts_as_paid(open_ledger):
    ledger = await open_ledger(group_wait_ms=20)
    house = House(ledger)
    await house.open("ann", "bob")
    outcomes = await asyncio.gather(
        house.forced(1, "ann bob", antes(ann=10, bob=10)),
        house.collect(1, 1, bets(ann=3), returned(bob=4)),
        house.collect(1, 2, (), returned(bob=7)),
        house.collect(1, 2, (), returned(bob=6)),
        return_exceptions=True,
    )
    assert [getattr(outcome, "reason", outcome) for outcome in outcomes] == [
        c.Pot(20),
        c.Pot(19),
        "RETURN_TOO_LARGE",
        c.Pot(13),
    ]


@pytest.mark.parametrize("end", ["void", "fence"])
async def test_a_hand_that_an_earlier_version_let_return_too_much_is_undone_to_the_unit(
    house, auditor, monkeypatch, end
):
    await house.forced(1, "ann bob", antes(ann=10, bob=10))
    monkeypatch.setattr(hand_desk, "_require_paid", lambda *_: None)
    await house.collect(1, 1, (), returned(ann=15))
    await (house.void(1) if end == "void" else house.fence(2))
    assert await house.stacks() == {"ann": 400, "bob": 400, "cid": 400}
    await house.forced(2, "ann bob", antes(ann=1))
    assert (await auditor.audit()).faults == ()


async def test_one_hand_that_contradicts_itself_stops_its_table_and_no_other(house, auditor, ledger_database):
    _, database = ledger_database
    other = House(house.ledger, table="t2", first_id=1000)
    await other.buy_in("ann", 100, sitting="ann2")
    await house.forced(1, "ann bob", antes(ann=10, bob=10))
    raised = "UPDATE accounts SET balance = balance + {} WHERE account = 'pot/t1/1'"
    await database.write(lambda conn: conn.execute(text(raised.format(1))))

    await refused(house.void(1, id="stopped"), "INTERNAL")
    await refused(house.fence(2), "INTERNAL")
    house.epoch = 1
    await refused(house.forced(2, "ann bob", id="next"), "LEDGER_CLOSED", table="tables/t1")
    # Chips at the table go on to where they belong, and so does the rest of the house.
    await house.cash_out("cid")
    await other.forced(1, "ann2")
    await other.award(1)

    await database.write(lambda conn: conn.execute(text(raised.format(-1))))
    assert (await auditor.audit()).faults == ()
    # Nothing of it was stored, so the same ids are free.
    await house.void(1, id="stopped")
    assert await house.stacks() == {"ann": 400, "bob": 400}
    await house.forced(2, "ann bob", id="next")
