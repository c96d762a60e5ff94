"""Retention, files of days and audits of rows."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio
import sqlalchemy as sa

from services.history import store
from services.history.reading import HandReader
from services.history.record import encode
from services.history.schema import HANDS
from services.history.settings import HistorySettings
from services.history.summary import summarise
from services.history.upkeep import MS_OF_DAY, Upkeep
from services.history.viewing import NoKeys
from services.runtime.database import Database
from tests.unit.history.played import play

DAY = datetime(2024, 5, 1, tzinfo=UTC)
DAY_MS = int(DAY.timestamp() * 1000)


class FixedClock:
    """The third of May 2024, noon."""

    def now_ms(self) -> int:
        return DAY_MS + 2 * MS_OF_DAY + MS_OF_DAY // 2


@pytest_asyncio.fixture
async def upkeep(sqlite_url: str, tmp_path: Path):
    opened = Database(sqlite_url)
    await opened.migrate("history")
    for number, day in enumerate((0, 0, 1, 1, 1, 2), 1):
        played = play(random.Random(number), hand=number, start_ms=DAY_MS + day * MS_OF_DAY + number * 1000)
        await opened.write(store.insert_hand, summarise(played.key, played.record), encode(played.record), 1)
    settings = HistorySettings(history_retention_days=1, history_exports_folder=tmp_path / "exports")
    clock = FixedClock()
    yield Upkeep(opened, HandReader(opened, NoKeys(), clock), clock, settings), opened, tmp_path / "exports"
    await opened.close()


async def test_hands_past_their_retention_are_deleted(upkeep) -> None:
    made, opened, _ = upkeep
    assert await made.delete_old_hands() == 5
    assert await made.delete_old_hands() == 0
    assert await opened.read(store.count_hands) == 1


async def test_a_days_file_holds_its_hands_without_any_hidden_card_and_is_written_once(upkeep) -> None:
    made, _, folder = upkeep
    assert await made.export_day() == "2024-05-02.jsonl"
    assert await made.export_day("2024-05-01") == "2024-05-01.jsonl"
    hands = [json.loads(line) for line in (folder / "2024-05-02.jsonl").read_text().splitlines()]
    assert [hand["hand"] for hand in hands] == [3, 4, 5]
    assert not any(seat["dealt"] for hand in hands for seat in hand["seats"])
    (folder / "2024-05-02.jsonl").write_text("kept")
    await made.export_day()
    assert (folder / "2024-05-02.jsonl").read_text() == "kept"
    assert sorted(path.name for path in folder.iterdir()) == ["2024-05-01.jsonl", "2024-05-02.jsonl"]
    for wrong in ("yesterday", "2024-5-1", "../../etc"):
        with pytest.raises(ValueError, match="no day"):
            await made.export_day(wrong)


async def test_an_audit_finds_a_row_that_is_not_its_record(upkeep) -> None:
    made, opened, _ = upkeep
    assert await made.audit_rows() == 0
    await opened.write(lambda conn: conn.execute(sa.update(HANDS).where(HANDS.c.hand == 3).values(pot_minor=1)))
    assert await made.audit_rows() == 1
