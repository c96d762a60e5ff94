"""Transactions, migrations and their promises, on SQLite and PostgreSQL alike."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError

from services.runtime.database import Database
from services.runtime.migrations import MigrationError

FIRST = '''"""First."""
import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade():
    op.create_table("counter", sa.Column("name", sa.String(20), primary_key=True), sa.Column("value", sa.BigInteger))
    op.execute("INSERT INTO counter VALUES ('a', 0)")
'''
SECOND = '''"""Second."""
import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade():
    op.create_table("second", sa.Column("id", sa.Integer, primary_key=True))
'''
BROKEN = SECOND.replace('"second", ', '"third", ').replace(
    "    op.create_table",
    '    op.execute("INSERT INTO counter VALUES (\'b\', 1)")\n    op.execute("nonsense")\n    op.create_table',
)
ENV = (Path(__file__).parents[3] / "deploy" / "migrations" / "env.py").read_text()


def add(conn: Connection, amount: int) -> int:
    value = conn.execute(text("SELECT value FROM counter WHERE name = 'a'")).scalar_one()
    conn.execute(text("UPDATE counter SET value = :value WHERE name = 'a'"), {"value": value + amount})
    return value + amount


def current(conn: Connection) -> int:
    return conn.execute(text("SELECT value FROM counter WHERE name = 'a'")).scalar_one()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "revisions" / "counting").mkdir(parents=True)
    (tmp_path / "revisions" / "env.py").write_text(ENV)
    (tmp_path / "revisions" / "counting" / "0001_first.py").write_text(FIRST)
    return tmp_path / "revisions"


async def test_concurrent_writes_are_as_if_one_after_the_other(database, folder):
    db = await database("counting", migrations_folder=folder)
    results = await asyncio.gather(*[db.write(add, 1) for _ in range(60)])
    assert sorted(results) == list(range(1, 61))
    assert await db.read(current) == 60


async def test_a_write_that_raises_leaves_nothing_and_its_neighbours_alone(database, folder):
    db = await database("counting", migrations_folder=folder)

    def fail(conn: Connection) -> None:
        add(conn, 1000)
        raise LookupError("no")

    outcomes = await asyncio.gather(
        *[db.write(fail if n % 3 == 0 else add, *([] if n % 3 == 0 else [1])) for n in range(12)],
        return_exceptions=True,
    )
    assert [type(each) for each in outcomes[::3]] == [LookupError] * 4
    assert await db.read(current) == 8


async def test_a_constraint_broken_in_a_shared_commit_fails_that_write_only(database, folder):
    db = await database("counting", migrations_folder=folder)

    def insert(conn: Connection, name: str) -> None:
        conn.execute(text("INSERT INTO counter VALUES (:name, 1)"), {"name": name})

    outcomes = await asyncio.gather(*[db.write(insert, name) for name in "bbcc"], return_exceptions=True)
    assert sum(isinstance(each, IntegrityError) for each in outcomes) == 2
    assert await db.read(lambda conn: conn.execute(text("SELECT count(*) FROM counter")).scalar_one()) == 3


async def test_reads_cannot_write(database, folder):
    db = await database("counting", migrations_folder=folder)
    with pytest.raises(Exception, match=r"readonly|read-only"):
        await db.read(add, 1)
    assert await db.read(current) == 0


async def test_a_cancelled_caller_does_not_stop_the_writer(database, folder):
    db = await database("counting", migrations_folder=folder)
    tasks = [asyncio.create_task(db.write(add, 1)) for _ in range(20)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    value = await db.read(current)
    assert 10 <= value <= 20
    assert await db.write(add, 1) == value + 1 or not value


async def test_another_process_holding_the_file_is_waited_for(sqlite_url, folder):
    db = Database(sqlite_url, migrations_folder=folder)
    await db.migrate("counting")
    other = Database(sqlite_url, migrations_folder=folder)
    results = await asyncio.gather(*[each.write(add, 1) for each in (db, other) for _ in range(30)])
    assert sorted(results) == list(range(1, 61))
    await db.close()
    await other.close()


async def test_sqlite_is_durable_and_guarded(sqlite_url):
    db = Database(sqlite_url)
    pragmas = await db.write(
        lambda conn: [
            conn.execute(text(f"PRAGMA {name}")).scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        ]
    )
    assert pragmas == ["wal", 2, 1]
    await db.close()


@pytest.mark.parametrize("url", ["sqlite://", "file"])
async def test_inline_runs_on_the_calling_thread(url, sqlite_url, folder):
    db = Database(sqlite_url if url == "file" else url, inline=True, migrations_folder=folder)
    await db.migrate("counting")
    here = threading.get_ident()
    assert await db.write(lambda _: threading.get_ident()) == here
    assert await db.read(lambda _: threading.get_ident()) == here
    assert await db.write(add, 5) == 5
    assert await db.read(current) == 5
    await db.close()


async def test_in_memory_works_without_inline(folder):
    db = Database("sqlite://", migrations_folder=folder)
    await db.migrate("counting")
    assert await db.write(add, 5) == 5
    assert await db.read(current) == 5
    await db.close()


async def test_migrations_run_forward_and_again_change_nothing(database, folder):
    db = await database("counting", migrations_folder=folder)
    await db.write(add, 7)
    (folder / "counting" / "0002_second.py").write_text(SECOND)
    await db.migrate("counting")
    await db.migrate("counting")
    assert await db.read(current) == 7
    assert await db.read(lambda conn: conn.execute(text("SELECT count(*) FROM second")).scalar_one()) == 0


async def test_a_broken_migration_changes_nothing(database, folder):
    db = await database("counting", migrations_folder=folder)
    (folder / "counting" / "0002_broken.py").write_text(BROKEN)
    with pytest.raises(Exception, match="nonsense"):
        await db.migrate("counting")
    assert await db.read(lambda conn: conn.execute(text("SELECT count(*) FROM counter")).scalar_one()) == 1


async def test_a_database_from_the_future_is_refused(database, folder):
    db = await database("counting", migrations_folder=folder)
    await db.write(lambda conn: conn.execute(text("UPDATE alembic_version_counting SET version_num = '9999'")) and None)
    with pytest.raises(MigrationError, match="9999"):
        await db.migrate("counting")


async def test_services_share_a_database_with_versions_of_their_own(database, folder):
    (folder / "other").mkdir()
    (folder / "other" / "0001_first.py").write_text(
        SECOND.replace('"0002"', '"0001"').replace('= "0001"\n\n', "= None\n\n")
    )
    db = await database("counting", migrations_folder=folder)
    await db.migrate("other")
    assert await db.read(lambda conn: conn.execute(text("SELECT version_num FROM alembic_version_other")).scalar_one())


async def test_concurrent_starts_migrate_once(database_url, folder):
    bases = [Database(database_url, migrations_folder=folder) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda db: db.migrate_now("counting"), bases))
    assert await bases[0].read(current) == 0
    for db in bases:
        await db.close()


async def test_the_driver_of_a_plain_postgresql_url_is_psycopg_3(postgres_url):
    db = Database(postgres_url.replace("+psycopg", ""))
    assert await db.read(lambda conn: conn.dialect.driver) == "psycopg"
    await db.close()


async def test_what_hangs_in_a_transaction_on_postgresql_loses_it(postgres_url):
    db = Database(postgres_url)
    shown = text("SHOW idle_in_transaction_session_timeout")
    assert await db.write(lambda conn: conn.scalar(shown)) == "30s"
    assert await db.read(lambda conn: conn.scalar(shown)) == "30s"
    await db.close()


async def test_what_is_no_conflict_is_raised_at_once(database):
    db = await database()
    with pytest.raises(Exception, match="missing") as caught:
        await db.write(lambda conn: conn.execute(text("SELECT * FROM missing")) and None)
    assert caught.type.__name__ in {"OperationalError", "ProgrammingError"}
