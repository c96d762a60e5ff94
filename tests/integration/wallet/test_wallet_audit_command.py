"""`fivedraw audit` on a folder and on a URL."""

from __future__ import annotations

import asyncio

from click.testing import CliRunner
from sqlalchemy import create_engine, text

from services.cli.audit import audit_command
from services.runtime.database import Database
from services.wallet import closures
from tests.integration.wallet.house import refused


def audit(*arguments: str):
    return CliRunner().invoke(audit_command, arguments, env={"FIVEDRAW_DATABASE_URL": ""})


async def test_a_clean_ledger_ends_with_status_0_and_its_head(house, auditor, ledger_database):
    await house.play(1)
    head = await auditor.seal()
    result = await asyncio.to_thread(audit, "--database-url", ledger_database[0], "--head", head)
    assert (result.exit_code, result.output) == (0, f"24 entries, head {head}: clean\n")


async def test_the_first_fault_is_named_and_the_status_is_1(house, ledger_database):
    engine = create_engine(ledger_database[0])
    with engine.begin() as conn:
        conn.execute(text("UPDATE accounts SET balance = balance + 1 WHERE account = 'stack/ann'"))
    engine.dispose()
    result = await asyncio.to_thread(audit, "--database-url", ledger_database[0])
    assert result.exit_code == 1
    assert result.output.splitlines()[0] == "BALANCE_DIFFERS: stack/ann holds 401; its entries make 400"
    assert result.output.endswith("NOT clean, 2 faults, the first BALANCE_DIFFERS\n")


async def test_a_head_that_is_not_in_the_chain_is_a_fault(house, ledger_database):
    result = await asyncio.to_thread(audit, "--database-url", ledger_database[0], "--head", "AB" * 32)
    assert (result.exit_code, result.output.partition(":")[0]) == (1, "HEAD_NOT_IN_CHAIN")


async def test_a_closed_ledger_is_told_and_opened_when_asked(house, ledger, ledger_database):
    url, database = ledger_database
    for statement in (
        "UPDATE ledger_state SET closed_reason = 'a test'",
        "UPDATE table_ledgers SET closed_reason = 'VoidHand: a pot'",
    ):
        await database.write(lambda conn, statement=statement: conn.execute(text(statement)))
    result = await asyncio.to_thread(audit, "--database-url", url)
    assert result.exit_code == 3
    assert result.output.splitlines()[1:] == [
        "the ledger is closed for new hands: a test",
        "table t1 is closed for new hands: VoidHand: a pot",
        "to open: fivedraw audit --reopen, or AuditLedger by finance or an auditor (console: Ledger, Audit)",
    ]
    # A fault keeps it closed, whatever is asked for.
    raised = "UPDATE accounts SET balance = balance + {} WHERE account = 'stack/ann'"
    await database.write(lambda conn: conn.execute(text(raised.format(1))))
    kept = await asyncio.to_thread(audit, "--database-url", url, "--reopen")
    assert (kept.exit_code, kept.output.splitlines()[-1]) == (
        1,
        "table t1 is closed for new hands, until a clean audit: VoidHand: a pot",
    )
    await refused(house.forced(1, "ann bob"), "LEDGER_CLOSED")
    await database.write(lambda conn: conn.execute(text(raised.format(-1))))
    opened = await asyncio.to_thread(audit, "--database-url", url, "--reopen")
    assert (opened.exit_code, opened.output.splitlines()[1:]) == (
        0,
        [
            "the ledger is open again, having been closed: a test",
            "table t1 is open again, having been closed: VoidHand: a pot",
        ],
    )
    await house.forced(1, "ann bob")
    assert (await asyncio.to_thread(audit, "--database-url", url)).exit_code == 0


async def test_what_was_closed_while_an_audit_ran_stays_closed(house, ledger_database):
    _, database = ledger_database
    await database.write(closures.close_ledger, "later")
    await database.write(closures.reopen, {closures.WHOLE: "earlier"}, 1)
    await refused(house.forced(1, "ann bob"), "LEDGER_CLOSED")


def test_a_folder_is_audited_and_one_without_a_ledger_is_said_so(tmp_path):
    missing = audit("--data", str(tmp_path))
    assert missing.exit_code == 1
    assert "there is no ledger at" in missing.output
    assert not (tmp_path / "sql").exists()
    (tmp_path / "sql").mkdir()
    database = Database(f"sqlite:///{tmp_path / 'sql' / 'wallet.sqlite'}")
    database.migrate_now("wallet")
    database.close_now()
    assert audit("--data", str(tmp_path)).exit_code == 0
    assert audit("--database-url", "nonsense").exit_code == 1
