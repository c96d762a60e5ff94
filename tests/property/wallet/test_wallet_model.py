"""The ledger against a plain model of it: concurrent clients, retries, duplicates, reorderings, disconnects.

Each table has one model, and its operations are sent one after the other as a table service sends them; but many tables
share the commits, old batches are sent again between and beside new ones, two processes write, commits are lost,
and callers hang up without knowing whether their batch was taken.
"""

from __future__ import annotations

import asyncio
import random

import pytest

from services.runtime.clock import SystemClock
from services.wallet.auditing import Auditor
from tests.property.wallet.lives import Writers, live

TABLES = 5
OPERATIONS = 60


@pytest.mark.parametrize("seed", [20260101])
async def test_the_ledger_does_what_its_model_does(database_url, seed):
    writers = Writers(database_url, random.Random(seed))
    await writers.open()
    try:
        lives = (live(writers, f"t{number}", random.Random(f"{seed} {number}"), OPERATIONS) for number in range(TABLES))
        answers = set().union(*await asyncio.gather(*lives))
        auditor = Auditor(writers.databases[0], SystemClock())
        await auditor.seal()
        assert (await auditor.audit()).faults == ()
        # A run that never gets into a corner proves little.
        assert {
            "OK",
            "BATCH_CONFLICT",
            "HAND_CLOSED",
            "INSUFFICIENT_FUNDS",
            "STACK_LOCKED",
            "RESERVATION_CLOSED",
            "RETURN_TOO_LARGE",
        } <= answers
        assert writers.lost
    finally:
        await writers.close()
