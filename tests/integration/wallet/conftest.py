"""A ledger on each database, in process, and a table with seated players on it.

One database of each kind serves the whole session and is emptied before each test: making, migrating and first using
one takes longer than most tests.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from sqlalchemy import URL, Connection, text

from services.runtime.clock import SystemClock
from services.runtime.database import Database
from services.wallet.auditing import Auditor
from services.wallet.ledger import Ledger
from tests import servers
from tests.integration.wallet.house import House

TABLES = (
    "batches", "transfers", "accounts", "players", "player_changes", "table_ledgers", "hands", "sittings",
    "seals", "reservations", "audited_balances", "player_limits"
)  # fmt: skip


@pytest.fixture(scope="session")
def sqlite_ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Database]]:
    """URL and connection of this session's SQLite file."""
    yield from _migrated(f"sqlite:///{tmp_path_factory.mktemp('ledger') / 'ledger.sqlite'}")


@pytest.fixture(scope="session")
def postgres_ledger(postgres_server_url: URL) -> Iterator[tuple[str, Database]]:
    """URL and connection of this session's PostgreSQL database."""
    with servers.postgres_database(postgres_server_url) as url:
        yield from _migrated(url)


@pytest_asyncio.fixture(params=["sqlite", "postgres"])
async def ledger_database(request: pytest.FixtureRequest) -> tuple[str, Database]:
    """An empty ledger's database of each kind: its URL and a connection."""
    url, database = request.getfixturevalue(f"{request.param}_ledger")
    await database.write(empty)
    return url, database


@pytest_asyncio.fixture
async def open_ledger(ledger_database) -> AsyncIterator[Callable[..., Awaitable[Ledger]]]:
    """`await open_ledger()`: one replica with a connection of its own; called again, another one."""
    async with AsyncExitStack() as stack:

        async def open_one(**options) -> Ledger:
            database = Database(ledger_database[0], isolation="READ COMMITTED", pool_size=4)
            stack.push_async_callback(database.close)
            ledger = Ledger(database, SystemClock(), **options)
            stack.push_async_callback(ledger.close)
            return ledger

        yield open_one


@pytest_asyncio.fixture
async def ledger(ledger_database) -> AsyncIterator[Ledger]:
    """One replica."""
    ledger = Ledger(ledger_database[1], SystemClock())
    yield ledger
    await ledger.close()


@pytest.fixture
def auditor(ledger_database) -> Auditor:
    """The auditor of the test's database."""
    return Auditor(ledger_database[1], SystemClock())


@pytest_asyncio.fixture
async def house(ledger: Ledger) -> House:
    """Players ann, bob and cid with 1000 EUR each, seated at table t1 on seats 1, 2 and 3 with 400 each."""
    house = House(ledger)
    await house.open("ann", "bob", "cid")
    return house


def _migrated(url: str) -> Iterator[tuple[str, Database]]:
    database = Database(url, isolation="READ COMMITTED", pool_size=4)
    database.migrate_now("wallet")
    yield url, database
    database.close_now()


def empty(conn: Connection) -> None:
    """Takes everything out of a ledger, the append-only too."""
    if conn.dialect.name == "postgresql":
        # A replica's session runs no triggers, and so may empty what is append-only.
        conn.execute(text("SET LOCAL session_replication_role = replica"))
        conn.execute(text(f"TRUNCATE {', '.join(TABLES)}"))
    else:
        triggers = conn.execute(text("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")).all()
        for name, _ in triggers:
            conn.execute(text(f"DROP TRIGGER {name}"))
        for table in TABLES:
            conn.execute(text(f"DELETE FROM {table}"))  # noqa: S608 - names from above
        for _, sql in triggers:
            conn.execute(text(sql))
    conn.execute(text("UPDATE ledger_state SET closed_reason = '', audited_batch = 0, audited_ms = 0"))
