"""Tables of one limit each, played on virtual time by bots that do whatever a history must be able to tell."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fivedraw.history.v1 import history_service_pb2
from fivedraw.table.v1 import table_pb2, table_service_pb2
from fivedraw.wallet.v1 import wallet_service_pb2

from services.history.reading import HandReader
from services.history.writing import FinishedHand
from services.runtime.auth import Identity
from services.runtime.virtual import VirtualClock
from tests.simulation.house import OPERATOR, SimulatedHouse
from tests.simulation.players import Bot

AUDITOR = Identity("person", "the-auditor", frozenset({"auditor"}))
BANKROLL_MINOR = 100_000_000
LOOK_SECONDS = 20.0
AWAY_SECONDS = (20.0, 60.0)
# With less nobody sits out: a missed blind that takes the last chip is what a scenario has no words for.
LEAST_STACK = 500
# In so many of a hundred hands whoever faces a bet folds, so that some hands are walks.
FOLDED_HANDS = 8


@dataclass(frozen=True)
class Room:
    """One table: its options, its currency, and how its bots are."""

    name: str
    players: int
    currency: str
    options: Mapping[str, Any]
    buy_in: int
    # Of a hundred turns, how many a bot sleeps through.
    sleeps: int = 4
    # After how many of a hundred hands it sits out for a while, and so misses its blinds.
    sits_out: int = 2
    # Fewest cards that a bot gives up; many of them run the stub short.
    discards: int = 0


_STAKES = {"small_blind_minor": 50, "big_blind_minor": 100, "ante_minor": 10}
_RAKE = {"rake_basis_points": 500, "rake_cap_minor": 300}
ROOMS = (
    Room("no-limit", 8, "USD", {"betting": table_pb2.BETTING_NO_LIMIT, "seats": 8}, buy_in=2_000, discards=2),
    Room("pot-limit", 8, "EUR", {"betting": table_pb2.BETTING_POT_LIMIT, "seats": 8}, buy_in=2_000),
    Room(
        "fixed-limit",
        7,
        "CHIPS",
        {
            "betting": table_pb2.BETTING_FIXED_LIMIT,
            "seats": 7,
            "small_bet_minor": 100,
            "big_bet_minor": 200,
            "bets_per_round": 4,
        },
        buy_in=2_000,
        discards=2,
    ),
)


@dataclass
class Guest(Bot):
    """A bot that sleeps, folds whole hands, goes all in, and draws much."""

    room: Room = ROOMS[0]
    hand: int = 0

    async def run(self) -> None:
        waking = asyncio.create_task(self._wake_up())
        try:
            await super().run()
        finally:
            waking.cancel()

    async def _wake_up(self) -> None:
        """Comes back after a while of sitting out, whether or not the others still play."""
        while True:
            await asyncio.sleep(self.rng.uniform(*AWAY_SECONDS))
            own = await self._own_seat()
            if own is not None and own.sitting_out:
                await self._sit_out(False)

    async def _own_seat(self) -> table_pb2.SeatView | None:
        request = table_service_pb2.GetTableRequest(name=self.name)
        view = (await self.house.as_person(self.identity, "GetTable", request)).view
        return next((seat for seat in view.seats if seat.player == self.identity.player), None)

    async def _sit_out(self, out: bool) -> None:
        request = table_service_pb2.UpdateSeatRequest(table=self.name, request_id=self.house.next_id(), sitting_out=out)
        await self._try("UpdateSeat", request)

    async def _between_hands(self) -> None:
        own = await self._own_seat()
        if own is not None and not own.stack_minor:
            request = table_service_pb2.TopUpRequest(
                table=self.name, request_id=self.house.next_id(), amount_minor=self.buy_in
            )
            await self._try("TopUp", request)
        elif own is not None and own.stack_minor > LEAST_STACK and self.rng.randrange(100) < self.room.sits_out:
            await self._sit_out(True)

    async def _act(self, hand: int, turn: int, legal: table_pb2.LegalActions) -> None:
        self.hand = hand
        if self.rng.randrange(100) < self.room.sleeps:
            return
        await super()._act(hand, turn, legal)

    def _choose(self, legal: table_pb2.LegalActions) -> table_service_pb2.Action:
        action = table_service_pb2.Action
        if legal.discard and self.room.discards and self.rng.random() < 0.7:
            count = self.rng.randint(min(self.room.discards, legal.max_discards), legal.max_discards)
            return action(kind=table_pb2.ACTION_KIND_DISCARD, cards=self.rng.sample(self.cards, count))
        folds = random.Random(f"{self.table}/{self.hand}").randrange(100) < FOLDED_HANDS
        if folds and legal.fold and not legal.check:
            return action(kind=table_pb2.ACTION_KIND_FOLD)
        return super()._choose(legal)


async def open_room(house: SimulatedHouse, room: Room, seed: int) -> list[Guest]:
    """The room's table and its guests, who have money and no seat yet."""
    options = table_pb2.GameOptions(**_STAKES, **_RAKE, **room.options)
    options.hand_interval.FromMilliseconds(500)
    request = table_service_pb2.CreateTableRequest(
        request_id=house.next_id(),
        table_id=room.name,
        rulebook="rulebooks/house",
        currency=room.currency,
        overrides=options,
        display_name=f"Room {room.name}",
    )
    await house.as_person(OPERATOR, "CreateTable", request)
    guests = []
    for number in range(1, room.players + 1):
        identity = await house.make_player(f"{room.name}-{number}")
        deposit = wallet_service_pb2.DepositRequest(
            request_id=house.next_id(),
            player=identity.player,
            currency=room.currency,
            amount_minor=BANKROLL_MINOR,
        )
        await house.cashier("Deposit", deposit)
        rng = random.Random(f"{seed}/{identity.id}")
        guests.append(Guest(house, identity, room.name, rng, room.buy_in, room=room))
    return guests


class Rooms:
    """A house with these rooms, played until each has written so many hands."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.clock = VirtualClock(asyncio.get_running_loop())  # type: ignore[arg-type]
        self.house = SimulatedHouse(self.clock, seed, replicas=1)  # type: ignore[arg-type]
        self.guests: dict[str, list[Guest]] = {}

    async def play(self, rooms: tuple[Room, ...], hands: int) -> None:
        """Plays, then lets everything come to its end."""
        await self.house.start()
        for room in rooms:
            self.guests[room.name] = await open_room(self.house, room, self.seed)
        playing = [asyncio.create_task(guest.run()) for guests in self.guests.values() for guest in guests]
        writing = asyncio.create_task(self._write_on())
        while await self._fewest_hands() < hands:  # noqa: ASYNC110 - it is virtual time that passes
            await asyncio.sleep(LOOK_SECONDS)
        for task in [*playing, writing]:
            task.cancel()
        await asyncio.gather(*playing, writing, return_exceptions=True)
        await asyncio.sleep(500)
        assert await self.house.work_all() == []
        assert await self.house.check() == []

    async def _write_on(self) -> None:
        while True:
            await asyncio.sleep(1)
            tasks, self.house.pending_tasks = self.house.pending_tasks, []
            for task in tasks:
                await self.house.writer.write_hand(FinishedHand(*task))

    async def _fewest_hands(self) -> int:
        return min([record.last_hand for record in await self.house.registry.list_tables("", 100)])

    def reader(self) -> HandReader:
        """The history as the service reads it, without an auditors' delay."""
        return HandReader(self.house.databases["history"], self.house.sealer, self.clock)

    async def export(self, caller: Identity, room: str, form: history_service_pb2.HandFormat.ValueType) -> str:
        """A room's hands as one file; nothing may be left out of it."""
        request = history_service_pb2.ExportHandsRequest(format=form, table=f"tables/{room}")
        pieces = [piece async for piece in self.reader().export_hands(caller, request)]
        assert sum(piece.left_out for piece in pieces) == 0
        return "".join(piece.text for piece in pieces)
