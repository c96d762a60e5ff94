"""One player's stream, both ways: actions in, the player's own view of the table out, answers merged into it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from fivedraw.table.v1 import table_service_pb2 as pb

from services.runtime.errors import Fault, with_advice
from services.table import requests

OUT_QUEUE_MAX: Final = 256

Act = Callable[[pb.SubmitActionRequest], Awaitable[pb.SubmitActionResponse]]
View = Callable[[pb.WatchTableRequest], Awaitable[AsyncIterator[pb.WatchTableResponse]]]


class PlayStream:
    """Reads actions one after the other and passes events on; an accepted action is told with its own event."""

    def __init__(self, act: Act, view: View) -> None:
        self._act = act
        self._view = view
        self._out: asyncio.Queue[pb.PlayResponse | Exception | None] = asyncio.Queue(OUT_QUEUE_MAX)
        # Accepted actions whose events are still on the way to the client, by sequence.
        self._accepted: dict[int, pb.ActionAccepted] = {}
        self._epoch = 0
        self._sent = 0

    async def run(self, incoming: AsyncIterator[pb.PlayRequest]) -> AsyncIterator[pb.PlayResponse]:
        """The responses to a client's messages, until the client ends its side or a fault ends the stream."""
        first = await anext(incoming, None)
        if first is None or first.WhichOneof("message") != "watch":
            raise requests.invalid("watch", "the first message must say which table to watch")
        table = first.watch.table
        stream = await self._view(first.watch)
        tasks = [
            asyncio.create_task(self._watch(stream), name="play: events"),
            asyncio.create_task(self._read(incoming, table), name="play: actions"),
        ]
        try:
            while True:
                item = await self._out.get()
                if item is None:
                    for accepted in self._accepted.values():
                        yield pb.PlayResponse(accepted=accepted)
                    return
                if isinstance(item, Exception):
                    raise item
                for response in self._merged(item):
                    yield response
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch(self, stream: AsyncIterator[pb.WatchTableResponse]) -> None:
        try:
            async for update in stream:
                await self._out.put(pb.PlayResponse(update=update))
        except Exception as error:
            await self._out.put(error)
            raise

    async def _read(self, incoming: AsyncIterator[pb.PlayRequest], table: str) -> None:
        try:
            async for message in incoming:
                if message.WhichOneof("message") != "action":
                    raise requests.invalid("message", "only actions may follow the first message")
                await self._take(message.action, table)
            await self._out.put(None)
        except Exception as error:
            await self._out.put(error)
            raise

    async def _take(self, action: pb.SubmitActionRequest, table: str) -> None:
        if not action.table:
            action.table = table
        try:
            if action.table != table:
                raise requests.invalid("table", f"this stream is of {table}")
            answer = await self._act(action)
        except Fault as fault:
            refused = pb.ActionRefused(
                action_id=action.action_id,
                reason=fault.reason,
                message=with_advice(fault),
                metadata=fault.metadata,
            )
            await self._out.put(pb.PlayResponse(refused=refused))
            return
        accepted = pb.ActionAccepted(action_id=action.action_id, sequence=answer.sequence, epoch=answer.epoch)
        if answer.epoch == self._epoch and answer.sequence > self._sent:
            # Its event is still on the way to the client: the two go as one message.
            self._accepted[answer.sequence] = accepted
        else:
            await self._out.put(pb.PlayResponse(accepted=accepted))

    def _merged(self, response: pb.PlayResponse) -> list[pb.PlayResponse]:
        """The response with the accepted action whose event it brings; a snapshot can bring several, one each then."""
        update = response.update
        if update.HasField("snapshot"):
            # What was accepted in an epoch that is over will not be told any more.
            is_other = update.snapshot.table.epoch != self._epoch
            self._epoch, self._sent = update.snapshot.table.epoch, update.snapshot.sequence
            due = [each for each in self._accepted if is_other or each <= self._sent]
        elif update.events:
            self._epoch, self._sent = update.events[-1].epoch, update.events[-1].sequence
            due = [each for each in self._accepted if each <= self._sent]
        else:
            return [response]
        responses = [response]
        for place, sequence in enumerate(due):
            if place:
                responses.append(pb.PlayResponse())
            responses[-1].accepted.CopyFrom(self._accepted.pop(sequence))
        return responses
