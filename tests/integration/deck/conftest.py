"""A deck service on each database, in process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest_asyncio

from services.deck.decks import Decks
from services.runtime.clock import SystemClock
from services.runtime.database import Database
from services.runtime.sealing import Sealer
from tests.conftest import SEALING_KEY

# A whole house is the same one that the table's tests play in.
from tests.integration.table.conftest import house, migrated_folder, open_house, sqlite_urls, wires  # noqa: F401


@pytest_asyncio.fixture
async def open_decks(database: Callable[..., Awaitable[Database]]) -> AsyncIterator[Callable[..., Awaitable[Decks]]]:
    """`await open_decks()`: one replica on the test's database; called again, another one."""
    async with AsyncExitStack() as stack:

        async def open_one(*, clock=None, sealer: Sealer | None = None, isolation="READ COMMITTED", **options) -> Decks:
            db = await database("deck", isolation=isolation)
            decks = Decks(db, clock or SystemClock(), sealer or Sealer([("test", SEALING_KEY)]), **options)
            stack.push_async_callback(decks.close)
            return decks

        yield open_one


@pytest_asyncio.fixture
async def decks(open_decks: Callable[..., Awaitable[Decks]]) -> Decks:
    """One replica."""
    return await open_decks()
