"""A watcher's stream: a snapshot or the events since, then live events, each viewer with its own view of them.

Sequences are counted here: what was had already is dropped, a gap is filled from the log, and where the log no longer
reaches back, or the epoch changed, a new snapshot says why.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final

from fivedraw.table.v1 import event_pb2, table_service_pb2

from services.runtime.errors import Fault
from services.runtime.sealing import Sealer, event_aad
from services.table import metrics, words
from services.table.bus import Batch, public_event, stamp
from services.table.fanout import Watcher
from services.table.host import Host
from services.table.state import TableState
from services.table.store import StoreUnavailableError, TableStore

HEARTBEAT_SECONDS: Final = 5.0
CATCH_UP_EVENTS_MAX: Final = 500

Response = table_service_pb2.WatchTableResponse


class Viewing:
    """One stream of one viewer: `player` is `players/{player}`, whose private parts it opens and nobody else's.

    `listen` makes sure that this process takes in what others publish of the table.
    """

    def __init__(
        self, host: Host, store: TableStore, sealer: Sealer, player: str, listen: Callable[[Host], None]
    ) -> None:
        self._host = host
        self._listen = listen
        self._store = store
        self._sealer = sealer
        self._player = player
        self._name = f"tables/{host.table_id}"
        self._epoch = 0
        self._last = 0

    async def stream(self, resume_after: int, epoch: int) -> AsyncIterator[Response]:
        """All that this viewer may see, from `resume_after` of `epoch` on (0: from a snapshot). Raises `Fault`."""
        state, _ = await self._host.view_state(fresh=False)
        if self._player and state.seat_of(self._player) is None:
            # It may have sat down through another process a moment ago.
            state, _ = await self._host.view_state()
        is_observer = state.seat_of(self._player) is None
        if is_observer and self._player:
            self._check_room(state)
        watcher = self._host.fanout.add(self._player, is_observer)
        # Only now, since a listener ends when nobody watches.
        self._listen(self._host)
        self._host.arrived(self._player)
        try:
            for response in await self._first(resume_after, epoch):
                yield response
            while True:
                if watcher.overflowed and watcher.queue.empty():
                    facts = {"resume_after": str(self._last), "epoch": str(self._epoch)}
                    raise Fault("SLOW_CONSUMER", f"more than {watcher.queue.maxsize} commits were waiting", **facts)
                for response in await self._next(watcher):
                    yield response
        finally:
            self._host.fanout.remove(watcher)
            self._host.departed(self._player)

    def _check_room(self, state: TableState) -> None:
        """Refuses one player too many who only watches; the house's own people always may."""
        observers = self._host.fanout.observers
        if self._player not in observers and len(observers) >= state.settings.observers_max:
            facts = {"limit": str(state.settings.observers_max)}
            raise Fault("TOO_MANY_STREAMS", f"{state.name} has as many observers as it takes", **facts)

    async def _first(self, resume_after: int, epoch: int) -> list[Response]:
        state, deadline_ms = await self._host.view_state()
        resumes = 0 < resume_after <= state.sequence and epoch == state.epoch
        if resumes:
            self._epoch, self._last = epoch, resume_after
            batches = await self._since() if resume_after < state.sequence else []
            if batches is not None:
                # Where nothing is missing, it is said at once.
                return [self._told(batch) for batch in batches] or [Response(heartbeat_sequence=self._last)]
        reason = ""
        if resume_after > state.sequence and epoch == state.epoch:
            reason = "the table has not come that far"
        elif resume_after:
            reason = "the epoch is another" if epoch != state.epoch else "the log no longer reaches back that far"
        self._epoch, self._last = state.epoch, state.sequence
        return [Response(snapshot=words.view(state, self._player, deadline_ms, reason))]

    async def _next(self, watcher: Watcher) -> list[Response]:
        try:
            # What waits already needs no timer.
            offer = watcher.queue.get_nowait()
        except asyncio.QueueEmpty:
            try:
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    offer = await watcher.queue.get()
            except TimeoutError:
                return await self._heartbeat()
        if offer.epoch < self._epoch or (offer.epoch == self._epoch and offer.last <= self._last):
            return []
        if offer.epoch > self._epoch:
            return await self._again("the table was rebuilt")
        if offer.first > self._last + 1:
            metrics.GAPS.inc()
            return await self._caught_up()
        if not watcher.is_observer:
            # Only what is told as it happens: what a gap, an absence or observers' company made late says nothing of
            # the house's speed.
            metrics.EVENT_LAG_SECONDS.observe(max(0, self._host.now_ms() - offer.batches[0].at_ms) / 1000)
        if offer.first == self._last + 1 and not offer.is_private(self._player):
            self._last = offer.last
            return [offer.for_all()]
        return [self._told(batch) for batch in offer.batches if batch.last > self._last]

    async def _heartbeat(self) -> list[Response]:
        """Nothing came for a while: either nothing happened, or pub/sub lost it."""
        state, _ = await self._host.view_state()
        self._host.check_presence(state, self._player)
        if state.epoch != self._epoch:
            return await self._again("the table was rebuilt")
        if state.sequence > self._last:
            return await self._caught_up()
        return [Response(heartbeat_sequence=self._last)]

    async def _caught_up(self) -> list[Response]:
        batches = await self._since()
        if batches is None:
            return await self._again("the log no longer reaches back that far")
        return [self._told(batch) for batch in batches]

    async def _again(self, reason: str) -> list[Response]:
        state, deadline_ms = await self._host.view_state()
        self._host.check_presence(state, self._player)
        self._epoch, self._last = state.epoch, state.sequence
        return [Response(snapshot=words.view(state, self._player, deadline_ms, reason))]

    async def _since(self) -> list[Batch] | None:
        """The log's batches after what was seen last, of which there are some; None if they do not follow on from it,
        or are too many.
        """
        try:
            batches = await self._store.read_log(
                f"{self._host.table_id}", self._epoch, self._last, CATCH_UP_EVENTS_MAX + 1
            )
        except StoreUnavailableError as error:
            raise Fault("SERVICE_UNAVAILABLE", "the tables' store is out of reach") from error
        if not batches or batches[0].first > self._last + 1:
            return None
        if sum(len(batch.entries) for batch in batches) > CATCH_UP_EVENTS_MAX:
            return None
        return batches

    def _told(self, batch: Batch) -> Response:
        events = [self._seen(batch, place) for place in range(max(0, self._last + 1 - batch.first), len(batch.entries))]
        self._last = batch.last
        return Response(events=events)

    def _seen(self, batch: Batch, place: int) -> event_pb2.TableEvent:
        entry = batch.entries[place]
        for private in entry.private:
            if private.player == self._player:
                aad = event_aad(self._name, batch.epoch, batch.first + place, private.seat)
                return stamp(event_pb2.TableEvent.FromString(self._sealer.open(private.sealed, aad)), batch.at_ms)
        return public_event(entry, batch.at_ms)
