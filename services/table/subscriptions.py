"""All channels of a process over one connection: a table that is watched here costs no connection of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any, Final

from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from services.table import bus, metrics
from services.table.bus import Batch
from services.table.store import StoreUnavailableError

POLL_SECONDS: Final = 1.0
CONFIRM_SECONDS: Final = 5.0
QUEUE_MAX: Final = 1_000


class Subscriptions:
    """Queues of published batches by channel; a full queue loses messages, as pub/sub may anyway."""

    def __init__(self, redis: Redis) -> None:
        self._pubsub = redis.pubsub()
        self._queues: dict[bytes, set[asyncio.Queue[Batch | StoreUnavailableError]]] = {}
        # Set by channel as soon as the server has confirmed it, or the connection has broken.
        self._confirmed: dict[bytes, asyncio.Event] = {}
        self._reader: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    async def add(self, channel: bytes) -> asyncio.Queue[Batch | StoreUnavailableError]:
        """Subscribes a new queue, which gets all that is published from then on. Raises `StoreUnavailableError`."""
        queue: asyncio.Queue[Batch | StoreUnavailableError] = asyncio.Queue(QUEUE_MAX)
        async with self._lock:
            confirmed = self._confirmed.setdefault(channel, asyncio.Event())
            if channel not in self._queues:
                await reached(self._pubsub.subscribe(channel))
            self._queues.setdefault(channel, set()).add(queue)
            if self._reader is None or self._reader.done():
                self._reader = asyncio.create_task(self._read(), name="published batches")
        try:
            # Commits go over another connection and could be faster than the subscription.
            async with asyncio.timeout(CONFIRM_SECONDS):
                await confirmed.wait()
        except BaseException as error:
            await self.remove(channel, queue)
            if isinstance(error, TimeoutError):
                raise StoreUnavailableError("the subscription was not confirmed") from error
            raise
        return queue

    async def remove(self, channel: bytes, queue: asyncio.Queue[Batch | StoreUnavailableError]) -> None:
        """Ends a queue, and the subscription with the last one."""
        async with self._lock:
            queues = self._queues.get(channel, set())
            queues.discard(queue)
            if not queues and self._queues.pop(channel, None) is not None:
                self._confirmed.pop(channel, None)
                await reached(self._pubsub.unsubscribe(channel))

    async def batches(self, queue: asyncio.Queue[Batch | StoreUnavailableError]) -> AsyncIterator[Batch | None]:
        """What is published, and None whenever nothing came for a while. Raises `StoreUnavailableError`."""
        while True:
            try:
                async with asyncio.timeout(POLL_SECONDS):
                    item = await queue.get()
            except TimeoutError:
                yield None
                continue
            if isinstance(item, StoreUnavailableError):
                raise item
            yield item

    async def _read(self) -> None:
        """Reads the connection as long as anybody is subscribed; when it breaks, everybody subscribes again."""
        try:
            while self._queues:
                message = await reached(self._pubsub.get_message(timeout=POLL_SECONDS))
                if message is None:
                    continue
                if message["type"] != "message":
                    self._note(message)
                    continue
                at_ms, _, packed = message["data"].partition(b":")
                self._hand_out(message["channel"], bus.load(packed, int(at_ms)))
        except StoreUnavailableError as error:
            channels, self._queues = self._queues, {}
            confirmed, self._confirmed = self._confirmed, {}
            for each in confirmed.values():
                each.set()
            for queues in channels.values():
                for queue in queues:
                    _offer(queue, error)
            await self._pubsub.aclose()  # type: ignore[no-untyped-call]

    def _note(self, message: dict[str, Any]) -> None:
        confirmed = self._confirmed.get(message["channel"])
        if message["type"] == "subscribe" and confirmed is not None:
            confirmed.set()

    def _hand_out(self, channel: bytes, batch: Batch) -> None:
        for queue in self._queues.get(channel, ()):
            _offer(queue, batch)


def _offer(queue: asyncio.Queue[Batch | StoreUnavailableError], item: Batch | StoreUnavailableError) -> None:
    if isinstance(item, StoreUnavailableError) and queue.full():
        queue.get_nowait()
    if not queue.full():
        queue.put_nowait(item)


async def reached(answer: Awaitable[Any] | Any) -> Any:
    """Waits for an answer of Redis; whatever keeps it from coming is one kind of trouble to the callers.

    The client waits with `asyncio.wait_for`, which before Python 3.12 loses a cancellation that meets the end of what
    it waits for, an answer or an error. A task whose cancellation is lost never ends, so it is made up for here.
    """
    task = asyncio.current_task()
    before = task.cancelling() if task is not None else 0
    try:
        result = await answer
    except (RedisConnectionError, RedisTimeoutError, OSError, TimeoutError) as error:
        _raise_if_cancelled(task, before)
        metrics.STORE_FAULTS.inc()
        raise StoreUnavailableError(str(error)) from error
    except RedisError as error:
        _raise_if_cancelled(task, before)
        # LOADING, READONLY, OOM and the like: the server answers, but not with what was asked.
        metrics.STORE_FAULTS.inc()
        raise StoreUnavailableError(f"{type(error).__name__}: {error}") from error
    _raise_if_cancelled(task, before)
    return result


def _raise_if_cancelled(task: asyncio.Task[Any] | None, before: int) -> None:
    if task is not None and task.cancelling() > before:
        raise asyncio.CancelledError
