"""The log of a written SQLite file: folded in beside the writer, and bounded while nobody pauses."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import Connection, make_url, text

from services.runtime import sqlite
from services.runtime.database import Database

PAGE_BYTES = 2048
ROW_BYTES = 1500
WAIT_SECONDS_MAX = 20


def fill(conn: Connection, number: int) -> None:
    conn.execute(text("INSERT INTO filled VALUES (:number, randomblob(:size))"), {"number": number, "size": ROW_BYTES})


def path_of(url: str, ending: str = "") -> Path:
    return Path(f"{make_url(url).database}{ending}")


async def opened(url: str) -> Database:
    database = Database(url)
    await database.write(lambda conn: conn.execute(text("CREATE TABLE filled (number INTEGER PRIMARY KEY, row BLOB)")))
    return database


def size(path: Path) -> int:
    return path.stat().st_size


async def test_the_log_is_folded_in_without_the_writer_after_a_while(sqlite_url, monkeypatch):
    monkeypatch.setattr(sqlite, "FOLDING_SECONDS", 0.01)
    database = await opened(sqlite_url)
    await asyncio.gather(*(database.write(fill, number) for number in range(40)))
    # Nothing more is written, and each of the forty rows has a page of its own.
    for _ in range(WAIT_SECONDS_MAX * 100):
        if size(path_of(sqlite_url)) >= 40 * PAGE_BYTES:
            break
        await asyncio.sleep(0.01)
    else:
        raise AssertionError("nothing was folded in")
    await database.close()


@pytest.mark.parametrize("by_the_thread", [True, False])
async def test_the_log_begins_anew_while_nobody_pauses(sqlite_url, monkeypatch, by_the_thread):
    """Its file stays at a fraction of what went through it; where the thread fails, the writer sees to it alone."""
    monkeypatch.setattr(sqlite, "FOLDING_SECONDS", 0.01 if by_the_thread else 3600.0)
    monkeypatch.setattr(sqlite, "LOG_BYTES_FOLDED", 20 * PAGE_BYTES)
    monkeypatch.setattr(sqlite, "LOG_BYTES_MAX", (100_000 if by_the_thread else 100) * PAGE_BYTES)
    database = await opened(sqlite_url)
    log = path_of(sqlite_url, "-wal")
    written, number = 0, 0
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        while size(log) * 3 > written or number < 1_000:
            await database.write(fill, number)
            number += 1
            # Each row takes a page, and with it at least the one above it.
            written = number * 2 * PAGE_BYTES
    assert await database.read(lambda conn: conn.scalar(text("SELECT count(*) FROM filled"))) == number
    await database.close()


async def test_the_log_shrinks_after_a_reader_kept_it_from_beginning_anew(sqlite_url, monkeypatch):
    monkeypatch.setattr(sqlite, "FOLDING_SECONDS", 0.01)
    monkeypatch.setattr(sqlite, "LOG_BYTES_FOLDED", 20 * PAGE_BYTES)
    monkeypatch.setattr(sqlite, "LOG_BYTES_MAX", 100 * PAGE_BYTES)
    database = await opened(sqlite_url)
    reader = sqlite3.connect(path_of(sqlite_url), isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM filled").fetchone()
    for number in range(400):
        await database.write(fill, number)
    log, number = path_of(sqlite_url, "-wal"), 400
    assert size(log) > 400 * PAGE_BYTES
    reader.execute("COMMIT")
    reader.close()
    async with asyncio.timeout(WAIT_SECONDS_MAX):
        while size(log) > 200 * PAGE_BYTES:
            await database.write(fill, number)
            number += 1
    await database.close()


async def test_a_file_with_pages_of_another_size_keeps_them_and_the_logs_bound(sqlite_url, monkeypatch):
    """As those that earlier versions made."""
    monkeypatch.setattr(sqlite, "FOLDING_SECONDS", 3600.0)
    monkeypatch.setattr(sqlite, "LOG_BYTES_MAX", 100 * 4096)
    with sqlite3.connect(path_of(sqlite_url)) as older:
        older.execute("PRAGMA page_size = 4096")
        older.execute("CREATE TABLE older (n INTEGER)")
    database = await opened(sqlite_url)
    assert await database.read(lambda conn: conn.scalar(text("PRAGMA page_size"))) == 4096
    for number in range(400):
        await database.write(fill, number)
    # Each write changes a page or more; what it is folded in with may stand beside it once.
    assert size(path_of(sqlite_url, "-wal")) <= 2 * 100 * 4096
    await database.close()


async def test_a_closed_database_is_whole_in_its_file(sqlite_url):
    database = await opened(sqlite_url)
    await asyncio.gather(*(database.write(fill, number) for number in range(10)))
    await database.close()
    files = [each.name for each in await asyncio.to_thread(lambda: list(path_of(sqlite_url).parent.iterdir()))]
    assert not [name for name in files if name.endswith("-wal")]
    with sqlite3.connect(path_of(sqlite_url)) as plain:
        assert plain.execute("SELECT count(*) FROM filled").fetchone() == (10,)


async def test_a_log_that_cannot_be_folded_in_does_not_stop_the_writer(sqlite_url, monkeypatch):
    """A reader that stays on an old snapshot keeps the log from beginning anew; writes go on, and so it does later."""
    monkeypatch.setattr(sqlite, "FOLDING_SECONDS", 0.01)
    monkeypatch.setattr(sqlite, "LOG_BYTES_FOLDED", 20 * PAGE_BYTES)
    database = await opened(sqlite_url)
    reader = sqlite3.connect(path_of(sqlite_url), isolation_level=None)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM filled").fetchone() == (0,)
    for number in range(200):
        await database.write(fill, number)
    assert reader.execute("SELECT count(*) FROM filled").fetchone() == (0,)
    reader.execute("COMMIT")
    reader.close()
    assert await database.read(lambda conn: conn.scalar(text("SELECT count(*) FROM filled"))) == 200
    await database.close()
