"""A pause, its end or a closing that was acknowledged stays so, whatever becomes of the table's state or process."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from services.runtime.database import DatabaseBusyError
from services.runtime.errors import Fault
from services.table import play
from services.table.draft import Draft
from services.table.house import SCAN_SECONDS
from services.table.narrate import BrokenHandError
from services.table.registry import WANT_SECONDS
from services.table.store import StoreUnavailableError
from services.table.wanted import Wanted
from tests.simulation.seated import BUY_IN, Seated, Tester, on_virtual_time, refused

CONTRADICTED = "a hand contradicted the ledger; the house is looking at it"


async def playing(tester: Tester) -> list[Seated]:
    """Three who watch and play their first hand."""
    await tester.open()
    players = await tester.seated(3)
    for player in players:
        await player.watch()
    await tester.turn()
    return players


async def is_paused_with_its_hand(tester: Tester) -> None:
    """Nothing is lost but time: the hand is still there, and goes on after the pause."""
    state = await tester.state()
    assert (state.epoch, state.mode, state.playing is not None) == (1, "paused", True)
    await tester.operator("ResumeTable")
    await tester.play_out()
    await tester.until(lambda state: state.last_hand == 2)


async def kept(tester: Tester) -> Wanted:
    return (await tester.house.registry.get_table(tester.table)).wanted


async def stands_still(tester: Tester, reason: str) -> None:
    """The table is paused for this reason, deals nobody in for minutes, and goes on when it is resumed."""
    state = await tester.until(lambda state: state.mode == "paused")
    hand = state.last_hand
    await asyncio.sleep(200)
    state = await tester.state()
    assert (state.mode, state.mode_reason, state.last_hand) == ("paused", reason, hand)
    await tester.operator("ResumeTable")
    await tester.until(lambda state: state.last_hand == hand + 1)


async def dies_before_the_commit(tester: Tester, method: str, **fields: Any) -> None:
    """The only process dies in the middle of what an operator asks: the registry was told, the store was not."""
    reached = asyncio.Event()

    async def never(*_: object) -> None:
        reached.set()
        await asyncio.Event().wait()

    replica = tester.house.any_replica()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tester.house.store, "commit", never)
        asked = asyncio.create_task(tester.operator(method, **fields))
        await reached.wait()
        await replica.house.stop()
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
    await tester.house.crash(replica)


def contradict_once(patch: pytest.MonkeyPatch) -> None:
    """The next bets that are collected are not those of the ledger."""
    collected = play.bets_collected

    def contradicted(_draft: Draft) -> None:
        patch.setattr(play, "bets_collected", collected)
        raise BrokenHandError("another pot than the ledger's")

    patch.setattr(play, "bets_collected", contradicted)


@on_virtual_time
async def test_a_pause_outlives_the_loss_of_the_tables_state(tester: Tester) -> None:
    await playing(tester)
    await tester.operator("PauseTable", reason="fire drill")
    tester.house.store.wipe()
    await tester.until(lambda state: state.epoch == 2)
    await stands_still(tester, "fire drill")


@on_virtual_time
async def test_a_pause_outlives_a_rollback_to_the_moment_before_it(tester: Tester) -> None:
    await playing(tester)
    before = tester.house.store.checkpoint()
    await tester.play_out()
    await tester.operator("PauseTable", reason="fire drill")
    tester.house.store.roll_back(before)
    await tester.until(lambda state: state.epoch == 2)
    await stands_still(tester, "fire drill")


@on_virtual_time
async def test_a_pause_outlives_a_rollback_that_no_process_remembers(tester: Tester) -> None:
    await playing(tester)
    before = tester.house.store.checkpoint()
    await tester.operator("PauseTable", reason="fire drill")
    replica = tester.house.any_replica()
    await replica.house.stop()
    tester.house.store.roll_back(before)
    await tester.house.crash(replica)
    await is_paused_with_its_hand(tester)


@on_virtual_time
async def test_a_pause_after_the_hand_outlives_the_loss_of_the_tables_state(tester: Tester) -> None:
    await playing(tester)
    await tester.operator("PauseHouse", reason="maintenance")
    assert (await tester.state()).mode == "open"
    tester.house.store.wipe()
    # The hand is void, so it is over.
    await stands_still(tester, "maintenance")


@on_virtual_time
async def test_a_pause_that_came_with_the_end_of_the_hand_outlives_the_loss_of_the_tables_state(tester: Tester) -> None:
    await playing(tester)
    await tester.operator("PauseTable", reason="last hand", after_hand=True)
    assert await kept(tester) == Wanted("pausing", "last hand", 1)
    await tester.play_out()
    await tester.until(lambda state: state.mode == "paused")
    assert await kept(tester) == Wanted("paused", "last hand", 2)
    tester.house.store.wipe()
    await stands_still(tester, "last hand")


@on_virtual_time
async def test_a_table_that_is_closing_ends_though_its_state_was_lost(tester: Tester) -> None:
    await playing(tester)
    await tester.operator("CloseTable", reason="closing time")
    assert (await tester.state()).playing is not None
    tester.house.store.wipe()
    state = await tester.until(lambda state: state.mode == "closed")
    await asyncio.sleep(1)
    assert (state.last_hand, state.seats, state.mode_reason) == (1, {}, "closing time")
    assert (await tester.house.registry.get_table(tester.table)).closed_ms
    ledger = await tester.house.registry.open_sittings(tester.table)
    assert ledger == []
    left = [each.amount_minor for each in tester.players[0].saw("seat_left")]
    assert left == [BUY_IN] * 3


@on_virtual_time
async def test_a_closing_whose_end_was_rolled_back_stays_ended(tester: Tester) -> None:
    await playing(tester)
    await tester.operator("CloseTable", reason="closing time")
    before = tester.house.store.checkpoint()
    await tester.play_out()
    await tester.until(lambda state: state.mode == "closed")
    tester.house.store.roll_back(before)
    state = await tester.until(lambda state: state.epoch == 2 and not state.effects)
    assert (state.mode, state.mode_reason, state.seats) == ("closed", "closing time", {})


@on_virtual_time
async def test_a_closed_table_that_is_rebuilt_before_the_registry_knows_ends_once_more(tester: Tester) -> None:
    await playing(tester)

    async def away(*_: object) -> None:
        raise Fault("SERVICE_UNAVAILABLE", "the registry is away")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tester.house.registry, "close_table", away)
        await tester.operator("CloseTable", reason="closing time")
        await tester.play_out()
        await tester.until(lambda state: state.mode == "closed")
        await tester.house.registry.raise_epoch(tester.table)
        await tester.until(lambda state: state.epoch == 3)
    state = await tester.until(lambda state: not state.effects)
    assert (state.mode, state.mode_reason, state.seats) == ("closed", "closing time", {})
    assert (await tester.house.registry.get_table(tester.table)).closed_ms


@on_virtual_time
async def test_the_end_of_a_pause_outlives_a_rollback_into_it(tester: Tester) -> None:
    await playing(tester)
    await tester.operator("PauseTable", reason="fire drill")
    before = tester.house.store.checkpoint()
    await tester.operator("ResumeTable")
    await tester.play_out()
    tester.house.store.roll_back(before)
    state = await tester.until(lambda state: state.epoch == 2 and state.playing is not None)
    assert (state.mode, state.last_hand) == ("open", 2)
    tester.house.store.wipe()
    state = await tester.until(lambda state: state.epoch == 3)
    assert state.mode == "open"


@on_virtual_time
async def test_the_pause_after_a_contradiction_outlives_the_loss_of_the_tables_state(tester: Tester) -> None:
    await playing(tester)
    with pytest.MonkeyPatch.context() as patch:
        contradict_once(patch)
        await tester.play_out()
    assert await kept(tester) == Wanted("paused", CONTRADICTED, 1)
    tester.house.store.wipe()
    await stands_still(tester, CONTRADICTED)


@on_virtual_time
async def test_a_contradiction_pauses_the_table_though_the_registry_is_away_and_is_kept_later(tester: Tester) -> None:
    await playing(tester)

    async def away(*_: object) -> None:
        raise DatabaseBusyError("the registry is away")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tester.house.databases["table"], "write", away)
        contradict_once(patch)
        await tester.play_out()
        assert (await tester.state()).mode == "paused"
    assert await kept(tester) == Wanted()
    await asyncio.sleep(SCAN_SECONDS + 1)
    assert await kept(tester) == Wanted("paused", CONTRADICTED, 1)
    tester.house.store.wipe()
    await stands_still(tester, CONTRADICTED)


@on_virtual_time
async def test_nobody_is_told_of_a_pause_that_the_registry_does_not_keep(tester: Tester) -> None:
    players = await playing(tester)

    async def never(*_: object) -> None:
        await asyncio.sleep(2 * WANT_SECONDS)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tester.house.databases["table"], "write", never)
        await refused("SERVICE_UNAVAILABLE", tester.operator("PauseTable", reason="fire drill"))
    assert ((await tester.state()).mode, players[0].saw("table_paused")) == ("open", [])


@on_virtual_time
async def test_a_process_that_dies_between_registry_and_table_leaves_the_table_paused(tester: Tester) -> None:
    await playing(tester)
    await dies_before_the_commit(tester, "PauseTable", reason="fire drill")
    await is_paused_with_its_hand(tester)


@on_virtual_time
async def test_a_process_that_dies_between_registry_and_table_leaves_no_table_paused_that_was_resumed(
    tester: Tester,
) -> None:
    await playing(tester)
    await tester.operator("PauseTable", reason="fire drill")
    await dies_before_the_commit(tester, "ResumeTable")
    assert (await tester.state()).mode == "open"
    await tester.play_out()
    await tester.until(lambda state: state.last_hand == 2)


@on_virtual_time
async def test_a_process_that_dies_between_registry_and_table_leaves_the_table_closing(tester: Tester) -> None:
    await playing(tester)
    await dies_before_the_commit(tester, "CloseTable", reason="closing time")
    assert (await tester.state()).mode == "closing"
    await tester.play_out()
    state = await tester.until(lambda state: state.mode == "closed")
    assert state.last_hand == 1


@on_virtual_time
async def test_what_the_registry_alone_was_told_is_done_within_a_scan(tester: Tester) -> None:
    players = await playing(tester)

    async def away(*_: object) -> None:
        raise StoreUnavailableError("the store is away")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tester.house.store, "commit", away)
        await refused("SERVICE_UNAVAILABLE", tester.operator("PauseTable", reason="fire drill"))
    await tester.until(lambda state: state.mode == "paused", SCAN_SECONDS + 1)
    assert [each.reason for each in players[0].saw("table_paused")] == ["fire drill"]


@on_virtual_time
async def test_a_wish_that_another_process_had_kept_meanwhile_comes_first(tester: Tester) -> None:
    await playing(tester)
    assert await tester.house.registry.want(tester.table, Wanted("closing", "closing time", 1), 0)
    await refused("TABLE_CLOSED", tester.operator("PauseTable", reason="fire drill"))
    assert await kept(tester) == Wanted("closing", "closing time", 1)
    await tester.play_out()
    await tester.until(lambda state: state.mode == "closed")


@on_virtual_time
async def test_a_mode_of_before_the_registry_kept_any_is_kept_at_the_next_scan(tester: Tester) -> None:
    await playing(tester)
    host = await tester.house.any_replica().house.host(tester.table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Draft, "count_mode", lambda _: None)
        await tester.operator("PauseTable", reason="fire drill")
    assert (await host.view_state())[0].mode_number == 0
    await asyncio.sleep(SCAN_SECONDS + 1)
    assert await kept(tester) == Wanted("paused", "fire drill", 0)


@on_virtual_time
async def test_the_registry_is_not_told_of_a_mode_with_each_hand(tester: Tester) -> None:
    told: list[Wanted] = []
    want = tester.house.registry.want

    async def counted(table_id: str, wanted: Wanted, over: int) -> bool:
        told.append(wanted)
        return await want(table_id, wanted, over)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tester.house.registry, "want", counted)
        await playing(tester)
        for hand in (1, 2, 3):
            await tester.until(lambda state, hand=hand: state.last_hand == hand and state.playing is not None)
            await tester.play_out()
        assert told == []
        await tester.operator("PauseTable", reason="fire drill")
    assert told == [Wanted("paused", "fire drill", 1)]
