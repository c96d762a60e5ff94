"""What is published reaches every subscriber of its table; a lost connection is told or mended, not kept silent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio
from redis.asyncio import Redis

from services.runtime.redis import connect
from services.table.bus import Batch
from services.table.redis_store import RedisStore
from services.table.store import StoreUnavailableError, TableStore
from tests.contract.table.commits import TABLE, Line
from tests.servers import RedisProcess

WAIT_SECONDS = 20


async def following(batches: AsyncIterator[Batch | None]) -> Batch:
    """The next batch, however long nothing comes."""
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            batch = await anext(batches)
            if batch is not None:
                return batch


async def test_a_subscriber_gets_every_commit_as_it_was_written(store) -> None:
    async with store.subscribe(TABLE) as batches:
        line = Line(store)
        committed = await line.write(2)
        batch = await following(batches)
        assert (batch.epoch, batch.first, batch.last, batch.at_ms) == (1, 1, 2, committed.now_ms)
        assert batch == (await store.read_log(TABLE, 1, 0, 9))[0]
        await line.write(0)
        await line.write(1)
        assert (await following(batches)).first == 3, "a commit without events publishes nothing"


async def test_nothing_is_told_as_nothing(store) -> None:
    async with store.subscribe(TABLE) as batches, asyncio.timeout(WAIT_SECONDS):
        assert await anext(batches) is None


async def test_a_refused_commit_is_not_published(store) -> None:
    line = Line(store)
    await line.write(1)
    stale = Line(store, at=line.at, sequence=1)
    async with store.subscribe(TABLE) as batches:
        await line.write(1)
        assert await stale.write(7) is None
        await line.write(1)
        assert [(await following(batches)).last for _ in range(2)] == [2, 3]


async def test_many_subscribers_each_get_their_own_table(store) -> None:
    tables = [f"t-{number}" for number in range(20)]
    async with AsyncExitStack() as stack:
        streams = {
            table: [await stack.enter_async_context(store.subscribe(table)) for _ in range(2)] for table in tables
        }
        for size, table in enumerate(tables, 1):
            await Line(store, table).write(size)
        for size, table in enumerate(tables, 1):
            for stream in streams[table]:
                assert (await following(stream)).last == size


async def test_one_subscriber_may_go_while_another_of_the_same_table_stays(store) -> None:
    line = Line(store)
    async with store.subscribe(TABLE) as staying:
        async with store.subscribe(TABLE):
            await line.write(1)
        await line.write(1)
        assert [(await following(staying)).last for _ in range(2)] == [1, 2]
    async with store.subscribe(TABLE) as again:
        await line.write(1)
        assert (await following(again)).last == 3


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[RedisProcess]:
    """A Redis of this test's own, to be killed."""
    server = RedisProcess(tmp_path / "redis", append_only=True).start()
    yield server
    server.stop()


@pytest_asyncio.fixture
async def client(server: RedisProcess) -> AsyncIterator[Redis]:
    client = connect(server.url, pool_size=8)
    yield client
    await client.aclose()


@pytest_asyncio.fixture
async def redis_store(client: Redis) -> AsyncIterator[RedisStore]:
    store = RedisStore(client)
    yield store
    store.close()


async def _subscribed(store: TableStore, table: str, heard: asyncio.Queue[Batch]) -> None:
    """Listens for good, as a table process does: whenever the store says that it was lost, again."""
    while True:
        try:
            async with store.subscribe(table) as batches:
                async for batch in batches:
                    if batch is not None:
                        heard.put_nowait(batch)
        except StoreUnavailableError:
            await asyncio.sleep(0.01)


async def _until_heard(line: Line, heard: asyncio.Queue[Batch]) -> None:
    """Commits until one of the commits is heard: pub/sub may lose those made while nobody was subscribed."""
    while not heard.empty():
        heard.get_nowait()
    async with asyncio.timeout(WAIT_SECONDS):
        while heard.empty():
            try:
                await line.write(1)
            except StoreUnavailableError:
                stored = None
                while stored is None:
                    try:
                        stored = await line.store.load(line.table)
                    except StoreUnavailableError:
                        await asyncio.sleep(0.05)
                line.at, line.sequence = stored.at, stored.sequence
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("fault", ["client kill", "restart"])
async def test_all_tables_are_heard_again_after_the_connection_was_lost(redis_store, client, server, fault) -> None:
    tables = ["oak", "elm", "ash"]
    heard: dict[str, asyncio.Queue[Batch]] = {table: asyncio.Queue() for table in tables}
    lines = {table: Line(redis_store, table) for table in tables}
    listeners = [asyncio.create_task(_subscribed(redis_store, table, heard[table])) for table in tables]
    try:
        for table in tables:
            await _until_heard(lines[table], heard[table])
        for _ in range(3):
            if fault == "client kill":
                assert await client.execute_command("CLIENT", "KILL", "TYPE", "pubsub") >= 1
            else:
                server.kill()
                server.start()
            for table in tables:
                await _until_heard(lines[table], heard[table])
        assert not any(listener.done() for listener in listeners)
        ours = [each for each in await client.client_list(_type="pubsub") if each["sub"] != "0"]
        assert [each["sub"] for each in ours] == ["3"], "all tables over one connection"
    finally:
        for listener in listeners:
            listener.cancel()
        await asyncio.gather(*listeners, return_exceptions=True)


async def test_every_call_says_that_the_store_is_away(redis_store, server) -> None:
    line = Line(redis_store)
    await line.write(1)
    server.kill()
    for call in (
        redis_store.load(TABLE),
        redis_store.commit(TABLE, line.next(1, deadline=5)),
        redis_store.read_log(TABLE, 1, 0, 9),
        redis_store.claim_due(9, 9),
        redis_store.list_unwritten(9, 0),
        redis_store.beat(9),
        redis_store.now_ms(),
    ):
        with pytest.raises(StoreUnavailableError):
            await call
    server.start()
    assert (await redis_store.load(TABLE)).sequence == 1


async def test_a_read_only_server_is_a_store_that_is_away(redis_store, client) -> None:
    await client.execute_command("REPLICAOF", "127.0.0.1", "1")
    with pytest.raises(StoreUnavailableError):
        await Line(redis_store).write(1)


async def test_a_server_that_has_forgotten_the_scripts_gets_them_again(redis_store, client) -> None:
    line = Line(redis_store)
    for round_number in (1, 2):
        await client.execute_command("SCRIPT", "FLUSH")
        assert await line.write(1, deadline=0) is not None
        await client.execute_command("SCRIPT", "FLUSH")
        assert [due.table_id for due in await redis_store.claim_due(9, 60_000)] == [TABLE], round_number
