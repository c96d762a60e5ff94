"""Streams of a table that survive reconnections: watching, and playing over one stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self

import grpc
from fivedraw.table.v1 import table_service_pb2, table_service_pb2_grpc

from fivedraw_client import errors
from fivedraw_client.calls import Caller, new_id
from fivedraw_client.mirror import TableMirror
from fivedraw_client.retries import is_passing, repeat
from fivedraw_client.sequence import SequenceKeeper

Update = table_service_pb2.WatchTableResponse

# The house sends a heartbeat at least this often; a stream that is silent for longer is taken for dead.
SILENCE_SECONDS: Final = 45.0
VIOLATIONS_KEPT: Final = 100
ACTIONS_WAITING_MAX: Final = 16
ACTION_SECONDS: Final = 60.0


class TableStream:
    """One viewer's stream of one table: `async for update in stream`.

    It reconnects where it left off, bounded by the caller's retry policy between two messages. A broken promise of the
    sequence is kept in `violations` (the first 100) and the stream goes on from the last good event. `mirror.view` is
    the table as of the last update.
    """

    def __init__(
        self, caller: Caller, stub: table_service_pb2_grpc.TableServiceAsyncStub, table: str, player: str = ""
    ) -> None:
        self.table = table
        self.keeper = SequenceKeeper()
        self.mirror = TableMirror(player)
        self.violations: list[errors.StreamViolationError] = []
        self.reconnects = 0
        self._caller = caller
        self._stub = stub
        self._failures = 0
        self._call: Any = None

    async def __aiter__(self) -> AsyncIterator[Update]:
        """Yields every update in order. Raises a `FivedrawError` when the stream is over for good."""
        try:
            while True:
                try:
                    async for update in self._connection():
                        self.keeper.accept(update)
                        self.mirror.apply(update)
                        self._failures = 0
                        yield update
                    # A clean end is the house's way to shut down: the next process goes on.
                    await self._after(errors.UnavailableError("the house ended the stream"))
                except errors.StreamViolationError as violation:
                    if len(self.violations) < VIOLATIONS_KEPT:
                        self.violations.append(violation)
                    await self._after(violation)
                except errors.FivedrawError as error:
                    await self._after(error)
        finally:
            self._end()

    def _request(self) -> table_service_pb2.WatchTableRequest:
        request = table_service_pb2.WatchTableRequest(table=self.table)
        if self.keeper.position is not None:
            request.epoch = self.keeper.position.epoch
            request.resume_after = self.keeper.position.sequence
        return request

    def _open(self) -> Any:
        return self._stub.WatchTable(self._request(), metadata=self._caller.metadata())

    async def _connection(self) -> AsyncIterator[Update]:
        self._call = self._open()
        while True:
            message = await self._read(self._call)
            if message is grpc.aio.EOF:
                return
            update = self._update_of(message)
            if update is not None:
                yield update

    async def _read(self, call: Any) -> Any:
        try:
            async with asyncio.timeout(SILENCE_SECONDS):
                return await call.read()
        except TimeoutError as silence:
            raise errors.UnavailableError(f"the stream was silent for {SILENCE_SECONDS:.0f} s") from silence
        except grpc.aio.AioRpcError as error:
            raise errors.from_rpc(error) from error

    def _update_of(self, message: Any) -> Update | None:
        update: Update = message
        return update

    async def _after(self, error: errors.FivedrawError) -> None:
        """Pauses before the next connection, or raises `error` when there is to be none."""
        self._end()
        resumable = (
            is_passing(error)
            or isinstance(error, errors.StreamViolationError)
            or error.reason in {"SLOW_CONSUMER", "UNAUTHENTICATED"}
        )
        self._failures += 1
        if not resumable or self._failures >= self._caller.policy.attempts:
            raise error
        self.reconnects += 1
        await asyncio.sleep(self._caller.policy.delay(self._failures, self._caller.rng))

    def _end(self) -> None:
        if self._call is not None:
            self._call.cancel()
            self._call = None


class PlayStream(TableStream):
    """A player's stream: updates as in `TableStream`, and `act` sends actions over the same stream.

    Iterate in one task and act in another; an action that the connection lost is sent again, with the same id, over
    the next one.
    """

    def __init__(
        self, caller: Caller, stub: table_service_pb2_grpc.TableServiceAsyncStub, table: str, player: str = ""
    ) -> None:
        super().__init__(caller, stub, table, player)
        self._unanswered: dict[str, tuple[table_service_pb2.SubmitActionRequest, asyncio.Future[int]]] = {}
        self._sending = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self._end()
        for _request, answer in self._unanswered.values():
            answer.cancel()

    async def act(self, action: table_service_pb2.Action, *, hand: int, turn: int, action_id: str = "") -> int:
        """Acts and returns the sequence of the action's event. Raises a `FivedrawError` for a refusal."""
        if len(self._unanswered) >= ACTIONS_WAITING_MAX:
            raise errors.OverloadedError("too many actions wait for an answer on this stream")
        request = table_service_pb2.SubmitActionRequest(
            table=self.table, hand=hand, turn=turn, action_id=action_id or new_id(), action=action
        )
        try:
            async with asyncio.timeout(ACTION_SECONDS):
                # A house that cannot reach its own stores refuses what may succeed a moment later.
                return await repeat(lambda: self._answer_to(request), self._caller.policy, self._caller.rng)
        except TimeoutError as late:
            raise errors.UnavailableError("the action was not answered in time") from late

    async def _answer_to(self, request: table_service_pb2.SubmitActionRequest) -> int:
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._unanswered[request.action_id] = (request, answer)
        try:
            await self._send(request)
            return await answer
        finally:
            self._unanswered.pop(request.action_id, None)

    def _open(self) -> Any:
        return self._stub.Play(metadata=self._caller.metadata())

    async def _connection(self) -> AsyncIterator[Update]:
        self._call = call = self._open()
        # Why a stream could not be opened is told by the read below.
        with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            async with self._sending:
                await call.write(table_service_pb2.PlayRequest(watch=self._request()))
                for request, _ in list(self._unanswered.values()):
                    await call.write(table_service_pb2.PlayRequest(action=request))
        while True:
            message = await self._read(call)
            if message is grpc.aio.EOF:
                return
            update = self._update_of(message)
            if update is not None:
                yield update

    async def _send(self, request: table_service_pb2.SubmitActionRequest) -> None:
        call = self._call
        if call is None:
            return
        # A stream that breaks here is opened again by the reader, which then sends what was not answered.
        with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            async with self._sending:
                await call.write(table_service_pb2.PlayRequest(action=request))

    def _update_of(self, message: Any) -> Update | None:
        answer: table_service_pb2.PlayResponse = message
        if answer.HasField("accepted"):
            self._settle(answer.accepted.action_id, answer.accepted.sequence, None)
        if answer.HasField("refused"):
            refused = answer.refused
            fault = errors.from_refusal(refused.reason, refused.message, dict(refused.metadata))
            self._settle(refused.action_id, 0, fault)
        return answer.update if answer.HasField("update") else None

    def _settle(self, action_id: str, sequence: int, fault: errors.FivedrawError | None) -> None:
        waiting = self._unanswered.get(action_id)
        if waiting is None or waiting[1].done():
            return
        if fault is None:
            waiting[1].set_result(sequence)
        else:
            waiting[1].set_exception(fault)
