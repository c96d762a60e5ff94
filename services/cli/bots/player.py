"""One bot at one table: it watches, thinks, acts, tops up, buys in again, takes a break, and now and then leaves."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Final

from fivedraw.table.v1 import table_pb2, table_service_pb2
from fivedraw_client import Client, FivedrawError, PlayStream, StaleError, TableStream, UnavailableError, Update
from fivedraw_client.errors import ConflictError, InvalidRequestError, RefusedError

from services.cli.bots import policy
from services.cli.bots.bank import Bank
from services.cli.bots.guard import CardGuard
from services.cli.bots.pace import Pace
from services.cli.bots.record import TableRecord

# How often a bot looks around when nothing happens.
TICK_SECONDS: Final = 0.5
REOPEN_SECONDS: Final = 1.0
BUY_INS_IN_CASH: Final = 10
BREAK_SECONDS: Final = 0.7
# Until the event of one's own sitting down has surely come.
SEATING_SECONDS: Final = 5.0
AWAY_HANDS: Final = 4

_LEAVES = 0.004
_SITS_OUT = 0.012
_TOPS_UP = 0.3
_CHANGES_MUCK = 0.02
_SHOWS = 0.05
_DOES_NOT_CUT = 0.005


class BotPlayer:
    """A bot with a token of its own. `run()` plays until it is cancelled or the table is closed.

    `over_stream` chooses the bidirectional `Play` instead of `WatchTable` and `SubmitAction`. Refusals are counted by
    reason in `refusals` and never end the run; `errors` counts what should not happen.
    """

    def __init__(
        self,
        client: Client,
        table: str,
        *,
        pace: Pace,
        bank: Bank,
        record: TableRecord,
        rng: random.Random,
        over_stream: bool,
    ) -> None:
        self.client = client
        self.guard = CardGuard()
        self.stream: TableStream = client.play(table) if over_stream else client.watch(table)
        self.refusals: Counter[str] = Counter()
        self.actions: Counter[str] = Counter()
        self.errors = 0
        self.last_error = ""
        self._table = table
        self._pace = pace
        self._bank = bank
        self._record = record
        self._rng = rng
        self._temper = policy.Temper.drawn(rng)
        self._stirred = asyncio.Event()
        self._answered: tuple[int, int] = (0, 0)
        self._kept_house_at = -1
        self._away_until_hand = -1
        self._back_at = 0.0
        self._sits_down_again_at = 0.0
        self._least_buy_in_minor = 0

    @property
    def view(self) -> table_pb2.TableView:
        """The table as this bot sees it."""
        return self.stream.mirror.view

    async def run(self) -> None:
        """Plays. Raises only what is a mistake in the bot itself."""
        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(self._read())
            await self._play()
            reading.cancel()

    async def _read(self) -> None:
        while True:
            try:
                async for update in self.stream:
                    self._take_in(update)
            except FivedrawError as error:
                self._note(error)
                # A table that is closed for good answers so; anything else may pass.
                await asyncio.sleep(REOPEN_SECONDS)

    def _take_in(self, update: Update) -> None:
        self.guard.look(update, self.view.your_seat)
        for event in update.events:
            if event.WhichOneof("body") == "cards_dealt" and event.cards_dealt.your_cards:
                self._record.see_deal(event.hand, self.view.your_seat, tuple(event.cards_dealt.your_cards))
        self._stirred.set()

    async def _play(self) -> None:
        while self.view.table.state != table_pb2.TABLE_STATE_CLOSED:
            try:
                async with asyncio.timeout(TICK_SECONDS):
                    await self._stirred.wait()
            except TimeoutError:
                pass
            self._stirred.clear()
            try:
                await self._step()
            except FivedrawError as error:
                self._note(error)

    async def _step(self) -> None:
        if self.stream.keeper.position is None or self.view.table.state != table_pb2.TABLE_STATE_OPEN:
            return
        seat = self.stream.mirror.own_seat()
        if seat is None:
            await self._sit_down()
        elif self.stream.mirror.my_turn():
            await self._take_turn()
        elif not self.stream.mirror.hand_is_on() or not seat.dealt_in:
            await self._keep_house(seat)

    # The hand

    async def _take_turn(self) -> None:
        view = self.view
        turn = (view.hand, view.turn.turn)
        if turn == self._answered or not view.HasField("your_actions"):
            return
        await self._think()
        view, now = self.view, self.stream.mirror.own_seat()
        if now is None or not self.stream.mirror.my_turn() or (view.hand, view.turn.turn) != turn:
            return
        spot = policy.Spot(tuple(view.your_cards), view.your_actions, view.pot_minor, now.stack_minor)
        self._answered = turn
        if spot.legal.cut and self._rng.random() < _DOES_NOT_CUT:
            # Who does not answer has not cut; the hand goes on when the clock says so.
            return
        try:
            await self._act(policy.choose(spot, self._temper, self._rng), turn)
        except UnavailableError:
            # The house is away for longer than the client is patient; the turn is still this bot's.
            self._answered = (0, 0)
            raise

    async def _act(self, action: table_service_pb2.Action, turn: tuple[int, int]) -> None:
        hand, number = turn
        if isinstance(self.stream, PlayStream):
            await self.stream.act(action, hand=hand, turn=number)
        else:
            await self.client.act(self._table, action, hand=hand, turn=number)
        self.actions[table_pb2.ActionKind.Name(action.kind).removeprefix("ACTION_KIND_").lower()] += 1

    async def _think(self) -> None:
        if self._pace.think_most_seconds > 0:
            await asyncio.sleep(self._rng.uniform(self._pace.think_least_seconds, self._pace.think_most_seconds))

    # Between hands

    async def _sit_down(self) -> None:
        now = asyncio.get_running_loop().time()
        if now < self._sits_down_again_at or (self.view.hand < self._away_until_hand and len(self.view.seats) >= 2):
            return
        options = self.view.table.options
        least, most = options.buy_in_min_minor, options.buy_in_max_minor
        wished = self._rng.randint(least, most) if self._rng.random() < 0.7 else most
        # Coming back takes at least what one left with, whatever the table's most is.
        buy_in = max(wished, self._least_buy_in_minor)
        await self._ensure_cash(max(most, buy_in))
        try:
            await self.client.sit_down(self._table, buy_in)
        except InvalidRequestError as refusal:
            # What it left with counts for a while only, and may be more than it had when it asked to leave.
            if refusal.reason in {"REENTRY_BELOW_LEFT_STACK", "BUY_IN_OUT_OF_RANGE"}:
                self._least_buy_in_minor = int(refusal.facts.get("least", 0))
            raise
        self._sits_down_again_at = now + SEATING_SECONDS
        self._kept_house_at = self.view.hand
        self.actions["sit_down"] += 1

    async def _keep_house(self, seat: table_pb2.SeatView) -> None:
        now = asyncio.get_running_loop().time()
        if seat.sitting_out and seat.stack_minor > 0 and now >= self._back_at:
            self._back_at = now + BREAK_SECONDS
            await self.client.update_seat(self._table, sitting_out=False)
            self.actions["sit_in"] += 1
            return
        if self._kept_house_at == self.view.hand and seat.stack_minor > 0:
            return
        if seat.stack_minor == 0:
            if now < self._back_at:
                return
            self._back_at = now + BREAK_SECONDS
        self._kept_house_at = self.view.hand
        await self._see_to_the_seat(seat, now)

    async def _see_to_the_seat(self, seat: table_pb2.SeatView, now: float) -> None:
        options = self.view.table.options
        least, most = options.buy_in_min_minor, options.buy_in_max_minor
        # The seat goes on changing while calls are under way; what is decided on is what it is now.
        stack = seat.stack_minor
        room = most - stack
        if stack == 0 or (stack < least <= room and self._rng.random() < _TOPS_UP):
            amount = self._rng.randint(least, room)
            await self._ensure_cash(most)
            await self.client.top_up(self._table, amount)
            self.actions["top_up" if stack else "buy_in_again"] += 1
            return
        chance = self._rng.random()
        if chance < _LEAVES:
            self._away_until_hand = self.view.hand + AWAY_HANDS
            self._least_buy_in_minor = seat.stack_minor
            await self.client.leave(self._table)
            self._sits_down_again_at = 0.0
            self.actions["leave"] += 1
        elif chance < _LEAVES + _SITS_OUT:
            self._back_at = now + BREAK_SECONDS
            await self.client.update_seat(self._table, sitting_out=True)
            self.actions["sit_out"] += 1
        elif chance < _LEAVES + _SITS_OUT + _CHANGES_MUCK:
            await self.client.update_seat(self._table, auto_muck=not self._rng.getrandbits(1))
        elif chance < _LEAVES + _SITS_OUT + _CHANGES_MUCK + _SHOWS:
            await self._show(seat)

    async def _show(self, seat: table_pb2.SeatView) -> None:
        """Shows a hand that nobody paid to see, if it is one's own to show."""
        if not seat.dealt_in or seat.folded or seat.shown or not self.view.your_cards:
            return
        action = table_service_pb2.Action(kind=table_pb2.ACTION_KIND_SHOW)
        await self._act(action, (self.view.hand, 0))

    async def _ensure_cash(self, buy_in_minor: int) -> None:
        balances = await self.client.balances(self.client.player)
        currency = self.view.table.currency
        cash = next((each.amount_minor for each in balances.cash if each.currency == currency), 0)
        if cash < 2 * buy_in_minor:
            await self._bank.fund(self.client.player, BUY_INS_IN_CASH * buy_in_minor)

    def _note(self, error: FivedrawError) -> None:
        self.refusals[error.reason or type(error).__name__] += 1
        if isinstance(error, RefusedError | InvalidRequestError | ConflictError | StaleError | UnavailableError):
            return
        self.errors += 1
        self.last_error = f"{type(error).__name__} {error}"
