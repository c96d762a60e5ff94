"""One table in this process: its state as a cache over the store, one step at a time, and the driver of its effects.

Any number of processes may host the same table. The store lets only one of them commit on one line of history; the
others lose the race, load again and decide again.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from services.runtime import telemetry
from services.runtime.clock import Clock
from services.runtime.errors import Fault
from services.runtime.sealing import SealBrokenError, Sealer, event_aad
from services.table import asks, core, metrics, outcome, play, rebuild, seating, waiting, words
from services.table.bus import Batch, Entry, Private
from services.table.draft import REFUSED, Draft
from services.table.effects import PASSING, Change, Effects, TableBehindError
from services.table.fanout import Fanout
from services.table.narrate import BrokenHandError
from services.table.ports import DeckPort, LedgerPort
from services.table.registry import Registry
from services.table.state import (
    HAND_EFFECTS,
    Answered,
    AnyEffect,
    BuyIn,
    DealHand,
    SettleHand,
    TableState,
    TopUp,
    UndoHand,
    dump_state,
    load_state,
)
from services.table.store import Commit, Outage, Stored, StoreUnavailableError, TableStore, Version

T = TypeVar("T")

RACES_MAX: Final = 8
EFFECT_TRIES_MAX: Final = 5
EFFECT_BACKOFF_SECONDS: Final = 0.1
EFFECT_LIMIT_SECONDS: Final = 30.0
EFFECT_DUE_MS: Final = 3_000
ANSWER_POLL_SECONDS: Final = 0.5
REBUILDS_IN_A_ROW_MAX: Final = 5
STATE_PAD_BYTES: Final = 1_024
EVENT_PAD_BYTES: Final = 256
COMMIT_ID_BYTES: Final = 12
RECONNECT_SECONDS: Final = 2.0


class Parts(msgspec.Struct, frozen=True):
    """What every host of a process shares."""

    store: TableStore
    registry: Registry
    ledger: LedgerPort
    decks: DeckPort
    effects: Effects
    sealer: Sealer
    clock: Clock
    new_commit_id: Callable[[], str] = lambda: secrets.token_hex(COMMIT_ID_BYTES)


class Host:
    """One table. Every change goes through `run`; `ask` is for callers, `sweep` for clocks and leftover effects."""

    def __init__(self, table_id: str, parts: Parts) -> None:
        self.table_id = table_id
        self.fanout = Fanout()
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
        self._driver: asyncio.Task[None] | None = None
        self._adopted = asyncio.Event()
        self._effect_since: tuple[int, int, float] = (0, 0, 0.0)
        self._rebuilds = 0
        self._lobby = b""
        self._lobby_key: tuple[object, ...] = ()
        self._present: Counter[str] = Counter()
        self._presence_tasks: set[asyncio.Task[None]] = set()
        self._log = telemetry.logger("table.host")

    @property
    def is_idle(self) -> bool:
        """Whether nobody watches and nothing is under way here, so that the cache may be dropped."""
        return self.fanout.is_empty and not self._lock.locked() and self._driver is None

    async def view_state(self, fresh: bool = True) -> tuple[TableState, int]:
        """The table as it is stored now, and its clock's deadline or 0. `fresh=False` may be a moment old."""
        async with self._lock:
            self._is_stale = self._is_stale or fresh
            state = await self._loaded()
            return state, self._deadline_ms

    async def ask(self, asked: asks.AnyAsk, within_seconds: float) -> bytes:
        """Takes in what a caller asks and returns the answer, serialized. Raises `Fault`."""
        started = self._parts.clock.monotonic()
        try:
            await self.run(lambda draft: core.ask(draft, asked))
        except Fault as fault:
            metrics.REFUSALS.labels(fault.reason).inc()
            raise
        metrics.ACTION_SECONDS.observe(self._parts.clock.monotonic() - started)
        answer = self._answer_of(asked)
        if not answer:
            answer = await self._awaited_answer(asked, started + within_seconds)
        if answer[:1] == REFUSED:
            refused = core.refusal_of(answer)
            metrics.REFUSALS.labels(refused.reason).inc()
            raise refused
        return answer[1:]

    def _answer_of(self, asked: asks.AnyAsk) -> bytes:
        state = self._state
        found: tuple[Answered, ...] = state.answers.get(asked.request.caller, ()) if state is not None else ()
        for answered in found:
            if answered.request_id == asked.request.request_id:
                return answered.answer
        return b""

    async def _awaited_answer(self, asked: asks.AnyAsk, until: float) -> bytes:
        """Waits for the effect that a request asked for; another process may be the one that carries it out."""
        while True:
            left = until - self._parts.clock.monotonic()
            if left <= 0:
                raise Fault("DEADLINE_EXCEEDED", "the table is still at work on this request")
            self._adopted.clear()
            try:
                async with asyncio.timeout(min(left, ANSWER_POLL_SECONDS)):
                    await self._adopted.wait()
            except TimeoutError:
                await self.view_state()
                self.kick()
            answer = self._answer_of(asked)
            if answer:
                return answer

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
        self.kick()
        return True

    async def _has_moved_on(self, state: TableState) -> bool:
        """Whether the store has a newer state than this one; it is loaded then. Holds the lock."""
        self._is_stale = True
        return await self._loaded() is not state

    def kick(self) -> None:
        """Starts carrying out effects, if there are any and nobody here is at it."""
        if self._driver is None and self._state is not None and self._state.effects:
            self._driver = asyncio.create_task(self._drive(), name=f"effects of {self.table_id}")

    async def sweep(self, outage: Outage) -> int:
        """Acts on a clock that is over and on effects that were left; returns when to look again, or 0.

        A clock whose time fell into an outage is given once more: nobody loses a hand because the house was away.
        """
        state, deadline_ms = await self.view_state()
        now_ms = self.now_ms()
        expiry_ms = waiting.next_expiry_ms(state)
        if expiry_ms and expiry_ms <= now_ms:
            await self.run(waiting.expire)
        if state.effects:
            self.kick()
        elif deadline_ms and deadline_ms <= now_ms:
            metrics.CLOCK_LATE_SECONDS.observe((now_ms - deadline_ms) / 1000)
            await self.run(lambda draft: self._clock_due(draft, outage))
        else:
            # A table whose next hand no commit has asked for yet, after a rebuild or a lost clock.
            await self.run(_revive)
        return self._next_due_ms()

    def _next_due_ms(self) -> int:
        """When somebody has to look at this table again, in the store's time; 0 for never."""
        state = self._state
        due = [self._deadline_ms]
        if state is not None:
            due += [waiting.next_expiry_ms(state), self.now_ms() + EFFECT_DUE_MS if state.effects else 0]
        return min((each for each in due if each), default=0)

    def _clock_due(self, draft: Draft, outage: Outage) -> bool:
        clock = draft.state.clock
        if clock is None or not draft.deadline_ms or draft.deadline_ms > draft.now_ms:
            return False
        started_ms = draft.deadline_ms - clock.duration_ms
        was_away = outage.end_ms > started_ms and outage.start_ms < draft.deadline_ms
        if was_away and clock.seat and not clock.extended:
            play.extend_turn(draft)
            return True
        return core.clock_due(draft)

    async def check(self) -> None:
        """Compares the table with registry and ledger, and rebuilds it if they are ahead."""
        async with self._lock:
            self._state = None
            self._checked = False
            await self._loaded()
        self.kick()

    async def close(self) -> None:
        """Ends the driver; what it was doing is carried out again by whoever comes next."""
        tasks = [*self._presence_tasks, *([self._driver] if self._driver is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

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
        self._checked = True
        self._state, self._seen = state, stored.at
        self._adopted.set()

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
        self._adopted.set()
        if batch is not None:
            self._offer(msgspec.structs.replace(batch, at_ms=committed.now_ms))
        is_news, self._lobby, self._lobby_key = lobby != self._lobby, lobby, words.table_key(state)
        if is_news:
            await self._hint_lobby()
        return True

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

    def arrived(self, player: str) -> None:
        """A stream of this player began here."""
        self._present[player] += 1
        self._note_presence(player)

    def departed(self, player: str) -> None:
        """A stream of this player ended here."""
        self._present[player] -= 1
        self._note_presence(player)

    def _note_presence(self, player: str) -> None:
        task = asyncio.create_task(self._presence(player), name=f"presence at {self.table_id}")
        self._presence_tasks.add(task)
        task.add_done_callback(self._presence_tasks.discard)

    async def _presence(self, player: str) -> None:
        """Tells the table of a connection that is lost or back; one that comes back at once is not worth telling."""
        if not self._present[player]:
            await self._parts.clock.sleep(RECONNECT_SECONDS)
        is_here = self._present[player] > 0
        if not is_here:
            self._present.pop(player, None)
        try:
            await self.run(lambda draft: seating.connection(draft, player, is_here))
        except Fault as fault:
            metrics.REFUSALS.labels(fault.reason).inc()

    def _offer(self, batch: Batch) -> None:
        """Hands a batch to the watchers here, once: our own commits come back over pub/sub."""
        if (batch.epoch, batch.last) > self._offered:
            self._offered = (batch.epoch, batch.last)
            self.fanout.offer(batch)

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

    def on_published(self, batch: Batch) -> None:
        """A batch that some process published: for the watchers, and a sign that the cache may be old."""
        state = self._state
        if state is not None and (batch.epoch, batch.last) > (state.epoch, state.sequence):
            self._is_stale = True
        self._offer(batch)

    def _aad(self) -> bytes:
        return f"state|tables/{self.table_id}".encode()

    def now_ms(self) -> int:
        """The store's time by this process's clock and the last answer seen."""
        if not self._offset_ms:
            return self._parts.clock.now_ms()
        return int(self._parts.clock.monotonic() * 1000 + self._offset_ms)

    def _saw_time(self, now_ms: int) -> None:
        self._offset_ms = now_ms - self._parts.clock.monotonic() * 1000

    async def _drive(self) -> None:
        """Carries out effects one after the other until none is left, or a peer stays away too long."""
        tries = 0
        try:
            while tries < EFFECT_TRIES_MAX:
                state = self._state
                if state is None:
                    state, _ = await self.view_state()
                if not state.effects:
                    return
                try:
                    await self._drive_one(state, state.effects[0])
                    tries = 0
                except Fault as fault:
                    metrics.EFFECT_FAULTS.labels(type(state.effects[0]).__name__, fault.reason).inc()
                    tries += 1
                    await self._parts.clock.sleep(EFFECT_BACKOFF_SECONDS * 2**tries)
        except Fault as fault:
            # The store is away; the sweep takes it up again.
            self._log.warning("effects left for the sweep", table=self.table_id, reason=fault.reason)
        except Exception as error:
            metrics.DRIVERS_FAILED.inc()
            self._log.error("effects stopped by a mistake of ours", table=self.table_id, **telemetry.where(error))
            raise
        finally:
            self._driver = None

    async def _drive_one(self, state: TableState, effect: AnyEffect) -> None:
        kind = type(effect).__name__
        started = self._parts.clock.monotonic()
        try:
            change = await self._parts.effects.perform(state, effect)
        except TableBehindError as error:
            metrics.EFFECT_FAULTS.labels(kind, "APART").inc()
            async with self._lock:
                # Another process may have done this effect and gone on: then it is this cache that was behind.
                self._is_stale = True
                current = await self._loaded()
                if _is_next(current, state.epoch, effect):
                    await self._rebuild(str(error), current)
            return
        except Fault as fault:
            change = self._change_for(state, effect, fault)
        metrics.EFFECTS.labels(kind).inc()
        metrics.EFFECT_SECONDS.labels(kind).observe(self._parts.clock.monotonic() - started)
        try:
            await self.run(lambda draft: _finish(draft, state.epoch, effect, change))
        except BrokenHandError as error:
            metrics.BROKEN.inc()
            self._log.error("hand stopped", table=self.table_id, hand=effect.hand, **telemetry.where(error))
            await self.run(lambda draft: _finish(draft, state.epoch, effect, _stop_broken_hand))
        self._rebuilds = 0
        if isinstance(effect, SettleHand):
            _count_hand(state, effect)
        elif isinstance(effect, UndoHand):
            metrics.HANDS.labels(state.rulebook.name, "void").inc()

    def _change_for(self, state: TableState, effect: AnyEffect, fault: Fault) -> Change:
        """What follows from a refusal; raises it again where the effect is worth another try."""
        now = self._parts.clock.monotonic()
        if self._effect_since[:2] != (state.epoch, effect.number):
            self._effect_since = (state.epoch, effect.number, now)
        if fault.reason in PASSING:
            waited = now - self._effect_since[2]
            must_happen = isinstance(effect, SettleHand | UndoHand) or not isinstance(effect, HAND_EFFECTS)
            if must_happen or waited < EFFECT_LIMIT_SECONDS:
                raise fault
        metrics.EFFECT_FAULTS.labels(type(effect).__name__, fault.reason).inc()
        match effect:
            case BuyIn():
                return lambda draft: _refuse_buy_in(draft, effect, fault)
            case TopUp():
                return lambda draft: _refuse(draft, effect, fault)
            case DealHand():
                return lambda draft: _refuse_deal(draft, effect, fault)
            case SettleHand():
                return _stop_broken_hand
            case _ if isinstance(effect, HAND_EFFECTS) and not isinstance(effect, UndoHand):
                return lambda draft: outcome.undo(draft, f"the house could not go on: {fault.reason}", "house")
        raise fault


def _is_next(state: TableState, epoch: int, effect: AnyEffect) -> bool:
    """Whether this effect is still the first one to be done."""
    return state.epoch == epoch and bool(state.effects) and state.effects[0].number == effect.number


def _finish(draft: Draft, epoch: int, effect: AnyEffect, change: Change) -> bool:
    """Takes an effect off the list and makes its change, unless somebody has done so already."""
    if not _is_next(draft.state, epoch, effect):
        return False
    draft.finish_effect()
    change(draft)
    return True


def _refuse_buy_in(draft: Draft, effect: BuyIn, fault: Fault) -> None:
    seating.buy_in_refused(draft, effect)
    if effect.request is not None:
        draft.refuse(effect.request, fault)
    seating.between_hands(draft)


def _refuse(draft: Draft, effect: TopUp, fault: Fault) -> None:
    seating.top_up_refused(draft, effect)
    if effect.request is not None:
        draft.refuse(effect.request, fault)
    seating.between_hands(draft)


def _refuse_deal(draft: Draft, effect: DealHand, fault: Fault) -> None:
    """Who may not play (frozen, or short of chips that the ledger does not have) sits out; the hand is undone."""
    # The ledger names a player by the last part of the resource name.
    named = {fault.metadata.get("sitting", ""), f"players/{fault.metadata.get('player', '')}"}
    for seat in list(draft.state.seats.values()):
        if seat.sitting in effect.dealt_in and named & {seat.sitting, seat.player}:
            seating.sit_out(draft, seat.number, "refused_by_ledger")
    outcome.undo(draft, f"the ledger refused the forced bets: {fault.reason}", "house")


def _stop_broken_hand(draft: Draft) -> None:
    """A hand that contradicts the ledger is undone, and the table waits for a person."""
    seating.pause(draft, "a hand contradicted the ledger; the house is looking at it")
    outcome.undo(draft, "the hand contradicted the ledger", "house")


def _revive(draft: Draft) -> bool:
    """Sets off what should be under way and is not: a turn, or the clock to the next hand."""
    before = draft.state.sequence, draft.state.clock, draft.state.effects
    if draft.state.mode != "paused":
        play.advance(draft)
    seating.between_hands(draft)
    return (draft.state.sequence, draft.state.clock, draft.state.effects) != before


def _count_hand(state: TableState, settled: SettleHand) -> None:
    hand = state.hand
    if hand is not None and hand.engine is not None and hand.engine.outcome is not None:
        metrics.HANDS.labels(state.rulebook.name, hand.engine.outcome).inc()
        pot = sum(win.amount for win in settled.wins) + settled.rake + settled.carry_out
        metrics.POTS.labels(state.rulebook.name, state.currency).inc(pot)
        metrics.RAKE.labels(state.rulebook.name, state.currency).inc(settled.rake)
