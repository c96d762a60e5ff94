"""One table in this process: what callers ask of it, its clocks, and who is connected to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from services.runtime.errors import Fault
from services.table import asks, core, metrics, play, seating, waiting
from services.table.bus import Batch, told_absent
from services.table.draft import REFUSED, Draft
from services.table.driver import Driver
from services.table.fanout import Fanout
from services.table.line import Line
from services.table.parts import Parts
from services.table.presence import Presence
from services.table.state import Answered, TableState
from services.table.store import Outage

ANSWER_POLL_SECONDS: Final = 0.5


class Host:
    """One table. Every change goes through `run`; `ask` is for callers, `sweep` for clocks and leftover effects."""

    def __init__(self, table_id: str, parts: Parts) -> None:
        self.table_id = table_id
        self._parts = parts
        self._line = Line(table_id, parts)
        self._driver = Driver(self._line, parts)
        self._presence = Presence(table_id, parts.clock, self._connection)

    @property
    def fanout(self) -> Fanout:
        """The watchers of this table in this process."""
        return self._line.fanout

    @property
    def is_idle(self) -> bool:
        """Whether nobody watches and nothing is under way here, so that the cache may be dropped."""
        is_still = self._driver.is_idle and self._presence.is_idle
        return self.fanout.is_empty and not self._line.is_busy and is_still

    async def view_state(self, fresh: bool = True) -> tuple[TableState, int]:
        """The table as it is stored now, and its clock's deadline or 0. `fresh=False` may be a moment old."""
        return await self._line.view(fresh)

    async def run(self, step: Callable[[Draft], bool]) -> bool:
        """Runs one step, commits it, and sees to the effects it leaves. See `Line.run`."""
        is_done = await self._line.run(step)
        if is_done:
            self.kick()
        return is_done

    def kick(self) -> None:
        """Starts carrying out effects, if there are any and nobody here is at it."""
        self._driver.kick()

    def on_published(self, batch: Batch) -> None:
        """A batch that some process published."""
        self._line.on_published(batch)
        for player in told_absent(batch):
            self._presence.told_absent(player)

    def now_ms(self) -> int:
        """The store's time by this process's clock and the last answer seen."""
        return self._line.now_ms()

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
        state = self._line.state
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
            self._line.adopted.clear()
            try:
                async with asyncio.timeout(min(left, ANSWER_POLL_SECONDS)):
                    await self._line.adopted.wait()
            except TimeoutError:
                await self.view_state()
                self.kick()
            answer = self._answer_of(asked)
            if answer:
                return answer

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
            await self.run(revive)
        return self._line.next_due_ms()

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
        await self._line.recheck()
        self.kick()

    async def close(self) -> None:
        """Ends what is under way here, for good; what effects were left is carried out by whoever comes next."""
        await asyncio.gather(self._driver.close(), self._presence.close())

    def arrived(self, player: str) -> None:
        """A stream of this player began here."""
        self._presence.arrived(player)

    def departed(self, player: str) -> None:
        """A stream of this player ended here."""
        self._presence.departed(player)

    def check_presence(self, state: TableState, player: str) -> None:
        """Has a player who watches here told as connected, if this state of the table says otherwise."""
        seat = state.seat_of(player)
        if seat is not None and not seat.connected:
            self._presence.told_absent(player)

    async def _connection(self, player: str, is_here: bool) -> bool:
        return await self.run(lambda draft: seating.connection(draft, player, is_here))


def revive(draft: Draft) -> bool:
    """Sets off what should be under way and is not: a turn, the clock to the next hand, or a clock whose end is lost.

    The end of a clock is kept beside the state. A store that lost all takes the next commit in whole, but where that
    commit left the clock as it was, nothing would ever end it.
    """
    clock = draft.state.clock
    if clock is not None and clock.left_ms < 0 and not draft.deadline_ms:
        if clock.seat:
            play.extend_turn(draft)
        else:
            draft.start_clock(clock)
        return True
    before = draft.state.sequence, draft.state.clock, draft.state.effects
    if draft.state.mode != "paused":
        play.advance(draft)
    seating.between_hands(draft)
    return (draft.state.sequence, draft.state.clock, draft.state.effects) != before
