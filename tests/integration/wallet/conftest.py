"""A ledger on each database, in process, and a table with seated players on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest_asyncio

from services.runtime.clock import SystemClock
from services.runtime.database import Database
from services.wallet.auditing import Auditor
from services.wallet.ledger import Ledger
from tests.integration.wallet.house import House


@pytest_asyncio.fixture
async def open_ledger(database: Callable[..., Awaitable[Database]]) -> AsyncIterator[Callable[..., Awaitable[Ledger]]]:
    """`await open_ledger()`: one replica on the test's database; called again, another one."""
    async with AsyncExitStack() as stack:

        async def open_one(*, isolation="READ COMMITTED", **options) -> Ledger:
            ledger = Ledger(await database("wallet", isolation=isolation), SystemClock(), **options)
            stack.push_async_callback(ledger.close)
            return ledger

        yield open_one


@pytest_asyncio.fixture
async def ledger(open_ledger: Callable[..., Awaitable[Ledger]]) -> Ledger:
    """One replica."""
    return await open_ledger()


@pytest_asyncio.fixture
async def auditor(database: Callable[..., Awaitable[Database]]) -> Auditor:
    """The auditor of the test's database."""
    return Auditor(await database("wallet"), SystemClock())


@pytest_asyncio.fixture
async def house(ledger: Ledger) -> House:
    """Players ann, bob and cid with 1000 EUR each, seated at table t1 on seats 1, 2 and 3 with 400 each."""
    house = House(ledger)
    await house.open("ann", "bob", "cid")
    return house
