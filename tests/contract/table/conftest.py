"""Both stores of the table service; each test runs on both, since both promise the same."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from services.runtime.clock import SystemClock
from services.runtime.redis import connect
from services.table.memory_store import MemoryStore
from services.table.redis_store import RedisStore
from services.table.store import TableStore


@pytest_asyncio.fixture(params=["memory", "redis"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[TableStore]:
    """An empty store of each kind."""
    if request.param == "memory":
        yield MemoryStore(SystemClock())
        return
    client = connect(request.getfixturevalue("redis_server_url"), pool_size=16)
    await client.flushdb()
    store = RedisStore(client)
    yield store
    store.close()
    await client.aclose()
