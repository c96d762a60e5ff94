"""A bot of the simulation: it watches its table and acts at random among what it is told it may do."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from fivedraw.table.v1 import table_pb2, table_service_pb2

from services.runtime.auth import Identity, acting_as
from services.runtime.errors import Fault
from tests.simulation.house import Seen, SimulatedHouse, note

BUY_IN = 500
# What may happen to anybody whose table is rebuilt, or whose message was slow; anything else is a mistake of somebody.
EXPECTED = {"STALE_TURN", "NOT_YOUR_TURN", "SERVICE_UNAVAILABLE", "TABLE_BUSY", "DEADLINE_EXCEEDED", "TABLE_PAUSED"}


async def _until(
    dead: asyncio.Event, stream: AsyncIterator[table_service_pb2.WatchTableResponse]
) -> AsyncIterator[table_service_pb2.WatchTableResponse]:
    """A stream that breaks when its server dies."""
    ended = asyncio.create_task(dead.wait())
    try:
        while True:
            following = asyncio.ensure_future(anext(stream))
            await asyncio.wait({following, ended}, return_when=asyncio.FIRST_COMPLETED)
            if ended.done():
                following.cancel()
                raise Fault("SERVICE_UNAVAILABLE", "the server died")
            yield await following
    finally:
        ended.cancel()


@dataclass
class Bot:
    """One player at one table."""

    house: SimulatedHouse
    identity: Identity
    table: str
    rng: random.Random
    buy_in: int = BUY_IN
    restless: float = 0.0
    asked: int = 0
    seen: Seen = field(default_factory=Seen)
    cards: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    actions: int = 0

    @property
    def name(self) -> str:
        return f"tables/{self.table}"

    async def run(self) -> None:
        growing_tired = asyncio.create_task(self._tire_of_waiting())
        try:
            while True:
                try:
                    await self._sit_down()
                    await self._play()
                except Fault as fault:
                    self._note(fault)
                    await asyncio.sleep(0.5)
        finally:
            growing_tired.cancel()

    async def _tire_of_waiting(self) -> None:
        """Where all sit out or are out of chips no hand ends, and with it nothing else would bring anybody back."""
        while True:
            await asyncio.sleep(self.rng.uniform(15.0, 45.0))
            try:
                own = await self._own_seat()
                if own is not None and own.stack_minor == 0:
                    await self._top_up(self.buy_in)
                elif own is not None and own.sitting_out:
                    await self._sit_in()
            except Fault as fault:
                self._note(fault)

    async def _sit_down(self) -> None:
        request = table_service_pb2.SitDownRequest(
            table=self.name, request_id=self.house.next_id(), buy_in_minor=self.asked or self.buy_in
        )
        try:
            await self.house.as_person(self.identity, "SitDown", request)
        except Fault as fault:
            if fault.reason in ("REENTRY_BELOW_LEFT_STACK", "BUY_IN_OUT_OF_RANGE"):
                # What one left with binds for some time only.
                self.asked = int(fault.metadata["least"])
            elif fault.reason not in ("ALREADY_SEATED", "SEAT_TAKEN", *EXPECTED):
                raise
            await asyncio.sleep(0.2)

    async def _play(self) -> None:
        request = table_service_pb2.WatchTableRequest(
            table=self.name, resume_after=self.seen.sequence, epoch=self.seen.epoch
        )
        replica = self.house.any_replica()
        with acting_as(self.identity):
            stream = await replica.api.viewing(self.identity.player, request)
        async for response in _until(replica.dead, stream):
            if self.rng.random() < self.restless / 50:
                # The connection breaks; the table notices if it does not come back soon.
                await asyncio.sleep(self.rng.uniform(0.1, 20.0))
                return
            note(self.seen, response, self.identity.id)
            if response.HasField("snapshot"):
                view = response.snapshot
                self.cards = list(view.your_cards)
                if not view.your_seat:
                    return
                if view.HasField("your_actions"):
                    await self._act(view.hand, view.turn.turn, view.your_actions)
            for event in response.events:
                await self._on(event)

    async def _on(self, event: object) -> None:
        body = event.WhichOneof("body")  # type: ignore[attr-defined]
        if body == "cards_dealt":
            self.cards = list(event.cards_dealt.your_cards)  # type: ignore[attr-defined]
        elif body == "cards_discarded" and event.cards_discarded.your_discards:  # type: ignore[attr-defined]
            gone = set(event.cards_discarded.your_discards)  # type: ignore[attr-defined]
            self.cards = [card for card in self.cards if card not in gone]
        elif body == "cards_drawn":
            self.cards += list(event.cards_drawn.your_cards)  # type: ignore[attr-defined]
        elif body == "turn_started":
            told = event.turn_started  # type: ignore[attr-defined]
            if told.HasField("your_actions"):
                await self._act(event.hand, told.turn.turn, told.your_actions)  # type: ignore[attr-defined]
        elif body in ("hand_settled", "hand_voided"):
            await self._between_hands()

    async def _act(self, hand: int, turn: int, legal: table_pb2.LegalActions) -> None:
        await asyncio.sleep(self.rng.uniform(0.01, 0.3))
        if self.rng.random() < self.restless / 4:
            return  # asleep: the clock will act
        request = table_service_pb2.SubmitActionRequest(
            table=self.name, hand=hand, turn=turn, action_id=self.house.next_id(), action=self._choose(legal)
        )
        for _ in range(3):
            try:
                await self.house.as_person(self.identity, "SubmitAction", request)
            except Fault as fault:
                self._note(fault)
                if fault.reason not in ("SERVICE_UNAVAILABLE", "TABLE_BUSY"):
                    return
                await asyncio.sleep(0.1)
            else:
                self.actions += 1
                return

    def _choose(self, legal: table_pb2.LegalActions) -> table_service_pb2.Action:
        action = table_service_pb2.Action
        if legal.cut:
            return action(kind=table_pb2.ACTION_KIND_CUT, cut=self.rng.randbytes(8))
        if legal.discard:
            count = self.rng.randint(0, legal.max_discards)
            return action(kind=table_pb2.ACTION_KIND_DISCARD, cards=self.rng.sample(self.cards, count))
        choices = []
        if legal.check:
            choices += [action(kind=table_pb2.ACTION_KIND_CHECK)] * 4
        if legal.call:
            choices += [action(kind=table_pb2.ACTION_KIND_CALL)] * 5
        if legal.fold:
            choices += [action(kind=table_pb2.ACTION_KIND_FOLD)]
        for kind, name in ((table_pb2.ACTION_KIND_BET, "bet"), (table_pb2.ACTION_KIND_RAISE, "raise")):
            if legal.HasField(name):
                span = getattr(legal, name)
                level = self.rng.choice([span.least_minor, span.most_minor, (span.least_minor + span.most_minor) // 2])
                choices += [action(kind=kind, to_minor=level)] * 2
        return self.rng.choice(choices)

    async def _between_hands(self) -> None:
        draw = self.rng.random()
        if self.rng.random() < self.restless:
            chat = table_service_pb2.SendChatRequest(
                table=self.name, request_id=self.house.next_id(), text=f"nice hand, {self.rng.randint(1, 99)}"
            )
            await self._try("SendChat", chat)
        if draw < self.restless / 3:
            request = table_service_pb2.LeaveTableRequest(table=self.name, request_id=self.house.next_id())
            await self._try("LeaveTable", request)
        elif draw < self.restless:
            sit_out = table_service_pb2.UpdateSeatRequest(
                table=self.name, request_id=self.house.next_id(), sitting_out=self.rng.random() < 0.5
            )
            await self._try("UpdateSeat", sit_out)
        view = await self.house.as_person(self.identity, "GetTable", table_service_pb2.GetTableRequest(name=self.name))
        if view.view.seed_commitment:
            seed = table_service_pb2.SetPlayerSeedRequest(
                table=self.name,
                request_id=self.house.next_id(),
                commitment=view.view.seed_commitment,
                seed=self.rng.randbytes(8),
            )
            await self._try("SetPlayerSeed", seed)
        own = next((seat for seat in view.view.seats if seat.player == self.identity.player), None)
        if own is None:
            raise Fault("NOT_SEATED", "left")
        if own.stack_minor == 0:
            await self._top_up(self.buy_in)
        elif own.stack_minor < self.buy_in and self.rng.random() < self.restless:
            await self._top_up(self.buy_in - own.stack_minor)
        elif own.sitting_out and self.rng.random() < 0.5:
            await self._sit_in()

    async def _own_seat(self) -> table_pb2.SeatView | None:
        view = await self.house.as_person(self.identity, "GetTable", table_service_pb2.GetTableRequest(name=self.name))
        return next((seat for seat in view.view.seats if seat.player == self.identity.player), None)

    async def _top_up(self, amount: int) -> None:
        request = table_service_pb2.TopUpRequest(table=self.name, request_id=self.house.next_id(), amount_minor=amount)
        await self._try("TopUp", request)

    async def _sit_in(self) -> None:
        request = table_service_pb2.UpdateSeatRequest(
            table=self.name, request_id=self.house.next_id(), sitting_out=False
        )
        await self._try("UpdateSeat", request)

    async def _try(self, method: str, request: object) -> None:
        try:
            await self.house.as_person(self.identity, method, request)
        except Fault as fault:
            self._note(fault)

    def _note(self, fault: Fault) -> None:
        fine = EXPECTED | {
            "NOT_SEATED",
            "BUY_IN_OUT_OF_RANGE",
            "SLOW_CONSUMER",
            "COMMITMENT_NOT_OPEN",
            "REENTRY_BELOW_LEFT_STACK",
            "SEAT_TAKEN",
        }
        if fault.reason not in fine:
            self.unexpected.append(str(fault))
