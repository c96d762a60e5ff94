"""kill -9 at every point of a commit: what was answered is there, the rest can be sent again, nothing is doubled."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import pytest
from sqlalchemy import Connection, select

from services.runtime.clock import SystemClock
from services.runtime.database import Database
from services.wallet.auditing import Auditor
from services.wallet.ledger import Ledger
from services.wallet.schema import batches
from tests.chaos.wallet import victim

ROOT = Path(__file__).parents[3]
START_SECONDS_MAX = 60


def stored_ids(conn: Connection) -> set[str]:
    return {key.partition(" ")[2] for key in conn.scalars(select(batches.c.batch_key))}


@pytest.mark.parametrize(("failpoint", "hits"), [("loaded", 8), ("written", 13), ("committed", 17)])
async def test_a_ledger_killed_in_a_commit_keeps_what_it_answered(database_url, failpoint, hits):
    command = [sys.executable, "-m", "tests.chaos.wallet.victim", database_url, failpoint, str(hits)]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    printed, _ = await asyncio.wait_for(process.communicate(), START_SECONDS_MAX)
    assert process.returncode == -signal.SIGKILL
    answered = set(printed.decode().split())

    database = Database(database_url, isolation="READ COMMITTED", pool_size=4)
    ledger = Ledger(database, SystemClock())
    auditor = Auditor(database, SystemClock())
    try:
        stored = await database.read(stored_ids)
        assert answered <= stored
        if failpoint == "committed":
            assert stored - answered, "the last commit was answered, although its process had died before"
        assert (await auditor.audit()).faults == ()

        async def say(_: str, answer) -> None:
            await answer

        await victim.live(ledger, say)
        await auditor.seal()
        assert (await auditor.audit()).faults == ()
        # Four hands of six are awarded: seat 1 wins 9 in each, seat 2 loses 11, the house takes 2.
        for table in range(victim.TABLES):
            known = await ledger.get_table_ledger(f"t{table}")
            assert [stack.stack_minor for stack in known.stacks] == [500 + 4 * 9, 500 - 4 * 11]
        totals = {total.kind.name: total.amount_minor for total in (await ledger.get_ledger_summary()).totals}
        assert totals["RAKE"] == 2 * 4 * victim.TABLES
    finally:
        await ledger.close()
        await database.close()
