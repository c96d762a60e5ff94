"""Carrying out a table's effects one after the other, and what follows when one of them is refused."""

from __future__ import annotations

import asyncio
from typing import Final

from services.runtime import telemetry, tracing
from services.runtime.errors import Fault
from services.table import metrics, outcome, seating
from services.table.draft import Draft
from services.table.effects import PASSING, Change, TableBehindError
from services.table.line import Line, is_next
from services.table.narrate import BrokenHandError
from services.table.parts import Parts
from services.table.state import (
    HAND_EFFECTS,
    AnyEffect,
    BuyIn,
    DealHand,
    SettleHand,
    TableState,
    TopUp,
    UndoHand,
    WriteHistory,
)

EFFECT_TRIES_MAX: Final = 5
EFFECT_BACKOFF_SECONDS: Final = 0.1
EFFECT_LIMIT_SECONDS: Final = 30.0


class Driver:
    """At most one task at a time per table and process; what it leaves, the sweep of some process takes up."""

    def __init__(self, line: Line, parts: Parts) -> None:
        self._line = line
        self._parts = parts
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False
        self._effect_since: tuple[int, int, float] = (0, 0, 0.0)
        # Epoch and number of the last history that was asked for beside another effect.
        self._sent = (0, 0)
        self._last_trace = (0, "")
        self._log = telemetry.logger("table.driver")

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being carried out here."""
        return self._task is None

    def kick(self) -> None:
        """Starts carrying out effects, if there are any and nobody here is at it."""
        state = self._line.state
        if self._task is None and not self._is_closed and state is not None and state.effects:
            self._task = asyncio.create_task(self._drive(), name=f"effects of {self._line.table_id}")

    async def close(self) -> None:
        """Ends it for good; what it was doing is carried out again by whoever comes next."""
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _drive(self) -> None:
        """Carries out effects one after the other until none is left, or a peer stays away too long."""
        tries = 0
        try:
            while tries < EFFECT_TRIES_MAX:
                state = self._line.state
                if state is None:
                    state, _ = await self._line.view()
                if not state.effects:
                    return
                try:
                    await self._drive_next(state)
                    tries = 0
                except Fault as fault:
                    metrics.EFFECT_FAULTS.labels(type(state.effects[0]).__name__, fault.reason).inc()
                    tries += 1
                    await self._parts.clock.sleep(EFFECT_BACKOFF_SECONDS * 2**tries)
        except Fault as fault:
            # The store is away; the sweep takes it up again.
            self._log.warning("effects left for the sweep", table=self._line.table_id, reason=fault.reason)
        except Exception as error:
            metrics.DRIVERS_FAILED.inc()
            self._log.error("effects stopped by a mistake of ours", table=self._line.table_id, **telemetry.where(error))
            raise
        finally:
            self._task = None

    async def _drive_next(self, state: TableState) -> None:
        """Carries out the first effect, and the second with it if the first is no news to anybody."""
        first = state.effects[0]
        if not isinstance(first, WriteHistory) or len(state.effects) == 1:
            await self._drive_one(state, first)
            return
        if self._sent != (state.epoch, first.number):
            await self._performed(state, first)
            self._sent = (state.epoch, first.number)
        await self._drive_one(state, state.effects[1], beside=first)

    async def _drive_one(self, state: TableState, effect: AnyEffect, beside: WriteHistory | None = None) -> None:
        """Carries out one effect and commits its result, and with it that of the one before, which was done already."""

        def done(draft: Draft, change: Change) -> bool:
            if beside is not None and not finish(draft, state.epoch, beside, lambda _: None):
                return False
            return finish(draft, state.epoch, effect, change)

        try:
            change = await self._performed(state, effect)
        except TableBehindError as error:
            metrics.EFFECT_FAULTS.labels(type(effect).__name__, "APART").inc()
            await self._line.give_up(state.epoch, beside or effect, str(error))
            return
        except Fault as fault:
            change = self._change_for(state, effect, fault)
        try:
            await self._line.run(lambda draft: done(draft, change))
        except BrokenHandError as error:
            metrics.BROKEN.inc()
            self._log.error("hand stopped", table=self._line.table_id, hand=effect.hand, **telemetry.where(error))
            await self._line.run(lambda draft: done(draft, _stop_broken_hand))
        self._line.goes_on()
        if isinstance(effect, SettleHand):
            _count_hand(state, effect)
        elif isinstance(effect, UndoHand):
            metrics.HANDS.labels(state.rulebook.name, "void").inc()

    async def _performed(self, state: TableState, effect: AnyEffect) -> Change:
        """The change that follows from an effect, counted and timed if it was done."""
        kind = type(effect).__name__
        started = self._parts.clock.monotonic()
        with tracing.step(f"effect {kind}", state.name, effect.hand, after=self._trace_left(effect.hand)):
            change = await self._parts.effects.perform(state, effect)
        metrics.EFFECTS.labels(kind).inc()
        metrics.EFFECT_SECONDS.labels(kind).observe(self._parts.clock.monotonic() - started)
        return change

    def _trace_left(self, hand: int) -> str:
        """Where a clock carries a hand on, its trace goes on with the action that came last."""
        present = tracing.parent()
        if present:
            self._last_trace = hand, present
            return ""
        return self._last_trace[1] if self._last_trace[0] == hand else ""

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


def finish(draft: Draft, epoch: int, effect: AnyEffect, change: Change) -> bool:
    """Takes an effect off the list and makes its change, unless somebody has done so already."""
    if not is_next(draft.state, epoch, effect):
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


def _count_hand(state: TableState, settled: SettleHand) -> None:
    hand = state.hand
    if hand is not None and hand.engine is not None and hand.engine.outcome is not None:
        metrics.HANDS.labels(state.rulebook.name, hand.engine.outcome).inc()
        pot = sum(win.amount for win in settled.wins) + settled.rake + settled.carry_out
        metrics.POTS.labels(state.rulebook.name, state.currency).inc(pot)
        metrics.RAKE.labels(state.rulebook.name, state.currency).inc(settled.rake)
