"""Redis comes back with an older append-only file in the middle of a hand: the ledger wins."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from fivedraw.table.v1 import table_pb2, table_service_pb2
from fivedraw.wallet.v1 import wallet_service_pb2
from fivedraw_client import Client, PlayStream
from google.protobuf import duration_pb2

from tests.embedded import PATIENT, EmbeddedHouse, Onlooker, bot_tables, embedded_house

BOTS = bot_tables(2, 3)
STACK_MINOR = 1_000
STEP_SECONDS = 30.0

CALL = table_service_pb2.Action(kind=table_pb2.ACTION_KIND_CALL)
CHECK = table_service_pb2.Action(kind=table_pb2.ACTION_KIND_CHECK)
CUT = table_service_pb2.Action(kind=table_pb2.ACTION_KIND_CUT)
STAND_PAT = table_service_pb2.Action(kind=table_pb2.ACTION_KIND_DISCARD)


class Duel:
    """Two players of the test at a table of their own, who act only when the test says so."""

    table = "tables/duel"

    def __init__(self, clients: list[Client]) -> None:
        self.clients = clients
        self.streams: list[PlayStream] = [client.play(self.table) for client in clients]
        self.events: list[tuple[int, str, int]] = []
        self.reasons: list[str] = []
        self.rebuilt: list[tuple[int, int]] = []
        self._changed = asyncio.Condition()

    async def read(self, number: int) -> None:
        """Keeps one player's view up to date."""
        async for update in self.streams[number]:
            async with self._changed:
                if number == 0:
                    self._note(update)
                self._changed.notify_all()

    def _note(self, update: table_service_pb2.WatchTableResponse) -> None:
        if update.HasField("snapshot") and update.snapshot.reason:
            self.reasons.append(update.snapshot.reason)
        for event in update.events:
            self.events.append((event.epoch, event.WhichOneof("body") or "", event.hand))
            if event.HasField("table_rebuilt"):
                self.rebuilt.append((event.epoch, event.table_rebuilt.voided_hand))

    @property
    def view(self) -> table_pb2.TableView:
        return self.streams[0].mirror.view

    def stacks(self) -> list[int]:
        return [seat.stack_minor for seat in self.view.seats]

    async def until(self, holds) -> None:
        """Waits until something holds of the players' views."""
        async with asyncio.timeout(STEP_SECONDS), self._changed:
            await self._changed.wait_for(holds)

    async def step(self) -> None:
        """Whoever is to act does the least: cuts, calls, checks or stands pat."""
        await self.until(lambda: any(stream.mirror.my_turn() for stream in self.streams))
        number = next(number for number, stream in enumerate(self.streams) if stream.mirror.my_turn())
        view = self.streams[number].mirror.view
        turn = view.turn.turn
        legal = view.your_actions
        action = CUT if legal.cut else STAND_PAT if legal.discard else CHECK if legal.check else CALL
        await self.streams[number].act(action, hand=view.hand, turn=turn)
        await self.until(lambda: all(stream.mirror.view.turn.turn != turn for stream in self.streams))

    async def until_stage(self, hand: int, stage: table_pb2.Stage.ValueType) -> None:
        """Plays on until that stage of that hand."""
        while not (self.view.hand == hand and self.view.stage == stage and self.view.HasField("turn")):
            await self.step()


async def open_duel(house: EmbeddedHouse) -> list[Client]:
    """A heads-up table with time enough, and two players with cash."""
    keys = house.keys()
    async with house.client("olga", "operator") as operator:
        overrides = table_pb2.GameOptions(seats=2, hand_interval=duration_pb2.Duration(seconds=0))
        for clock in (overrides.action_clock, overrides.draw_clock):
            clock.FromSeconds(120)
        await operator.create_table("duel", rulebook="rulebooks/house", overrides=overrides)
        for player in ("alice", "bob"):
            await operator.create_player(player, player)
            await operator.deposit(f"players/{player}", 10 * STACK_MINOR)
    return [
        Client(house.endpoints(), keys.mint(player, "player"), player=f"players/{player}", policy=PATIENT)
        for player in ("alice", "bob")
    ]


def roll_back(house: EmbeddedHouse, older: Path) -> None:
    """Redis dies and starts again with an older append-only file, as after a failover that lost the last writes."""
    files = house.folder.redis / "appendonlydir"
    house.supervisor.stop_process("redis")
    shutil.rmtree(files)
    shutil.copytree(older, files)
    for snapshot in house.folder.redis.glob("*.rdb"):
        snapshot.unlink()
    house.supervisor.start_process("redis")


@pytest.mark.timeout(300)
async def test_the_ledger_wins_the_hand_is_void_and_play_goes_on(tmp_path: Path):
    older = tmp_path / "older"
    options = ["--tables", str(len(BOTS)), "--players", str(BOTS[0].players), "--speed", "brisk"]
    with embedded_house(tmp_path / "house", *options) as house:
        duel = Duel(await open_duel(house))
        async with asyncio.TaskGroup() as tasks, Onlooker(BOTS).watching(house) as seen:
            reading = [tasks.create_task(duel.read(number)) for number in range(2)]
            for client in duel.clients:
                await client.sit_down(duel.table, STACK_MINOR)

            # The first hand is played out to its draw; then a copy is taken, and play goes on into the second hand.
            await duel.until_stage(1, table_pb2.STAGE_DRAW)
            await asyncio.to_thread(shutil.copytree, house.folder.redis / "appendonlydir", older)
            await duel.until_stage(2, table_pb2.STAGE_DRAW)
            before_hand = {seat.seat: seat.stack_minor + 10 for seat in duel.view.seats}
            epoch = duel.view.table.epoch

            await asyncio.to_thread(roll_back, house, older)

            await duel.until(lambda: all(stream.mirror.view.table.epoch > epoch for stream in duel.streams))
            assert duel.view.table.epoch == epoch + 1
            assert duel.reasons, "the new snapshot says why it came"
            assert {seat.seat: seat.stack_minor + seat.bet_minor for seat in duel.view.seats} == before_hand
            await duel.until_stage(3, table_pb2.STAGE_DRAW)

            bots_before = seen.hands()
            await seen.until_all_go_on(bots_before, 1, STEP_SECONDS)
            for task in reading:
                task.cancel()
        async with house.client("anna", "auditor") as auditor:
            ledger = await auditor.ledger_summary()
            request = wallet_service_pb2.ListEntriesRequest(player="players/bob", table=duel.table, hand=2)
            entries = (await auditor.caller.call(auditor.wallet.ListEntries, request)).entries
        assert wallet_service_pb2.TRANSFER_CODE_VOID in {entry.code for entry in entries}
        assert sum(entry.amount_minor for entry in entries) == 0
        assert [balance.amount_minor for balance in ledger.imbalance if balance.amount_minor] == []
        for client in duel.clients:
            cash = await client.balances(client.player)
            # Ten times the stack came in; all of it is still there, whoever won the first hand.
            assert cash.cash[0].amount_minor == 9 * STACK_MINOR
            await client.close()
        summary = await asyncio.to_thread(house.end)

    assert [stream.violations for stream in duel.streams] == [[], []]
    assert seen.broken_promises() == []
    assert summary["faults"] == []
    assert summary["exit_status"] == 0
