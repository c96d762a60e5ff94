"""A watcher for tests: reads a stream in the background, counts sequences, and keeps what it saw."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
from fivedraw.table.v1 import event_pb2, table_pb2
from fivedraw.table.v1 import table_service_pb2 as pb

from services.runtime.errors import Fault
from tests.integration.table.house import WAIT_SECONDS


class Watched:
    """What one stream brought. `gaps` are events whose sequence did not follow."""

    def __init__(self) -> None:
        self.events: list[event_pb2.TableEvent] = []
        self.snapshots: list[table_pb2.TableView] = []
        self.accepted: list[tuple[str, int, bool]] = []
        self.refused: list[pb.ActionRefused] = []
        self.gaps: list[int] = []
        self.epoch = 0
        self.sequence = 0
        self.ended: Fault | None = None
        self._news = asyncio.Event()

    def note(self, response: pb.WatchTableResponse) -> None:
        if response.HasField("snapshot"):
            self.snapshots.append(response.snapshot)
            self.epoch, self.sequence = response.snapshot.table.epoch, response.snapshot.sequence
        for event in response.events:
            if (event.epoch, event.sequence) != (self.epoch, self.sequence + 1):
                self.gaps.append(event.sequence)
            self.epoch, self.sequence = event.epoch, event.sequence
            self.events.append(event)
        self._news.set()

    def note_play(self, response: pb.PlayResponse) -> None:
        if response.HasField("accepted"):
            accepted = response.accepted
            merged = any(event.sequence == accepted.sequence for event in response.update.events)
            self.accepted.append((accepted.action_id, accepted.sequence, merged))
        if response.HasField("refused"):
            self.refused.append(response.refused)
        self.note(response.update)

    def bodies(self) -> list[str]:
        return [str(event.WhichOneof("body")) for event in self.events]

    async def until(self, condition: Callable[[], Any]) -> Any:
        """Waits for news until the condition holds, and returns it."""
        async with asyncio.timeout(WAIT_SECONDS):
            while not (answer := condition()):
                if self.ended is not None:
                    raise self.ended
                self._news.clear()
                await self._news.wait()
            return answer

    async def read(self, stream: Any, note: Callable[[Any], None]) -> None:
        try:
            async for response in stream:
                note(response)
        except grpc.aio.AioRpcError as error:
            self.ended = Fault.from_rpc(error)
        finally:
            self._news.set()


@asynccontextmanager
async def watching(stub: Any, table: str, resume_after: int = 0, epoch: int = 0) -> AsyncIterator[Watched]:
    """Watches a table over gRPC."""
    request = pb.WatchTableRequest(table=f"tables/{table}", resume_after=resume_after, epoch=epoch)
    watched = Watched()
    watched.epoch, watched.sequence = epoch, resume_after
    call = stub.WatchTable(request)
    reader = asyncio.create_task(watched.read(call, watched.note))
    try:
        yield watched
    finally:
        call.cancel()
        await asyncio.gather(reader, return_exceptions=True)


class Playing(Watched):
    """One `Play` stream; `send` writes a message, `half_close` ends the client's side."""

    def __init__(self, call: Any) -> None:
        super().__init__()
        self.call = call

    async def send(self, message: pb.PlayRequest | pb.SubmitActionRequest) -> None:
        if isinstance(message, pb.SubmitActionRequest):
            message = pb.PlayRequest(action=message)
        await self.call.write(message)

    async def half_close(self) -> None:
        await self.call.done_writing()


@asynccontextmanager
async def playing(stub: Any, table: str) -> AsyncIterator[Playing]:
    """A `Play` stream that watches a table."""
    stream = Playing(stub.Play())
    await stream.send(pb.PlayRequest(watch=pb.WatchTableRequest(table=f"tables/{table}")))
    reader = asyncio.create_task(stream.read(stream.call, stream.note_play))
    try:
        yield stream
    finally:
        stream.call.cancel()
        await asyncio.gather(reader, return_exceptions=True)
