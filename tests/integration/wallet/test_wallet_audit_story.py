"""What the ledger paid because somebody changed a row behind its back, the audit finds in the sealed batches."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection, text

from services.runtime.database import Database
from services.wallet import commands as c
from services.wallet.auditing import Auditor
from tests.integration.wallet.house import House, antes, bets, returned, wins


async def tamper(database: Database, *statements: str) -> None:
    def run(conn: Connection) -> None:
        for statement in statements:
            conn.execute(text(statement))

    await database.write(run)


async def first_of(auditor: Auditor) -> str:
    await auditor.seal()
    return next(iter((await auditor.audit()).faults), "")


async def test_a_stack_cashed_out_by_another_player(house, auditor, ledger_database):
    await tamper(
        ledger_database[1],
        "UPDATE sittings SET player = 'bob' WHERE sitting = 'ann'",
        "UPDATE accounts SET owner = 'bob' WHERE account = 'stack/ann'",
    )
    await house.cash_out("ann")
    fault = await first_of(auditor)
    assert fault.startswith("NOT_DUE: batch ")
    assert fault.endswith("moves 400 from stack/ann to player/bob/EUR, which was not due")
    # Rows put back do not hide it.
    await tamper(
        ledger_database[1],
        "UPDATE sittings SET player = 'ann' WHERE sitting = 'ann'",
        "UPDATE accounts SET owner = 'ann' WHERE account = 'stack/ann'",
    )
    assert await first_of(auditor) == fault


async def test_a_reservation_released_to_another_player(house, auditor, ledger_database):
    await house.reserve("ann", 100)
    await tamper(
        ledger_database[1],
        "UPDATE reservations SET player = 'bob'",
        "UPDATE accounts SET owner = 'bob' WHERE account = 'reserved/r'",
    )
    await house.release()
    assert "moves 100 from reserved/r to player/bob/EUR, which was not due" in await first_of(auditor)


async def test_a_carry_refunded_to_those_of_its_last_hand_alone(house, auditor, ledger_database):
    await house.forced(1, "ann bob", antes(ann=100))
    await house.award(1, carry=100)
    await house.forced(2, "ann bob", antes(bob=1), carry=100)
    await house.award(2, carry=101)
    await tamper(ledger_database[1], "UPDATE table_ledgers SET carry_since_hand = 2")
    await house.refund_carry()
    assert "moves 101 from carry/t1 to player/bob/EUR, which was not due" in await first_of(auditor)


async def test_a_stack_taken_off_in_the_middle_of_its_hand(house, auditor, ledger_database):
    await house.forced(1, "ann bob", antes(ann=10, bob=10))
    await tamper(ledger_database[1], "UPDATE sittings SET locked_hand = 0 WHERE sitting = 'ann'")
    await house.cash_out("ann")
    assert "moves the stack of ann, which hand 1 holds" in await first_of(auditor)


async def test_a_top_up_paid_by_another_player(house, auditor, ledger_database):
    give, take = "UPDATE sittings SET player = 'bob' WHERE sitting = 'ann'", "UPDATE sittings SET player = 'ann'"
    await tamper(ledger_database[1], give)
    await house.top_up("ann", 50)
    await tamper(ledger_database[1], f"{take} WHERE sitting = 'ann'")
    assert "moves 50 from player/bob/EUR to stack/ann, which was not due" in await first_of(auditor)


async def test_all_that_a_ledger_does_is_due(house, auditor):
    """Carries through void hands and closed sittings, marks, fences, reservations of each end: nothing is a fault."""
    await house.forced(1, "ann bob cid", antes(ann=10, bob=10, cid=10))
    await house.collect(1, 1, bets(ann=5, bob=5), returned(cid=3))
    await house.award(1, wins(ann=5), rake=2, carry=30)
    await house.forced(2, "ann bob", antes(ann=1), carry=30)
    await house.void(7)
    await house.void(7, id="again")
    await house.void(2)
    await house.void(2, id="once more")
    await house.cash_out("cid")
    await house.cash_out("cid", id="told again")
    await house.forced(3, "ann bob", antes(ann=7, bob=2), carry=30)
    await house.award(3, wins(bob=4), carry=35)
    assert (await house.refund_carry()).amount_minor == 35
    assert (await house.refund_carry()).amount_minor == 0
    for unknown in (house.cash_out("nobody"), house.cash_out("nobody"), house.release("never"), house.release("never")):
        with pytest.raises(Exception, match="NOT_FOUND"):
            await unknown
    for name, sitting in (("one", "ann2"), ("two", "ann3"), ("three", "ann4")):
        await house.reserve("ann", 10, name=name, sitting=sitting)
    await house.commit("one")
    await house.release("two")
    await house.release("two", id="again two")
    await house.ledger.expire_reservation(c.ExpireReservation("expire three", "t1", "three"))
    await house.forced(8, "ann ann2", antes(ann2=4))
    await house.fence(2)
    await house.void(9)
    await house.void(4)
    await house.forced(10, "bob")
    await auditor.seal()
    assert (await auditor.audit()).faults == ()


async def test_a_fence_that_moves_no_chips_is_booked_all_the_same(house, auditor):
    await house.forced(1, "ann bob")
    assert (await house.fence(2)).voided_hand == 1
    await house.fence(2)
    await house.forced(2, "ann bob", antes(ann=1))
    assert (await auditor.audit()).faults == ()
    # Nothing but that batch tells what the table would otherwise have been made of.
    await house.void(2)
    await house.fence(5)
    await tamper(auditor._db, "UPDATE table_ledgers SET fenced_epoch = 2")
    assert await first_of(auditor) == "TABLE_DIFFERS: table t1 has fenced_epoch 2; its batches make 5"


TRIGGERS = {
    "sqlite": {
        "an emptied one": (
            "TRIGGER_MISSING: transfers can be changed",
            ["DROP TRIGGER transfers_no_update",
             "CREATE TRIGGER transfers_no_update BEFORE UPDATE ON transfers BEGIN SELECT 1; END"],
            ["DROP TRIGGER transfers_no_update",
             "CREATE TRIGGER transfers_no_update BEFORE UPDATE ON transfers "
             "BEGIN SELECT RAISE(ABORT, 'transfers is append-only'); END"],
        ),
        "one too many": (
            "TRIGGER_UNKNOWN: accounts has a trigger gift",
            ["CREATE TRIGGER gift AFTER UPDATE ON accounts BEGIN SELECT 1; END"],
            ["DROP TRIGGER gift"],
        ),
    },
    "postgresql": {
        "an emptied one": (
            "TRIGGER_MISSING: batches can be changed",
            ["CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS "
             "$$ BEGIN RETURN NULL; END $$"],
            ["CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS "
             "$$ BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$"],
        ),
        "one that never acts": (
            "TRIGGER_MISSING: transfers can be changed",
            ["DROP TRIGGER transfers_append_only ON transfers",
             "CREATE TRIGGER transfers_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON transfers "
             "FOR EACH STATEMENT WHEN (false) EXECUTE FUNCTION refuse_change()"],
            ["DROP TRIGGER transfers_append_only ON transfers",
             "CREATE TRIGGER transfers_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON transfers "
             "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()"],
        ),
        "one too many": (
            "TRIGGER_UNKNOWN: accounts has a trigger gift",
            ["CREATE TRIGGER gift AFTER UPDATE ON accounts FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()"],
            ["DROP TRIGGER gift ON accounts"],
        ),
    },
}  # fmt: skip


async def test_a_trigger_that_refuses_nothing_is_a_fault_and_so_is_one_that_nobody_made(
    house: House, auditor, ledger_database
):
    _, database = ledger_database
    for fault, change, restore in TRIGGERS["sqlite" if database.is_sqlite else "postgresql"].values():
        await tamper(database, *change)
        found = await first_of(auditor)
        await tamper(database, *restore)
        assert found.startswith(fault)
    assert await first_of(auditor) == ""
