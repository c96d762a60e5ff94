"""The audit finds what was done to the ledger behind its back, and a clean ledger is left in peace."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from services.runtime.clock import SystemClock
from services.runtime.database import Database
from services.wallet import audit, chain
from services.wallet.auditing import Auditor
from services.wallet.commands import AuditReport
from tests.integration.wallet.house import House, antes, refused

# What an intruder with SQL does, and the fault that must be among those found.
TAMPERINGS: dict[str, tuple[str, str]] = {
    "a balance raised": (
        "UPDATE accounts SET balance = balance + 100 WHERE account = 'player/ann/EUR'",
        "BALANCE_DIFFERS",
    ),
    "two balances shifted, so that the sum stays zero": (
        "UPDATE accounts SET balance = balance + CASE account WHEN 'player/ann/EUR' THEN 7 ELSE -7 END "
        "WHERE account IN ('player/ann/EUR', 'player/bob/EUR')",
        "BALANCE_DIFFERS",
    ),
    "an amount changed": (
        "UPDATE transfers SET amount = amount + 1 WHERE code = 9 AND batch_no = (SELECT min(batch_no) FROM transfers "
        "WHERE code = 9)",
        "BALANCE_BROKEN",
    ),
    "a transfer taken out": ("DELETE FROM transfers WHERE code = 6 AND line = 1", "LINES_MISSING"),
    "a transfer put in": (
        "INSERT INTO transfers VALUES ((SELECT max(batch_no) FROM batches) + 1, 1, 1, 'cashier/EUR/0', "
        "'player/ann/EUR', 'EUR', 50, -3050, 650)",
        "TRANSFER_WITHOUT_BATCH",
    ),
    "a credit turned to another player": (
        "UPDATE transfers SET credit = 'player/bob/EUR' WHERE code = 1 AND credit = 'player/ann/EUR'",
        "CONTENT_DIFFERS",
    ),
    "a batch taken out whole": (
        "DELETE FROM transfers WHERE batch_no = (SELECT max(batch_no) FROM batches WHERE operation = 'Deposit'); "
        "DELETE FROM batches WHERE batch_no = (SELECT max(batch_no) FROM batches WHERE operation = 'Deposit')",
        "SEAL_BROKEN",
    ),
    "a stored answer rewritten": (
        "UPDATE batches SET answer = replace(answer, 'ann', 'eve') WHERE operation = 'AwardPot'",
        "SEAL_BROKEN",
    ),
    "a time moved": ("UPDATE batches SET committed_ms = committed_ms - 86400000", "SEAL_BROKEN"),
    "a closed hand opened again": ("UPDATE hands SET outcome = 1 WHERE hand = 1", "HAND_REOPENED"),
    "a hand forgotten": ("DELETE FROM hands WHERE hand = 1", "HAND_MISSING"),
    "a link of the chain rewritten": ("UPDATE seals SET head = previous_head WHERE seal_no = 1", "SEAL_UNLINKED"),
    "a link taken out": ("DELETE FROM seals WHERE seal_no = 1", "SEAL_MISSING"),
    "an account taken away": ("DELETE FROM accounts WHERE account = 'stack/bob'", "ACCOUNT_MISSING"),
    "a stack's lock opened": ("UPDATE sittings SET locked_hand = 77 WHERE sitting = 'ann'", "STACK_LOCK_WRONG"),
    "a stack given to another player": ("UPDATE sittings SET player = 'bob' WHERE sitting = 'ann'", "STACK_WITHOUT"),
    "a currency turned": ("UPDATE accounts SET currency = 'USD' WHERE account = 'player/ann/EUR'", "CURRENCY_DIFFERS"),
    "a reservation's amount raised": ("UPDATE reservations SET amount = amount + 1", "RESERVATION_DIFFERS"),
    "a reservation ended, and its cash left lying": (
        "UPDATE reservations SET state = 3",
        "RESERVATION_DIFFERS",
    ),
    "a player erased": ("DELETE FROM players WHERE player = 'ann'", "CASH_WITHOUT_PLAYER"),
    "a stack given away, sitting and account": (
        "UPDATE sittings SET player = 'bob' WHERE sitting = 'ann'; "
        "UPDATE accounts SET owner = 'bob' WHERE account = 'stack/ann'",
        "SITTING_DIFFERS: sitting ann has player bob; its batches make ann",
    ),
    "a reservation given away, with its account": (
        "UPDATE reservations SET player = 'bob'; UPDATE accounts SET owner = 'bob' WHERE account = 'reserved/r'",
        "RESERVATION_DIFFERS: reservation r has player bob; its batches make ann",
    ),
    "a dealt-in stack unlocked": (
        "UPDATE sittings SET locked_hand = 0 WHERE sitting = 'ann'",
        "SITTING_DIFFERS: sitting ann has locked_hand 0; its batches make 4",
    ),
    "a carry said to be younger": (
        "UPDATE table_ledgers SET carry_since_hand = 2",
        "TABLE_DIFFERS: table t1 has carry_since_hand 2; its batches make 0",
    ),
    "hand numbers taken back": ("UPDATE table_ledgers SET last_hand = 3", "TABLE_DIFFERS: table t1 has last_hand 3"),
    "an epoch taken back": ("UPDATE table_ledgers SET epoch = 0", "TABLE_DIFFERS: table t1 has epoch 0"),
    "a table's currency turned": ("UPDATE table_ledgers SET currency = 'USD'", "TABLE_DIFFERS: table t1 has currency"),
    "a hand's reason reworded": (
        "UPDATE hands SET reason = 'nothing to see' WHERE hand = 3",
        "HAND_DIFFERS: hand 3 of t1 has reason nothing to see; its batches make an operator",
    ),
    "a hand's time moved": (
        "UPDATE hands SET closed_ms = 1 WHERE hand = 1",
        "HAND_DIFFERS: hand 1 of t1 has",
    ),
    "what a sitting took home": (
        "UPDATE sittings SET cashed_out = 500 WHERE sitting = 'cid'",
        "SITTING_DIFFERS: sitting cid has cashed_out 500; its batches make 400",
    ),
    "a closed sitting opened again": ("UPDATE sittings SET open = true WHERE sitting = 'cid'", "SITTING_DIFFERS"),
    "a sitting's currency turned": ("UPDATE sittings SET currency = 'USD' WHERE open", "SITTING_DIFFERS"),
    "a sitting that nobody bought into": (
        "INSERT INTO sittings VALUES ('ghost', 't1', 'bob', 7, 'EUR', true, 0, 0, 1)",
        "SITTING_DIFFERS: there are 4 rows of sittings; the batches make 3",
    ),
    "a reservation's time drawn out": (
        "UPDATE reservations SET expires_ms = expires_ms + 1",
        "RESERVATION_DIFFERS: reservation r has expires_ms",
    ),
    "cash given to another player": (
        "UPDATE accounts SET owner = 'bob' WHERE account = 'player/ann/EUR'",
        "OWNER_DIFFERS: player/ann/EUR is said to be bob's",
    ),
    "a freeze lifted": (
        "UPDATE players SET state = 1 WHERE player = 'cid'",
        "PLAYER_DIFFERS: player cid is not FROZEN",
    ),
    "a display name turned": ("UPDATE players SET display_name = 'Eve' WHERE player = 'ann'", "PLAYER_DIFFERS"),
    "a display name freed": ("UPDATE players SET display_key = 'eve' WHERE player = 'ann'", "PLAYER_DIFFERS"),
    "a player put in": ("INSERT INTO players VALUES ('eve', 'Eve', 'eve', 1, 1)", "PLAYER_DIFFERS"),
    "a limit lifted": ("DELETE FROM player_limits", "PLAYER_DIFFERS: the limits on player/bob/EUR"),
    "a change forgotten": ("DELETE FROM player_changes WHERE player = 'bob'", "PLAYER_DIFFERS: change "),
    "a change put in another's name": (
        "UPDATE player_changes SET changed_by = 'person/eve'",
        "PLAYER_DIFFERS: change ",
    ),
    "a change put in": (
        "INSERT INTO player_changes (change_no, player, state, reason, changed_by, changed_ms) "
        "VALUES (9999999, 'ann', 1, 'why', 'person/op', 1)",
        "PLAYER_DIFFERS: there are 3 rows of player_changes; the batches make 2",
    ),
    "the checker's mark moved on": (
        "UPDATE ledger_state SET audited_batch = 999999",
        "SEAL_MISSING: no seal ends",
    ),
    "the checker's books changed": ("INSERT INTO audited_balances VALUES ('stack/ann', 5)", "CHECKER_DIFFERS"),
    "a win paid to another stack, all balances put right": (
        "UPDATE transfers SET credit = 'stack/bob', credit_balance = 410 WHERE code = 9 AND batch_no = "
        "(SELECT min(batch_no) FROM transfers WHERE code = 9)",
        "CONTENT_DIFFERS",
    ),
    "a top-up raised": ("UPDATE transfers SET amount = amount + 10 WHERE code = 4", "CONTENT_DIFFERS"),
    "a cash-out paid to another player": (
        "UPDATE transfers SET credit = 'player/bob/EUR' WHERE code = 5",
        "NOT_DUE: batch ",
    ),
    "a void that refunds another": (
        "UPDATE transfers SET credit = 'stack/bob' WHERE code = 13",
        "NOT_DUE: batch ",
    ),
}


@pytest.fixture
async def sealed(house: House, auditor: Auditor) -> House:
    """Two hands played, one void, one open; two seals over it and something after them."""
    await house.play(1)
    await auditor.seal()
    await house.play(2)
    await house.forced(3, "ann bob", antes(ann=5))
    await house.void(3)
    await house.cash_out("cid")
    await house.top_up("bob", 20)
    await auditor.seal()
    await house.forced(4, "ann bob", antes(ann=2, bob=2))
    await house.reserve("ann", 30)
    await house.freeze("cid")
    await house.limit("bob", deposit=5000)
    return house


async def test_a_ledger_that_was_left_alone_is_clean(sealed, auditor):
    report = await auditor.audit()
    assert report.faults == ()
    # 6 deposits and buy-ins, twice 6 of a hand, void 2, cash-out and top-up, forced 2, reserved 1: 25 transfers.
    assert report.entries_checked == 50
    assert report.head == await auditor.seal() or report.head != chain.GENESIS


class _TakenBackError(Exception):
    """Rolls a tampering back once it was audited."""


async def test_tampering_behind_the_ledgers_back_is_found(sealed, ledger_database):
    missed = {}
    for name, (statements, fault) in TAMPERINGS.items():
        report = await _audit_tampered(ledger_database[1], statements)
        if not any(found.startswith(fault) for found in report.faults) or "TRIGGER" in str(report.faults):
            missed[name] = report.faults
    assert missed == {}
    assert len(TAMPERINGS) >= 10


async def _audit_tampered(database: Database, statements: str) -> AuditReport:
    reports = []

    def tamper(conn: Connection) -> None:
        _without_triggers(conn, lambda conn: [conn.execute(text(each)) for each in statements.split(";")])
        reports.append(audit.examine(conn))
        raise _TakenBackError

    with pytest.raises(_TakenBackError):
        await database.write(tamper)
    return reports[-1]


async def test_a_fault_closes_the_ledger_for_new_hands(sealed, auditor, ledger_database):
    statements, _ = TAMPERINGS["a balance raised"]
    await ledger_database[1].write(_run, statements)
    assert not (await auditor.audit()).clean
    await refused(sealed.forced(9, "ann bob"), "LEDGER_CLOSED")


async def test_a_chain_that_was_made_anew_does_not_hold_the_published_head(sealed, auditor, ledger_database):
    published = await auditor.seal()
    assert (await auditor.audit(published)).faults == ()

    def forge(conn: Connection) -> None:
        conn.execute(text("UPDATE batches SET answer = replace(answer, 'ann', 'eve')"))
        conn.execute(text("DELETE FROM seals"))

    await ledger_database[1].write(_without_triggers, forge)
    await auditor.seal()
    assert (await auditor.audit()).faults == ()
    report = await auditor.audit(published)
    assert report.faults == (f"HEAD_NOT_IN_CHAIN: {published} was published and is not in the chain",)


async def test_what_is_append_only_cannot_be_changed(sealed, ledger_database):
    await sealed.freeze("ann")
    for table, column in {
        "batches": "hand",
        "transfers": "amount",
        "seals": "batch_count",
        "player_changes": "state",
    }.items():
        for statement in (f"DELETE FROM {table}", f"UPDATE {table} SET {column} = 5"):  # noqa: S608 - names from above
            with pytest.raises(DBAPIError, match=f"{table} is append-only"):
                await ledger_database[1].write(_run, statement)


async def test_a_missing_trigger_is_a_fault(sealed, auditor, ledger_database):
    _, database = ledger_database
    drop = "DROP TRIGGER transfers_no_update" if database.is_sqlite else "ALTER TABLE transfers DISABLE TRIGGER USER"
    restore = (
        "CREATE TRIGGER transfers_no_update BEFORE UPDATE ON transfers "
        "BEGIN SELECT RAISE(ABORT, 'transfers is append-only'); END"
        if database.is_sqlite
        else "ALTER TABLE transfers ENABLE TRIGGER USER"
    )
    await database.write(_run, drop)
    report = await auditor.audit()
    assert [fault.partition(":")[0] for fault in report.faults] == ["TRIGGER_MISSING"]
    await database.write(_run, restore)
    assert (await auditor.audit()).clean


async def test_an_imbalance_stops_new_hands_until_a_clean_audit(sealed, auditor, ledger_database):
    _, database = ledger_database
    raise_it = "UPDATE accounts SET balance = balance + {} WHERE account = 'player/ann/EUR'"
    await database.write(_run, raise_it.format(5))
    summary = await auditor.watch()
    assert [balance.amount_minor for balance in summary.imbalance] == [5]
    # The open hand goes on to its end; the next one is refused, and not for good.
    await sealed.award(4, carry=4)
    await refused(sealed.forced(5, "ann bob", carry=4, id="next"), "LEDGER_CLOSED")
    await database.write(_run, raise_it.format(-5))
    assert (await auditor.audit()).clean
    await sealed.forced(5, "ann bob", carry=4, id="next")


async def test_two_sealers_at_once_make_one_chain(sealed, ledger_database, auditor):
    other = Auditor(ledger_database[1], SystemClock())
    await sealed.collect(4, 1)
    assert await auditor.seal() == await other.seal()
    assert (await other.audit()).faults == ()


def _run(conn: Connection, statement: str) -> None:
    conn.execute(text(statement))


def _without_triggers(conn: Connection, change: Callable[[Connection], object]) -> None:
    if conn.dialect.name == "postgresql":
        conn.execute(text("SET LOCAL session_replication_role = replica"))
        change(conn)
        return
    triggers = conn.execute(text("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")).all()
    for name, _ in triggers:
        conn.execute(text(f"DROP TRIGGER {name}"))
    change(conn)
    for _, sql in triggers:
        conn.execute(text(sql))
