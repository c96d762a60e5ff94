"""Waiting for Redis: what the client does to a cancellation on the way."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError

from services.table.store import StoreUnavailableError
from services.table.subscriptions import reached


async def swallowing(started: asyncio.Event) -> str:
    """What `asyncio.wait_for` does before Python 3.12 when the answer and the cancellation come together."""
    started.set()
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        return "the answer"
    return "too late"


async def test_a_cancellation_that_the_client_loses_ends_the_task_all_the_same() -> None:
    started = asyncio.Event()
    task = asyncio.create_task(reached(swallowing(started)))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancellation_that_the_client_answers_with_an_error_ends_the_task_too() -> None:
    async def failing(started: asyncio.Event) -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise RedisConnectionError("the connection broke in that moment") from None

    started = asyncio.Event()
    task = asyncio.create_task(reached(failing(started)))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_time_limit_that_the_client_loses_is_still_over() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await reached(swallowing(asyncio.Event()))


async def test_an_answer_to_a_task_that_was_spared_earlier_is_kept() -> None:
    async def spared() -> str:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        return await reached(asyncio.sleep(0, "the answer"))

    task = asyncio.create_task(spared())
    await asyncio.sleep(0)
    task.cancel()
    assert await task == "the answer"


@pytest.mark.parametrize("trouble", [RedisConnectionError("gone"), ResponseError("LOADING"), OSError("reset")])
async def test_whatever_keeps_an_answer_from_coming_is_one_kind_of_trouble(trouble: Exception) -> None:
    async def failing() -> None:
        raise trouble

    with pytest.raises(StoreUnavailableError):
        await reached(failing())
