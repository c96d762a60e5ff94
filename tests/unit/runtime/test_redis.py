"""Connections to Redis are bounded in number and time, and come back after the server did."""

import asyncio
import contextlib
import time

import pytest
import redis.exceptions

from services.runtime.redis import connect
from tests.servers import RedisProcess


async def test_answers_are_bytes(redis_url):
    client = connect(redis_url)
    await client.set("name", "value")
    assert await client.get("name") == b"value"
    await client.aclose()


async def test_the_pool_is_bounded(redis_url):
    client = connect(f"{redis_url}?client_name=bounded", pool_size=4)
    await asyncio.gather(*[client.incr("calls") for _ in range(50)])
    assert await client.get("calls") == b"50"
    assert len([each for each in await client.client_list() if each["name"] == "bounded"]) <= 4
    await client.aclose()


async def test_a_server_that_comes_back_is_found_again(tmp_path):
    server = RedisProcess(tmp_path, append_only=True).start()
    client = connect(server.url)
    await client.set("kept", "1")
    server.kill()
    with pytest.raises((redis.exceptions.ConnectionError, redis.exceptions.TimeoutError)):
        await client.get("kept")
    server.start()
    assert await client.get("kept") == b"1"
    await client.aclose()
    server.stop()


async def test_nobody_waits_for_ever():
    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(mute, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        client = connect(f"redis://127.0.0.1:{port}/0", command_timeout=0.1, retries=0)
        started = time.monotonic()
        with pytest.raises(redis.exceptions.TimeoutError):
            await client.get("x")
        assert time.monotonic() - started < 3
        with contextlib.suppress(redis.exceptions.RedisError):
            await client.aclose()
