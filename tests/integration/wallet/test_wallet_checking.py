"""What is new in the ledger is checked as it comes: piece by piece, once, against books of the checker's own."""

from __future__ import annotations

import asyncio

import pytest
from celery import Celery
from sqlalchemy import Connection, select, text

from services.runtime.database import Database
from services.runtime.tasks import AUDIT_LEDGER, CHECK_NEW_ENTRIES, LEDGER_QUEUE, QUEUE_OF_TASK
from services.runtime.telemetry import REGISTRY_OF_PROCESS
from services.wallet import checking
from services.wallet.auditing import Auditor
from services.wallet.schema import accounts, audited_balances
from services.wallet.worker import add_tasks
from tests.integration.wallet.house import House, antes, refused
from tests.integration.wallet.test_wallet_audit import _without_triggers
from tests.standing_clock import StandingClock

# What somebody with SQL does to what is sealed and not yet checked, and the fault that is then found.
TAMPERINGS = {
    "a balance raised": ("UPDATE accounts SET balance = balance + 100 WHERE account = 'stack/ann'", "BALANCE_DIFFERS"),
    "an amount changed": (
        "UPDATE transfers SET amount = amount + 1 WHERE code = 9 AND batch_no = (SELECT max(batch_no) FROM transfers "
        "WHERE code = 9)",
        "BALANCE_BROKEN",
    ),
    "a line taken out": (
        "DELETE FROM transfers WHERE code = 6 AND line = 1 AND batch_no = (SELECT max(batch_no) FROM transfers "
        "WHERE code = 6)",
        "LINES_MISSING",
    ),
    "a batch's answer rewritten": (
        "UPDATE batches SET answer = '{}' WHERE batch_no = (SELECT max(batch_no) FROM batches)",
        "SEAL_BROKEN",
    ),
    "the newest seal rewritten": (
        "UPDATE seals SET head = previous_head WHERE seal_no = (SELECT max(seal_no) FROM seals)",
        "SEAL_BROKEN",
    ),
    "the last sound seal taken out": (
        "DELETE FROM seals WHERE seal_no = (SELECT max(seal_no) - 1 FROM seals)",
        "SEAL_MISSING",
    ),
    "the checker's own books changed": (
        "UPDATE audited_balances SET balance = balance + 1 WHERE account = 'stack/ann'",
        "BALANCE_BROKEN",
    ),
}


def books(conn: Connection) -> tuple[dict[str, int], dict[str, int]]:
    """What accounts hold, and what the checker's books say; empty ones left out."""
    held, audited = (
        {account: balance for account, balance in conn.execute(select(table.c.account, table.c.balance)) if balance}
        for table in (accounts, audited_balances)
    )
    return held, audited


@pytest.fixture
async def checked(house: House, auditor: Auditor) -> House:
    """One hand played, sealed and checked; another one sealed and not yet checked."""
    await house.play(1)
    await auditor.seal()
    assert (await auditor.check_new()).faults == ()
    await house.play(2)
    await auditor.seal()
    return house


async def test_each_round_reads_what_was_sealed_since_the_last_and_nothing_twice(checked, auditor, ledger_database):
    second = await auditor.check_new()
    # Six transfers of a hand, two entries each.
    assert (second.entries_checked, second.faults, second.behind) == (12, (), 0)
    third = await auditor.check_new()
    assert (third.entries_checked, third.after, third.last_batch) == (0, second.last_batch, second.last_batch)
    held, audited = await ledger_database[1].read(books)
    assert held == audited


async def test_what_is_not_sealed_yet_is_neither_checked_nor_held_against_the_accounts(checked, auditor):
    await checked.forced(3, "ann bob", antes(ann=2, bob=2))
    found = await auditor.check_new()
    assert (found.entries_checked, found.faults, found.behind) == (12, (), 1)


async def test_a_round_is_bounded_by_whole_seals_and_the_next_goes_on(house, auditor, monkeypatch):
    monkeypatch.setattr(checking, "BATCHES_PER_ROUND_MAX", 1)
    await auditor.seal()
    for hand in (1, 2, 3):
        await house.play(hand)
        await auditor.seal()
    rounds = [await auditor.check_new() for _ in range(5)]
    assert [found.entries_checked for found in rounds] == [12, 12, 12, 12, 0]
    assert {found.faults for found in rounds} == {()}


@pytest.mark.parametrize("name", TAMPERINGS)
async def test_tampering_with_what_is_new_closes_the_ledger(checked, auditor, ledger_database, name):
    statement, fault = TAMPERINGS[name]
    database: Database = ledger_database[1]
    await database.write(_without_triggers, lambda conn: conn.execute(text(statement)))
    found = await auditor.check_new()
    assert any(each.startswith(fault) for each in found.faults), found.faults
    await refused(checked.forced(3, "ann bob"), "LEDGER_CLOSED")
    # It stays where it is, and finds the same again.
    assert (await auditor.check_new()).faults == found.faults


async def test_a_clean_check_of_what_is_new_does_not_open_a_closed_ledger(checked, auditor, ledger_database):
    await ledger_database[1].write(lambda conn: conn.execute(text("UPDATE ledger_state SET closed_reason = 'a test'")))
    assert (await auditor.check_new()).faults == ()
    await refused(checked.forced(3, "ann bob"), "LEDGER_CLOSED")
    assert (await auditor.audit()).clean
    await checked.forced(4, "ann bob")


async def test_two_checkers_move_the_books_on_once(checked, auditor, ledger_database):
    database: Database = ledger_database[1]
    one, other = await database.read(checking.check_new), await database.read(checking.check_new)
    assert one == other
    assert await database.write(checking.move_on, one)
    assert not await database.write(checking.move_on, other)


async def test_the_workers_tasks_tell_what_they_found_as_metrics(checked, auditor, ledger_database):
    app = Celery("test", set_as_current=False)
    clock = StandingClock()
    # Celery's threads have no event loop of their own; nor has the thread that this runs in.
    add_tasks(app, auditor, clock)

    def shown(name: str, **labels: str) -> float | None:
        return REGISTRY_OF_PROCESS.get_sample_value(f"fivedraw_wallet_{name}", labels)

    assert await _in_thread(app.tasks[CHECK_NEW_ENTRIES]) == 12
    assert (shown("audit_faults", of="new"), shown("unchecked_batches")) == (0, 0)
    assert shown("checked_timestamp_seconds") == clock.now_ms() / 1000
    assert await _in_thread(app.tasks[AUDIT_LEDGER]) == 36
    assert (shown("audit_faults", of="whole"), shown("audited_timestamp_seconds")) == (0, clock.now_ms() / 1000)
    await ledger_database[1].write(lambda conn: conn.execute(text("UPDATE accounts SET balance = balance + 1")))
    clock.advance(60)
    await _in_thread(app.tasks[AUDIT_LEDGER])
    assert (shown("audit_faults", of="whole") or 0) > 0
    assert {QUEUE_OF_TASK[task] for task in (AUDIT_LEDGER, CHECK_NEW_ENTRIES)} == {LEDGER_QUEUE}


async def _in_thread(task) -> object:
    return await asyncio.to_thread(task)
