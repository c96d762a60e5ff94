"""Who is connected: what a table is told of it, and that nothing outlives its host."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from services.runtime.errors import Fault
from services.runtime.virtual import VirtualClock, run_virtual
from services.table.presence import RECONNECT_SECONDS, Presence

Told = list[tuple[float, str, bool]]
ANNA = "players/anna"


def on_virtual_time(test: Callable[[Presence, Told], Awaitable[None]]) -> Callable[[], None]:
    def run() -> None:
        async def main() -> None:
            loop = asyncio.get_running_loop()
            told: Told = []

            async def tell(player: str, is_here: bool) -> None:
                told.append((round(loop.time(), 3), player, is_here))

            presence = Presence("t", VirtualClock(loop), tell)  # type: ignore[arg-type]
            await test(presence, told)
            await presence.close()
            assert asyncio.all_tasks() == {asyncio.current_task()}

        run_virtual(main())

    run.__name__ = test.__name__
    return run


@on_virtual_time
async def test_a_lost_connection_is_told_after_a_moment(presence: Presence, told: Told) -> None:
    presence.arrived(ANNA)
    await asyncio.sleep(1)
    presence.departed(ANNA)
    await asyncio.sleep(RECONNECT_SECONDS + 1)
    assert told == [(0.0, ANNA, True), (1 + RECONNECT_SECONDS, ANNA, False)]
    assert presence.is_idle


@on_virtual_time
async def test_a_connection_that_comes_back_at_once_is_not_told_as_lost(presence: Presence, told: Told) -> None:
    presence.arrived(ANNA)
    presence.departed(ANNA)
    await asyncio.sleep(RECONNECT_SECONDS / 2)
    presence.arrived(ANNA)
    await asyncio.sleep(RECONNECT_SECONDS)
    assert {is_here for _, _, is_here in told} == {True}


@on_virtual_time
async def test_of_two_streams_one_may_end(presence: Presence, told: Told) -> None:
    presence.arrived(ANNA)
    presence.arrived(ANNA)
    presence.departed(ANNA)
    await asyncio.sleep(RECONNECT_SECONDS * 2)
    assert {is_here for _, _, is_here in told} == {True}


@on_virtual_time
async def test_after_close_nothing_is_told_and_nothing_is_begun(presence: Presence, told: Told) -> None:
    presence.arrived(ANNA)
    await asyncio.sleep(0.1)
    presence.departed(ANNA)
    assert not presence.is_idle
    await presence.close()
    assert presence.is_idle
    presence.arrived(ANNA)
    presence.departed(ANNA)
    assert presence.is_idle
    await asyncio.sleep(RECONNECT_SECONDS * 2)
    assert told == [(0.0, ANNA, True)]


def test_a_table_out_of_reach_ends_no_stream() -> None:
    async def main() -> None:
        async def tell(player: str, is_here: bool) -> None:
            raise Fault("SERVICE_UNAVAILABLE", "the store is away")

        presence = Presence("t", VirtualClock(asyncio.get_running_loop()), tell)  # type: ignore[arg-type]
        presence.arrived(ANNA)
        await asyncio.sleep(0.1)
        assert presence.is_idle
        await presence.close()

    run_virtual(main())
