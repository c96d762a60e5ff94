"""Many commands on one connection: each caller gets its own answer, whatever happens to the others or to the server."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from services.runtime.redis import connect
from services.table import lane as lane_module
from services.table.lane import Lane
from tests.servers import RedisProcess


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[RedisProcess]:
    """A Redis of this test's own."""
    server = RedisProcess(tmp_path / "redis").start()
    yield server
    server.stop()


@pytest_asyncio.fixture
async def lane(server: RedisProcess) -> AsyncIterator[Lane]:
    client = connect(server.url)
    lane = Lane(client)
    yield lane
    lane.close()
    await client.aclose()


async def test_callers_at_once_get_each_their_own_answer(lane) -> None:
    answers = await asyncio.gather(*(lane.call("ECHO", f"word {number}") for number in range(500)))
    assert answers == [f"word {number}".encode() for number in range(500)]
    large = b"x" * 3_000_000
    assert await lane.calls(("ECHO", large), ("ECHO", b""), ("INCRBY", "n", 7)) == [large, b"", 7]
    clients = (await lane.call("CLIENT", "LIST")).decode().splitlines()
    assert len(clients) == 1


async def test_who_was_cancelled_takes_nobody_elses_answer(lane) -> None:
    tasks = [asyncio.create_task(lane.call("ECHO", str(number))) for number in range(20)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert results[1::2] == [str(number).encode() for number in range(1, 20, 2)]
    assert await lane.call("ECHO", "after") == b"after"


async def test_a_refused_command_is_told_to_its_caller_alone(lane) -> None:
    refused, answered = await lane.calls(("INCRBY", "n", "much"), ("ECHO", "fine"))
    assert isinstance(refused, ResponseError)
    assert answered == b"fine"
    with pytest.raises(ResponseError):
        await lane.call("NONSENSE")


async def test_a_command_whose_connection_is_lost_is_sent_again(lane, server) -> None:
    for _ in range(3):
        number = await lane.call("CLIENT", "ID")
        killed = lane.call("CLIENT", "KILL", "ID", number, "SKIPME", "no")
        echoed = [lane.call("ECHO", "again") for _ in range(5)]
        assert (await asyncio.gather(*echoed, killed, return_exceptions=True))[:5] == [b"again"] * 5
        assert await lane.call("CLIENT", "ID") != number


async def test_a_server_that_is_gone_is_said_to_be_and_found_again(lane, server) -> None:
    await lane.call("PING")
    server.kill()
    with pytest.raises(RedisConnectionError):
        await lane.call("PING")
    server.start()
    assert await lane.call("PING") == b"PONG"


async def test_a_silent_server_keeps_nobody_waiting_for_ever(lane, server, monkeypatch) -> None:
    await lane.call("PING")
    monkeypatch.setattr(lane_module, "COMMAND_TIMEOUT_SECONDS", 0.2)
    monkeypatch.setattr(lane_module, "CONNECT_TIMEOUT_SECONDS", 0.2)
    server.process.send_signal(signal.SIGSTOP)
    try:
        results = await asyncio.gather(*(lane.call("PING") for _ in range(5)), return_exceptions=True)
    finally:
        server.process.send_signal(signal.SIGCONT)
    assert {type(each) for each in results} <= {RedisTimeoutError, RedisConnectionError}
    monkeypatch.undo()
    assert await lane.call("PING") == b"PONG"


async def test_what_waits_is_bounded(lane, server, monkeypatch) -> None:
    await lane.call("PING")
    monkeypatch.setattr(lane_module, "WAITING_MAX", 10)
    monkeypatch.setattr(lane_module, "RETRIES_MAX", 0)
    results = await asyncio.gather(*(lane.call("PING") for _ in range(30)), return_exceptions=True)
    assert results[:10] == [b"PONG"] * 10
    assert {type(each) for each in results[10:]} == {RedisConnectionError}
    assert await lane.call("PING") == b"PONG"


async def test_it_logs_in_as_the_pool_would(server) -> None:
    admin = connect(server.url)
    await admin.execute_command("ACL", "SETUSER", "table", "on", ">secret", "~*", "&*", "+@all")
    await admin.aclose()
    client = connect(server.url.replace("redis://", "redis://table:secret@").replace("/0", "/3"))
    lane = Lane(client)
    try:
        assert await lane.call("ACL", "WHOAMI") == b"table"
        assert b"db=3" in await lane.call("CLIENT", "INFO")
    finally:
        lane.close()
        await client.aclose()
    stranger = connect(server.url.replace("redis://", "redis://table:guessed@"))
    lane = Lane(stranger)
    with pytest.raises(ResponseError):
        await lane.call("PING")
    await stranger.aclose()


async def test_a_silent_server_is_asked_for_one_connection_by_all_who_wait(lane, server, monkeypatch) -> None:
    monkeypatch.setattr(lane_module, "COMMAND_TIMEOUT_SECONDS", 0.5)
    monkeypatch.setattr(lane_module, "CONNECT_TIMEOUT_SECONDS", 0.2)
    attempts = 0
    connect_once = lane._connect

    async def counted() -> object:
        nonlocal attempts
        attempts += 1
        return await connect_once()

    monkeypatch.setattr(lane, "_connect", counted)
    server.process.send_signal(signal.SIGSTOP)
    try:
        outcomes = await asyncio.gather(*(lane.call("PING") for _ in range(50)), return_exceptions=True)
    finally:
        server.process.send_signal(signal.SIGCONT)
    assert {type(each) for each in outcomes} <= {RedisConnectionError, RedisTimeoutError}
    assert 1 <= attempts <= lane_module.RETRIES_MAX + 1
    monkeypatch.setattr(lane_module, "CONNECT_TIMEOUT_SECONDS", 5.0)
    monkeypatch.setattr(lane_module, "COMMAND_TIMEOUT_SECONDS", 5.0)
    assert await lane.call("PING") == b"PONG"


async def test_who_waits_for_a_connection_is_told_that_the_lane_was_closed(lane, monkeypatch) -> None:
    begun = asyncio.Event()

    async def never() -> None:
        begun.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(lane, "_connect", never)
    monkeypatch.setattr(lane_module, "RETRIES_MAX", 0)
    waiting = [asyncio.create_task(lane.call("PING")) for _ in range(3)]
    await begun.wait()
    lane.close()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(each) for each in results] == [RedisConnectionError] * 3
