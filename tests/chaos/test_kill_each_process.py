"""Each process of a house is killed in turn while all five games are played: play goes on, and nothing is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.embedded import Onlooker, bot_tables, embedded_house

TABLES = 5
PLAYERS = 3
KILLED = ["table", "deck", "wallet", "worker", "redis", "history", "beat", "wallet-worker", "console"]
# What the house promises: from the restart of the process until every table has dealt on.
GOES_ON_WITHIN_SECONDS = 10.0
FIRST_HANDS_WITHIN_SECONDS = 60.0


@pytest.mark.timeout(300)
@pytest.mark.alone
async def test_play_goes_on_after_kill_9_of_each_process(tmp_path: Path):
    options = ["--tables", str(TABLES), "--players", str(PLAYERS), "--speed", "flatout"]
    with embedded_house(tmp_path / "house", *options) as house:
        async with Onlooker(bot_tables(TABLES, PLAYERS)).watching(house) as seen:
            await seen.until_all_go_on(seen.hands(), 1, FIRST_HANDS_WITHIN_SECONDS)
            for name in KILLED:
                killed = await asyncio.to_thread(house.kill, name)
                await asyncio.to_thread(house.await_restart, name, killed)
                # The hand being played when the process died may end void; the one after it is played out.
                await seen.until_all_go_on(seen.hands(), 2, GOES_ON_WITHIN_SECONDS, f"{name} was killed")
        summary = await asyncio.to_thread(house.end)

    assert seen.broken_promises() == []
    assert summary["faults"] == []
    assert summary["exit_status"] == 0
    assert summary["restarts"] == dict.fromkeys(sorted(KILLED), 1)
    assert summary["ledger_balance_minor"] == 0
    assert set(summary["hands_by_rulebook"]) == {"house", "clocked", "casadela", "openers", "american"}
