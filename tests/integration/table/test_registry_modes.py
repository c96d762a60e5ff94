"""What is wanted of a table, in the registry: on both databases, and for tables of before it was kept there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DBAPIError

from services.runtime import migrations
from services.table.registry import NewTable, Registry
from services.table.state import TableSettings
from services.table.wanted import Wanted

DEPLOYED = Path(__file__).parents[3] / "deploy" / "migrations"
INSERT = text(
    "INSERT INTO tables (table_id, display_name, rulebook, overrides, settings, template, currency, created_ms,"
    " closed_ms, request_id, requested_by, request_digest, epoch, last_hand, button)"
    " VALUES (:id, 'Oak', 'house', '{}', '{}', '', 'CHIPS', 1, :closed, :id, 'person/op', '', 3, 7, 2)"
)


def new_table(table_id: str) -> NewTable:
    return NewTable(table_id, "Oak", "house", {}, TableSettings(), "CHIPS", table_id, "person/op", "")


async def test_tables_of_an_earlier_version_are_open_and_closed_ones_stay_closed(
    database, database_url, tmp_path
) -> None:
    earlier = tmp_path / "migrations"
    shutil.copytree(DEPLOYED, earlier)
    (earlier / "table" / "0002_wanted_modes.py").unlink()
    engine = create_engine(database_url)
    migrations.upgrade(engine, "table", earlier)
    with engine.begin() as conn:
        conn.execute(INSERT, [{"id": "oak", "closed": None}, {"id": "elm", "closed": 5}])

    registry = Registry(await database("table"))

    oak, elm = await registry.get_table("oak"), await registry.get_table("elm")
    assert (oak.wanted, oak.closed_ms, oak.epoch, oak.last_hand, oak.button) == (Wanted("open", "", 0), None, 3, 7, 2)
    assert (elm.wanted, elm.closed_ms) == (Wanted("open", "", 0), 5)
    assert await registry.want("oak", Wanted("paused", "fire drill", 1), 0)
    with engine.begin() as conn:
        # A process of the earlier version opens tables as it did.
        conn.execute(INSERT, [{"id": "ash", "closed": None}])
    assert (await registry.get_table("ash")).wanted == Wanted("open", "", 0)
    with pytest.raises(DBAPIError), engine.begin() as conn:
        conn.execute(text("UPDATE tables SET mode = NULL"))
    engine.dispose()


async def test_a_newer_wish_replaces_an_older_one_and_never_the_other_way_round(database) -> None:
    registry = Registry(await database("table"))
    for table_id in ("oak", "elm"):
        assert (await registry.create_table(new_table(table_id), 1)).wanted == Wanted("open", "", 0)
    pause, resume = Wanted("paused", "fire drill", 1), Wanted("open", "", 2)
    assert await registry.want("oak", pause, 0)
    assert await registry.want("oak", pause, 0), "the same again is no change"
    assert not await registry.want("oak", Wanted("closing", "another process", 1), 0)
    assert (await registry.get_table("oak")).wanted == pause
    assert await registry.want("oak", resume, 1)
    assert not await registry.want("oak", pause, 0)
    assert not await registry.want("oak", Wanted("closing", "late", 2), 1)
    assert [each.wanted for each in await registry.list_tables("", 10)] == [Wanted("open", "", 0), resume]
