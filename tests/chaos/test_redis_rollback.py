"""Redis comes back with an older append-only file in the middle of a hand: the ledger wins."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from fivedraw.table.v1 import table_pb2
from fivedraw.wallet.v1 import wallet_service_pb2

from tests.duel import CASH_MINOR, STACK_MINOR, STEP_SECONDS, TABLE, Duel, open_duel
from tests.embedded import EmbeddedHouse, Onlooker, bot_tables, embedded_house

BOTS = bot_tables(2, 3)


def roll_back(house: EmbeddedHouse, older: Path) -> None:
    """Redis stops and starts again with an older append-only file, as after a failover that lost the last writes."""
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
        await open_duel(house)
        async with Duel.at(house) as duel, Onlooker(BOTS).watching(house) as seen:
            await duel.sit_down()
            # A copy is taken in the draw of the first hand; then play goes on into the draw of the second.
            await duel.until_stage(1, table_pb2.STAGE_DRAW)
            await asyncio.to_thread(shutil.copytree, house.folder.redis / "appendonlydir", older)
            await duel.until_stage(2, table_pb2.STAGE_DRAW)
            # Each has called the big blind of 10, which is in the pot.
            before_hand = {seat.seat: seat.stack_minor + 10 for seat in duel.view.seats}
            epoch = duel.view.table.epoch

            await asyncio.to_thread(roll_back, house, older)

            await duel.until(lambda: all(stream.mirror.view.table.epoch > epoch for stream in duel.streams))
            assert duel.view.table.epoch == epoch + 1
            assert duel.reasons, "the new snapshot says why it came"
            assert {seat.seat: seat.stack_minor + seat.bet_minor for seat in duel.view.seats} == before_hand
            await duel.until_stage(3, table_pb2.STAGE_DRAW)
            await seen.until_all_go_on(seen.hands(), 1, STEP_SECONDS)

            cash = [await client.balances(client.player) for client in duel.clients]
            assert [stream.violations for stream in duel.streams] == [[], []]
        # The stacks' first buy-in left the cash, and nothing else did.
        assert [each.cash[0].amount_minor for each in cash] == [CASH_MINOR - STACK_MINOR] * 2
        async with house.client("anna", "auditor") as auditor:
            request = wallet_service_pb2.ListEntriesRequest(player="players/bob", table=TABLE, hand=2)
            entries = (await auditor.caller.call(auditor.wallet.ListEntries, request)).entries
        assert wallet_service_pb2.TRANSFER_CODE_VOID in {entry.code for entry in entries}
        assert sum(entry.amount_minor for entry in entries) == 0
        summary = await asyncio.to_thread(house.end)

    assert seen.broken_promises() == []
    assert summary["faults"] == []
    assert summary["exit_status"] == 0
    assert summary["ledger_balance_minor"] == 0
