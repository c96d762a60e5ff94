"""One connection to Redis that carries the short commands of all tables, one behind the other.

A pooled client waits for each answer before its connection takes the next command, and costs several times as much
for each. Here commands are sent as they come, those of one turn of the loop together, and answers are handed out in
their order, as the protocol promises.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Sequence
from ssl import SSLContext
from typing import Any, Final, cast

import hiredis
from redis.asyncio import Redis, SSLConnection
from redis.commands.core import AsyncScript
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from services.runtime.redis import (
    BACKOFF_FIRST_SECONDS,
    BACKOFF_LAST_SECONDS,
    COMMAND_TIMEOUT_SECONDS,
    CONNECT_TIMEOUT_SECONDS,
    RETRIES_MAX,
)

WAITING_MAX: Final = 5_000

Word = bytes | str | int | float


class Lane:
    """Sends commands and returns their raw answers. Only for commands that may be repeated, and that never block.

    It connects as the pool of `redis` would. Raises `redis.exceptions.ConnectionError` and `TimeoutError` where the
    server is out of reach or too much waits, and `ResponseError` for what the server refuses.
    """

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._wire: _Wire | None = None
        self._connecting: asyncio.Task[_Wire] | None = None

    async def call(self, *command: Word) -> Any:
        """The answer to one command. After a lost connection it is sent again, a few times."""
        (answer,) = await self.calls(command)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def calls(self, *commands: Sequence[Word]) -> list[Any]:
        """The answers to several commands that are sent together; a `ResponseError` stands where one was refused."""
        try:
            async with asyncio.timeout(COMMAND_TIMEOUT_SECONDS):
                return await self._answers(commands)
        except TimeoutError:
            # A connection that stays silent for that long is given up, for all who wait on it.
            self._give_up()
            raise RedisTimeoutError(f"no answer within {COMMAND_TIMEOUT_SECONDS:g} s") from None

    async def _answers(self, commands: Sequence[Sequence[Word]]) -> list[Any]:
        for attempt in range(RETRIES_MAX):
            try:
                return await (await self._connected()).answers(commands)
            except RedisConnectionError:
                await asyncio.sleep(min(BACKOFF_LAST_SECONDS, BACKOFF_FIRST_SECONDS * 2**attempt))
        return await (await self._connected()).answers(commands)

    async def run(self, script: AsyncScript, keys: Sequence[str], args: Sequence[Word]) -> Any:
        """The answer of a script; a server that does not know it is told."""
        try:
            return await self.call("EVALSHA", script.sha, len(keys), *keys, *args)
        except NoScriptError:
            return await self.call("EVAL", cast(str, script.script), len(keys), *keys, *args)

    def close(self) -> None:
        """Ends the connection; whoever still waits is told that it is lost. The next call opens another."""
        self._give_up()
        if self._connecting is not None:
            self._connecting.cancel()

    def _give_up(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()

    async def _connected(self) -> _Wire:
        """The connection; one attempt to open it is made for all who wait, and its failure is told to all of them."""
        if self._wire is not None and not self._wire.is_lost:
            return self._wire
        attempt = self._connecting
        if attempt is None:
            attempt = self._connecting = asyncio.create_task(self._connect(), name="connection to Redis")
            attempt.add_done_callback(self._note_attempt)
        try:
            return await asyncio.shield(attempt)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if attempt.cancelled() and task is not None and not task.cancelling():
                raise RedisConnectionError("the connection was closed") from None
            raise

    def _note_attempt(self, attempt: asyncio.Task[_Wire]) -> None:
        self._connecting = None
        if not attempt.cancelled():
            # Whoever began it may have been cancelled meanwhile, so that nobody else looks at its failure.
            attempt.exception()

    async def _connect(self) -> _Wire:
        options = self._redis.connection_pool.connection_kwargs
        address = options.get("host", "localhost"), options.get("port", 6379)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_SECONDS):
                loop = asyncio.get_running_loop()
                _, wire = await loop.create_connection(_Wire, *address, ssl=self._tls())
                await _log_in(wire, options)
        except OSError as error:
            # A timeout is one too.
            raise RedisConnectionError(f"cannot connect: {type(error).__name__}") from error
        self._wire = wire
        return wire

    def _tls(self) -> SSLContext | None:
        connection = self._redis.connection_pool.make_connection()  # type: ignore[no-untyped-call]
        return connection.ssl_context.get() if isinstance(connection, SSLConnection) else None


async def _log_in(wire: _Wire, options: dict[str, Any]) -> None:
    commands: list[Sequence[Word]] = []
    if options.get("password"):
        who = [options["username"]] if options.get("username") else []
        commands.append(("AUTH", *who, options["password"]))
    if options.get("db"):
        commands.append(("SELECT", options["db"]))
    try:
        for answer in await wire.answers(commands):
            if isinstance(answer, Exception):
                raise answer
    except BaseException:
        wire.close()
        raise


class _Wire(asyncio.Protocol):
    """One connection's life. Once lost it stays so."""

    def __init__(self) -> None:
        self.is_lost = False
        self._transport: asyncio.Transport | None = None
        self._reader = hiredis.Reader(replyError=_refusal)
        self._unsent: list[bytes] = []
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._loop = asyncio.get_running_loop()

    async def answers(self, commands: Sequence[Sequence[Word]]) -> list[Any]:
        """The answers to commands that are sent with all others of this turn of the loop; refusals as exceptions."""
        if self.is_lost:
            raise RedisConnectionError("the connection is lost")
        if len(self._waiting) + len(commands) > WAITING_MAX:
            raise RedisConnectionError(f"{len(self._waiting)} commands are waiting")
        packed = [hiredis.pack_command(tuple(command)) for command in commands]  # type: ignore[arg-type]  # no bytearray
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent += packed
        answers: list[asyncio.Future[Any]] = [self._loop.create_future() for _ in commands]
        self._waiting.extend(answers)
        return [await answer for answer in answers]

    def close(self) -> None:
        """Ends the connection at once."""
        self.is_lost = True
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport = cast(asyncio.Transport, transport)
        line = self._transport.get_extra_info("socket")
        if line is not None:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        self._reader.feed(data)
        try:
            while (answer := self._reader.gets()) is not False:
                waiting = self._waiting.popleft()
                # Whoever was cancelled meanwhile does not want it any more.
                if not waiting.done():
                    waiting.set_result(answer)
        except (hiredis.HiredisError, IndexError):
            # What is no answer, or one that nobody asked for: nothing behind it can be trusted.
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self.is_lost = True
        trouble = f"the connection was lost: {exc or 'closed'}"
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_exception(RedisConnectionError(trouble))
                # Of several that one caller waits for, it looks at the first only.
                waiting.exception()

    def _flush(self) -> None:
        if self._transport is not None and not self.is_lost:
            self._transport.write(b"".join(self._unsent))
        self._unsent.clear()


def _refusal(text: str) -> Exception:
    """The server's refusal as the client library names it."""
    return (NoScriptError if text.startswith("NOSCRIPT") else ResponseError)(text)
