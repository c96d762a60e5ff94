"""A second `fivedraw up` on the same folder goes on with the same balances and the same unfinished hand."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from fivedraw.table.v1 import table_pb2

from services.cli.commands.up import CANNOT_START
from tests.duel import TABLE, Duel, open_duel
from tests.embedded import EmbeddedHouse, embedded_house


async def leave_a_hand_in_its_draw(house: EmbeddedHouse) -> tuple[table_pb2.TableView, list[list[str]]]:
    await open_duel(house)
    async with Duel.at(house) as duel:
        await duel.sit_down()
        await duel.until_stage(1, table_pb2.STAGE_DRAW)
        return duel.view, duel.cards()


def without_clocks(view: table_pb2.TableView) -> table_pb2.TableView:
    """The view without what moves by itself, and without the lobby's part of it."""
    still = table_pb2.TableView()
    still.CopyFrom(view)
    for name in ("table", "waiting", "reason"):
        still.ClearField(name)
    still.turn.ClearField("deadline")
    for seat in still.seats:
        seat.ClearField("time_bank")
    return still


def second_start_meanwhile(folder: Path, port_base: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "services.cli", "up", "--data", str(folder), "--port-base", str(port_base)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.timeout(300)
async def test_the_same_hand_is_played_on_with_the_same_cards_and_chips(tmp_path: Path):
    with embedded_house(tmp_path / "house", "--tables", "0") as first:
        before, cards = await leave_a_hand_in_its_draw(first)
        refused = await asyncio.to_thread(second_start_meanwhile, first.folder.root, first.port_base)
        summary = await asyncio.to_thread(first.end)
    assert refused.returncode == CANNOT_START
    assert "a house is already running" in refused.stderr
    assert summary["ok"]

    with embedded_house(tmp_path / "house", "--tables", "0", port_base=first.port_base) as second:
        async with Duel.at(second) as duel:
            await duel.until(lambda: all(stream.keeper.position is not None for stream in duel.streams))
            assert duel.cards() == cards
            assert (duel.view.table.epoch, duel.view.hand, duel.view.stage) == (
                before.table.epoch,
                1,
                table_pb2.STAGE_DRAW,
            )
            assert [(seat.player, seat.stack_minor) for seat in duel.view.seats] == [
                (seat.player, seat.stack_minor) for seat in before.seats
            ]
            assert duel.view.turn.turn == before.turn.turn
            await duel.until_stage(2, table_pb2.STAGE_DRAW)
            for client, stream in zip(duel.clients, duel.streams, strict=True):
                # What a client makes of the events is what the house itself sees.
                assert without_clocks(stream.mirror.view) == without_clocks(await client.get_table(TABLE))
        summary = await asyncio.to_thread(second.end)
    assert summary["faults"] == []
    assert summary["exit_status"] == 0
