"""A table with players who do exactly what a test tells them, on virtual time; everything behind it is real."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fivedraw.table.v1 import table_pb2, table_service_pb2
from fivedraw.table.v1.event_pb2 import TableEvent

from services.runtime.auth import Identity, acting_as
from services.runtime.errors import Fault
from services.runtime.virtual import VirtualClock, run_virtual
from tests.simulation.house import OPERATOR, Replica, SimulatedHouse

BUY_IN = 500
pb = table_service_pb2


class Seated:
    """One player: acts when told to, and records all it sees."""

    def __init__(self, tester: Tester, identity: Identity) -> None:
        self.tester = tester
        self.identity = identity
        self.events: list[TableEvent] = []
        self.snapshots: list[table_pb2.TableView] = []
        self.stream: asyncio.Task[None] | None = None

    @property
    def player(self) -> str:
        return self.identity.player

    async def call(self, method: str, request: Any) -> Any:
        return await self.tester.house.as_person(self.identity, method, request)

    async def ask(self, method: str, **fields: Any) -> Any:
        """Calls a method of the table with a fresh request id."""
        request = getattr(pb, f"{method}Request")(
            table=self.tester.name, request_id=self.tester.house.next_id(), **fields
        )
        return await self.call(method, request)

    async def sit(self, seat: int = 0, buy_in: int = BUY_IN) -> table_pb2.SeatView:
        return (await self.ask("SitDown", seat=seat, buy_in_minor=buy_in)).seat

    async def view(self) -> table_pb2.TableView:
        return (await self.call("GetTable", pb.GetTableRequest(name=self.tester.name))).view

    async def act(self, kind: int, **fields: Any) -> int:
        """Acts in the present turn."""
        view = await self.view()
        request = pb.SubmitActionRequest(
            table=self.tester.name,
            hand=view.hand,
            turn=view.turn.turn,
            action_id=self.tester.house.next_id(),
            action=pb.Action(kind=kind, **fields),
        )
        return (await self.call("SubmitAction", request)).sequence

    async def watch(self, replica: Replica | None = None) -> None:
        """Opens a stream, through this process or any, and records it."""
        replica = replica or self.tester.house.any_replica()
        with acting_as(self.identity):
            stream = await replica.api.viewing(self.player, pb.WatchTableRequest(table=self.tester.name))

        async def record() -> None:
            async for response in stream:
                if response.HasField("snapshot"):
                    self.snapshots.append(response.snapshot)
                self.events.extend(response.events)

        self.stream = asyncio.create_task(record())
        await asyncio.sleep(0.01)

    async def hang_up(self) -> None:
        if self.stream is not None:
            self.stream.cancel()
            await asyncio.gather(self.stream, return_exceptions=True)

    def saw(self, body: str) -> list[Any]:
        return [getattr(event, body) for event in self.events if event.WhichOneof("body") == body]


class Tester:
    """One table of a simulated house."""

    __test__ = False

    def __init__(self, house: SimulatedHouse) -> None:
        self.house = house
        self.table = "t"
        self.players: list[Seated] = []

    @property
    def name(self) -> str:
        return f"tables/{self.table}"

    async def open(self, rulebook: str = "clocked", **overrides: Any) -> None:
        await self.house.open_table(self.table, rulebook, **overrides)

    async def player(self) -> Seated:
        identity = await self.house.make_player(f"p{len(self.players) + 1}")
        self.players.append(Seated(self, identity))
        return self.players[-1]

    async def seated(self, count: int, **sit: Any) -> list[Seated]:
        """So many players in seats 1 to `count`; the first hand begins within a second."""
        players = [await self.player() for _ in range(count)]
        for seat, player in enumerate(players, 1):
            await player.sit(seat, **sit)
        return players

    async def operator(self, method: str, **fields: Any) -> Any:
        request = getattr(pb, f"{method}Request")
        names = request.DESCRIPTOR.fields_by_name
        if "request_id" in names:
            fields["request_id"] = self.house.next_id()
        if "table" in names:
            fields["table"] = self.name
        return await self.house.as_person(OPERATOR, method, request(**fields))

    async def state(self) -> Any:
        host = await self.house.any_replica().house.host(self.table)
        return (await host.view_state())[0]

    async def turn(self) -> Seated:
        """Whose turn it is, as soon as it is somebody's."""
        for _ in range(2_000):
            state = await self.state()
            if state.hand is not None and state.hand.turn and state.clock is not None:
                player = state.hand.players[state.clock.seat]
                return next(each for each in self.players if each.player == player)
            await asyncio.sleep(0.01)
        raise AssertionError("no turn came")

    async def until(self, condition: Callable[[Any], bool], seconds: float = 200.0) -> Any:
        """The table's state as soon as it is as wanted."""
        for _ in range(int(seconds * 20)):
            state = await self.state()
            if condition(state):
                return state
            await asyncio.sleep(0.05)
        raise AssertionError("it never came to that")

    async def play_out(self) -> None:
        """Ends the hand: whoever has the turn checks or calls, and stands pat."""
        hand = (await self.state()).last_hand
        while True:
            state = await self.state()
            if state.playing is None or state.last_hand != hand:
                return
            if state.hand.turn and state.clock is not None:
                await self.passive(await self.turn())
            else:
                await asyncio.sleep(0.01)

    async def passive(self, player: Seated) -> None:
        """The least that this player can do to stay in."""
        legal = (await player.view()).your_actions
        if legal.cut:
            await player.act(table_pb2.ACTION_KIND_CUT)
        elif legal.discard:
            await player.act(table_pb2.ACTION_KIND_DISCARD)
        elif legal.check:
            await player.act(table_pb2.ACTION_KIND_CHECK)
        elif legal.call:
            await player.act(table_pb2.ACTION_KIND_CALL)
        else:
            await player.act(table_pb2.ACTION_KIND_FOLD)


def on_virtual_time(test: Callable[[Tester], Awaitable[None]]) -> Callable[[], None]:
    """Turns an async test of a `Tester` into a plain one; audits the ledger after it, and what the house leaves."""

    def run() -> None:
        async def main() -> None:
            house = SimulatedHouse(VirtualClock(asyncio.get_running_loop()), 1, replicas=1)  # type: ignore[arg-type]
            await house.start()
            tester = Tester(house)
            await test(tester)
            for player in tester.players:
                await player.hang_up()
            assert await house.check() == []
            await house.stop()
            assert asyncio.all_tasks() == {asyncio.current_task()}, "left behind by the house"

        run_virtual(main())

    run.__name__ = test.__name__
    run.__doc__ = test.__doc__
    return run


async def refused(reason: str, call: Awaitable[Any]) -> Fault:
    """The refusal of a call, which must have this reason."""
    with pytest.raises(Fault) as caught:
        await call
    assert caught.value.reason == reason, str(caught.value)
    return caught.value
