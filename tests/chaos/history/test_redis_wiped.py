"""Redis loses everything in the middle of play, the broker in it too: every number has a history all the same."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from pathlib import Path

import pytest
import redis

from services.cli.house.ports import Ports
from tests.embedded import EmbeddedHouse, Onlooker, bot_tables, embedded_house

TABLES = 3
PLAYERS = 3
WIPES = 3
FIRST_HANDS_SECONDS = 90.0
GOES_ON_SECONDS = 60.0
HANDS_BETWEEN = 4


def wipe(house: EmbeddedHouse) -> None:
    """All states, logs, indexes and tasks are gone, as if Redis had come back with an empty disk."""
    url = f"redis://:{house.keys().redis_password}@127.0.0.1:{Ports(house.port_base).redis}/0"
    with contextlib.closing(redis.Redis.from_url(url)) as client:
        client.flushall()


def rows(house: EmbeddedHouse) -> dict[str, dict[int, bool]]:
    """By table: the numbers that have a row, and whether it is an incomplete one."""
    found: dict[str, dict[int, bool]] = {}
    with contextlib.closing(sqlite3.connect(house.folder.sql / "history.sqlite")) as connection:
        for table, hand, incomplete in connection.execute("SELECT table_id, hand, incomplete FROM hands"):
            assert hand not in found.setdefault(table, {}), "two rows"
            found[table][hand] = bool(incomplete)
    return found


def last_hands(house: EmbeddedHouse) -> dict[str, int]:
    """By table: the last number that the registry gave out."""
    with contextlib.closing(sqlite3.connect(house.folder.sql / "table.sqlite")) as connection:
        return dict(connection.execute("SELECT table_id, last_hand FROM tables"))


@pytest.mark.timeout(600)
@pytest.mark.long
async def test_every_hand_number_has_a_row_after_redis_was_wiped_in_the_middle_of_play(tmp_path: Path) -> None:
    options = ["--tables", str(TABLES), "--players", str(PLAYERS), "--speed", "brisk"]
    with embedded_house(tmp_path / "house", *options) as house:
        async with Onlooker(bot_tables(TABLES, PLAYERS)).watching(house) as seen:
            await seen.until_all_go_on(seen.hands(), 2, FIRST_HANDS_SECONDS)
            for _ in range(WIPES):
                # Tables are in different places of their hands, so each wipe finds other steps half done.
                before = seen.hands()
                await asyncio.to_thread(wipe, house)
                await seen.until_all_go_on(before, HANDS_BETWEEN, GOES_ON_SECONDS)
        summary = await asyncio.to_thread(house.end)

    assert summary["faults"] == []
    assert summary["lost_hands"] == 0
    assert summary["exit_status"] == 0
    written = rows(house)
    numbers = last_hands(house)
    assert set(written) == set(numbers)
    for table, last in numbers.items():
        # The last one may have been in play when the house was stopped.
        assert set(range(1, last)) - set(written[table]) == set(), table
    incomplete = sum(sum(each.values()) for each in written.values())
    assert incomplete >= 1, "no log was lost, so nothing was shown"
