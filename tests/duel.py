"""Two players of a test at a heads-up table of their own, who act only when the test says so."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Self

from fivedraw.table.v1 import table_pb2, table_service_pb2
from fivedraw_client import Client, PlayStream
from google.protobuf import duration_pb2

from tests.embedded import PATIENT, EmbeddedHouse

TABLE = "tables/duel"
PLAYERS = ("alice", "bob")
STACK_MINOR = 1_000
CASH_MINOR = 10 * STACK_MINOR
STEP_SECONDS = 30.0
CLOCK_SECONDS = 120

CALL = table_service_pb2.Action(kind=table_pb2.ACTION_KIND_CALL)
CHECK = table_service_pb2.Action(kind=table_pb2.ACTION_KIND_CHECK)
CUT = table_service_pb2.Action(kind=table_pb2.ACTION_KIND_CUT)
STAND_PAT = table_service_pb2.Action(kind=table_pb2.ACTION_KIND_DISCARD)


class Duel:
    """Both players' streams, read in the background."""

    def __init__(self, clients: list[Client]) -> None:
        self.clients = clients
        self.streams: list[PlayStream] = [client.play(TABLE) for client in clients]
        self.reasons: list[str] = []
        self._changed = asyncio.Condition()

    @classmethod
    @contextlib.asynccontextmanager
    async def at(cls, house: EmbeddedHouse) -> AsyncIterator[Self]:
        """The duel as it stands in a house; `open_duel` makes it first."""
        keys = house.keys()
        clients = [
            Client(house.endpoints(), keys.mint(player, "player"), player=f"players/{player}", policy=PATIENT)
            for player in PLAYERS
        ]
        duel = cls(clients)
        try:
            async with asyncio.TaskGroup() as tasks:
                reading = [tasks.create_task(duel._read(stream)) for stream in duel.streams]
                yield duel
                for task in reading:
                    task.cancel()
        finally:
            for client in clients:
                await client.close()

    async def _read(self, stream: PlayStream) -> None:
        async for update in stream:
            async with self._changed:
                if update.HasField("snapshot") and update.snapshot.reason:
                    self.reasons.append(update.snapshot.reason)
                self._changed.notify_all()

    @property
    def view(self) -> table_pb2.TableView:
        """The table as the first player sees it."""
        return self.streams[0].mirror.view

    def cards(self) -> list[list[str]]:
        """What each player holds."""
        return [list(stream.mirror.view.your_cards) for stream in self.streams]

    async def sit_down(self) -> None:
        """Both take a seat."""
        for client in self.clients:
            await client.sit_down(TABLE, STACK_MINOR)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Waits until something holds of the players' views."""
        async with asyncio.timeout(STEP_SECONDS), self._changed:
            await self._changed.wait_for(holds)

    async def step(self) -> None:
        """Whoever is to act does the least: cuts, calls, checks or stands pat."""
        await self.until(lambda: any(stream.mirror.my_turn() for stream in self.streams))
        stream = next(stream for stream in self.streams if stream.mirror.my_turn())
        view = stream.mirror.view
        turn = view.turn.turn
        legal = view.your_actions
        action = CUT if legal.cut else STAND_PAT if legal.discard else CHECK if legal.check else CALL
        await stream.act(action, hand=view.hand, turn=turn)
        await self.until(lambda: all(each.mirror.view.turn.turn != turn for each in self.streams))

    async def until_stage(self, hand: int, stage: table_pb2.Stage.ValueType) -> None:
        """Plays on until that stage of that hand."""
        while not all(
            stream.mirror.view.hand == hand
            and stream.mirror.view.stage == stage
            and stream.mirror.view.HasField("turn")
            for stream in self.streams
        ):
            await self.step()


async def open_duel(house: EmbeddedHouse) -> None:
    """The table, with clocks that do not run out in a test, and two players with cash."""
    clock = duration_pb2.Duration(seconds=CLOCK_SECONDS)
    overrides = table_pb2.GameOptions(
        seats=2, hand_interval=duration_pb2.Duration(), action_clock=clock, draw_clock=clock
    )
    async with house.client("olga", "operator") as operator:
        await operator.create_table("duel", rulebook="rulebooks/house", overrides=overrides)
        for player in PLAYERS:
            await operator.create_player(player, player)
            await operator.deposit(f"players/{player}", CASH_MINOR)
