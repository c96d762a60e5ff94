"""One table's line of history, as this process knows it: its state as a cache over the store, one step at a time.

Any number of processes may serve the same table. The store lets only one of them commit on one line of history; the
others lose the race, load again and decide again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from services.runtime import telemetry
from services.runtime.errors import Fault
from services.runtime.sealing import SealBrokenError, event_aad
from services.table import core, metrics, rebuild, waiting, words
from services.table.bus import Batch, Entry, Private
from services.table.draft import Draft
from services.table.fanout import Fanout
from services.table.parts import Parts
from services.table.state import AnyEffect, TableState, dump_state, load_state
from services.table.store import Commit, Stored, StoreUnavailableError, Version
from services.table.wanted import wanted_of

RACES_MAX: Final = 8
EFFECT_DUE_MS: Final = 3_000
REBUILDS_IN_A_ROW_MAX: Final = 5
STATE_PAD_BYTES: Final = 1_024
EVENT_PAD_BYTES: Final = 256


class Line:
    """Reads by `view`, changes by `run`. `adopted` is set whenever a newer state is known; `fanout`: the watchers."""

    def __init__(self, table_id: str, parts: Parts) -> None:
        self.table_id = table_id
        self.fanout = Fanout()
        self.adopted = asyncio.Event()
        self._parts = parts
        self._lock = asyncio.Lock()
        self._state: TableState | None = None
        self._at = Version()
        self._seen = Version()
        self._checked = False
        self._is_stale = False
        self._offered = (0, 0)
        self._deadline_ms = 0
        self._offset_ms = 0.0
        self._rebuilds = 0
        self._lobby = b""
        self._lobby_key: tuple[object, ...] = ()
        self._log = telemetry.logger("table.line")

    @property
    def state(self) -> TableState | None:
        """The state last known, which may be old; None if none is known."""
        return self._state

    @property
    def is_busy(self) -> bool:
        """Whether a step is under way."""
        return self._lock.locked()

    async def view(self, fresh: bool = True) -> tuple[TableState, int]:
        """The table as it is stored now, and its clock's deadline or 0. `fresh=False` may be a moment old."""
        async with self._lock:
            self._is_stale = self._is_stale or fresh
            state = await self._loaded()
            return state, self._deadline_ms

    async def run(self, step: Callable[[Draft], bool]) -> bool:
        """Runs one step and commits it; a step that returns False changes nothing. Raises what the step raises."""
        async with self._lock:
            for _ in range(RACES_MAX):
                state = await self._loaded()
                draft = Draft(state, self.now_ms(), self._deadline_ms)
                try:
                    is_due = step(draft)
                except Fault:
                    # Decided on a cache that may be old: another process may have committed meanwhile.
                    if await self._has_moved_on(state):
                        continue
                    raise
                if not is_due:
                    if await self._has_moved_on(state):
                        continue
                    return False
                if await self._commit(draft):
                    break
                metrics.RACES_LOST.inc()
            else:
                raise Fault("TABLE_BUSY", f"tables/{self.table_id} was changed {RACES_MAX} times meanwhile")
        return True

    async def _has_moved_on(self, state: TableState) -> bool:
        """Whether the store has a newer state than this one; it is loaded then. Holds the lock."""
        self._is_stale = True
        return await self._loaded() is not state

    async def recheck(self) -> None:
        """Compares the table with registry and ledger, and rebuilds it if they are ahead."""
        async with self._lock:
            self._state = None
            self._checked = False
            await self._loaded()

    async def give_up(self, epoch: int, effect: AnyEffect, reason: str) -> None:
        """Rebuilds the table, whose state is behind the ledger; nothing if it only was this cache that was behind."""
        async with self._lock:
            # Another process may have done this effect and gone on.
            self._is_stale = True
            current = await self._loaded()
            if is_next(current, epoch, effect):
                await self._rebuild(reason, current)

    def goes_on(self) -> None:
        """An effect was done: rebuilds before it were no endless row."""
        self._rebuilds = 0

    def next_due_ms(self) -> int:
        """When somebody has to look at this table again, in the store's time; 0 for never."""
        state = self._state
        due = [self._deadline_ms]
        if state is not None:
            due += [waiting.next_expiry_ms(state), self.now_ms() + EFFECT_DUE_MS if state.effects else 0]
        return min((each for each in due if each), default=0)

    def on_published(self, batch: Batch) -> None:
        """A batch that some process published: for the watchers, and a sign that the cache may be old."""
        state = self._state
        if state is not None and (batch.epoch, batch.last) > (state.epoch, state.sequence):
            self._is_stale = True
        self._offer(batch)

    def now_ms(self) -> int:
        """The store's time by this process's clock and the last answer seen."""
        if not self._offset_ms:
            return self._parts.clock.now_ms()
        return int(self._parts.clock.monotonic() * 1000 + self._offset_ms)

    async def _loaded(self) -> TableState:
        """The cached state, or that of the store; rebuilt first if the store has lost commits. Holds the lock."""
        if self._state is not None and not self._is_stale:
            return self._state
        try:
            stored = await self._parts.store.load(self.table_id)
        except StoreUnavailableError as error:
            raise Fault("SERVICE_UNAVAILABLE", "the tables' store is out of reach") from error
        self._is_stale = False
        if stored is None:
            await self._rebuild("the table's state was lost" if self._seen.version else "")
        elif self._state is None or stored.at != self._at:
            await self._adopt(stored)
        else:
            self._saw_time(stored.now_ms)
            self._deadline_ms = stored.deadline_ms
        if self._state is None:
            raise Fault("TABLE_BUSY", f"tables/{self.table_id} is being rebuilt")
        return self._state

    async def _adopt(self, stored: Stored) -> None:
        """Takes over what the store has, unless it has lost commits or the ledger is ahead of it. Holds the lock."""
        self._saw_time(stored.now_ms)
        seen = self._seen
        lost = stored.at.epoch < seen.epoch or (
            stored.at.epoch == seen.epoch and stored.at.version <= seen.version and stored.at != seen
        )
        self._state = None
        self._at = stored.at
        self._deadline_ms = stored.deadline_ms
        try:
            state = load_state(self._parts.sealer.open(stored.blob, self._aad()))
        except (SealBrokenError, msgspec.DecodeError):
            await self._rebuild("the table's state cannot be read")
            return
        if lost:
            await self._rebuild("the store has lost its last commits", state)
            return
        if not self._checked and await rebuild.is_behind(self._parts, state):
            await self._rebuild("the ledger is ahead of the table", state)
            return
        if not self._checked and await self._follows_registry(state):
            return
        self._checked = True
        self._state, self._seen = state, stored.at
        self.adopted.set()

    async def _follows_registry(self, state: TableState) -> bool:
        """Does what the registry keeps as wanted of the table, where that is newer; tells it where it is older.

        True if the table was changed, and another state is known now. Holds the lock.
        """
        kept = (await self._parts.registry.get_table(self.table_id)).wanted
        wanted = wanted_of(state)
        if kept.number <= wanted.number:
            if kept != wanted:
                await self._parts.registry.want(self.table_id, wanted, wanted.number)
            return False
        draft = Draft(state, self.now_ms(), self._deadline_ms)
        core.follow(draft, kept)
        self._checked = await self._commit(draft)
        if not self._checked:
            await self._loaded()
        return True

    async def _keep_mode(self, draft: Draft) -> bool:
        """Has the registry keep a mode that this draft changes; False if it keeps a newer one. Holds the lock.

        A change that nobody is answered for is made without it, where it is out of reach: a table must be able to
        pause. Whoever looks at the table next tells it.
        """
        wanted = draft.count_mode()
        if wanted is None:
            return True
        try:
            return await self._parts.registry.want(self.table_id, wanted, draft.kept.number)
        except Fault as fault:
            if draft.must_keep_mode:
                raise
            self._log.warning("mode not kept yet", table=self.table_id, mode=wanted.mode, reason=fault.reason)
            return True

    async def _rebuild(self, reason: str, stale: TableState | None = None) -> None:
        """Makes the table anew from registry and ledger, in a new epoch; `stale` is given up. Holds the lock."""
        self._rebuilds += 1
        if self._rebuilds > REBUILDS_IN_A_ROW_MAX:
            self._rebuilds = 0
            raise Fault("TABLE_BUSY", f"tables/{self.table_id} could not be rebuilt {REBUILDS_IN_A_ROW_MAX} times")
        # Until a rebuild is committed, whoever loads the table has to find out again that one is due.
        self._state, self._checked = None, False
        draft = await rebuild.rebuild(self._parts, self.table_id, stale, reason, self.now_ms())
        if not await self._commit(draft):
            metrics.RACES_LOST.inc()
            self._seen = Version()
            await self._loaded()
            return
        self._checked = True
        if reason:
            metrics.REBUILDS.inc()
            self._log.warning("table rebuilt", table=self.table_id, reason=reason, epoch=draft.state.epoch)

    async def _commit(self, draft: Draft) -> bool:
        """Writes a draft; False if another process was faster, with nothing cached then. Holds the lock."""
        state = draft.state
        if not await self._keep_mode(draft):
            self._state, self._checked = None, False
            return False
        following = Version(
            state.epoch,
            self._at.version + 1 if state.epoch == self._at.epoch else 1,
            self._parts.new_commit_id(),
        )
        batch = self._batch(draft)
        blob = self._parts.sealer.seal(dump_state(state), self._aad(), pad_to=STATE_PAD_BYTES)
        lobby = self._lobby_row(state)
        commit = Commit(self._at, following, blob, state.sequence, batch, draft.deadline, lobby)
        # The clock's own due time is entered by the store; these are beside it.
        due_ms = [waiting.next_expiry_ms(state), self.now_ms() + EFFECT_DUE_MS if state.effects else 0]
        try:
            if any(due_ms):
                await self._parts.store.note_due(self.table_id, min(each for each in due_ms if each))
            committed = await self._parts.store.commit(self.table_id, commit)
        except StoreUnavailableError as error:
            # Whether it was written is not known; the next load will tell.
            self._state = None
            raise Fault("SERVICE_UNAVAILABLE", "the tables' store is out of reach") from error
        if committed is None:
            self._state = None
            return False
        metrics.COMMITS.inc()
        self._saw_time(committed.now_ms)
        self._state, self._at, self._seen = state, following, following
        self._deadline_ms = committed.deadline_ms
        self.adopted.set()
        if batch is not None:
            self._offer(msgspec.structs.replace(batch, at_ms=committed.now_ms))
        is_news, self._lobby, self._lobby_key = lobby != self._lobby, lobby, words.table_key(state)
        if is_news:
            await self._hint_lobby()
        return True

    def _batch(self, draft: Draft) -> Batch | None:
        if not draft.told:
            return None
        state = draft.state
        entries = []
        for told in draft.told:
            private = tuple(
                Private(
                    form.seat,
                    form.player,
                    self._parts.sealer.seal(
                        form.event.SerializeToString(),
                        event_aad(state.name, state.epoch, told.public.sequence, form.seat),
                        pad_to=EVENT_PAD_BYTES,
                    ),
                )
                for form in told.private
            )
            entries.append(Entry(told.public.SerializeToString(), private))
        return Batch(state.epoch, draft.told[0].public.sequence, tuple(entries))

    def _lobby_row(self, state: TableState) -> bytes:
        """The lobby's row; made anew only where something in it may have changed."""
        if self._lobby and self._lobby_key == words.table_key(state):
            return self._lobby
        return words.table(state).SerializeToString(deterministic=True)

    async def _hint_lobby(self) -> None:
        """Says that the lobby's row has changed; a hint that is lost only delays the lobby's watchers."""
        try:
            await self._parts.store.hint_lobby(self.table_id)
        except StoreUnavailableError:
            self._lobby = b""

    def _offer(self, batch: Batch) -> None:
        """Hands a batch to the watchers here, once: our own commits come back over pub/sub."""
        if (batch.epoch, batch.last) > self._offered:
            self._offered = (batch.epoch, batch.last)
            self.fanout.offer(batch)

    def _aad(self) -> bytes:
        return f"state|tables/{self.table_id}".encode()

    def _saw_time(self, now_ms: int) -> None:
        self._offset_ms = now_ms - self._parts.clock.monotonic() * 1000


def is_next(state: TableState, epoch: int, effect: AnyEffect) -> bool:
    """Whether this effect is still the first one to be done."""
    return state.epoch == epoch and bool(state.effects) and state.effects[0].number == effect.number
