"""A house stops whenever it is told to, whatever its sweeps are waiting for in that moment."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from services.runtime.clock import SystemClock
from services.runtime.database import Database
from services.runtime.sealing import Sealer
from services.table.house import House
from services.table.parts import Parts
from services.table.registry import Registry
from services.table.store import TableStore
from tests.contract.table.commits import Line

STOPS = 40
STOP_SECONDS_MAX = 10


class NoPeer:
    """No table of these tests has a hand, so nobody calls a peer."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"nobody should have called {name}")


async def test_a_house_stops_in_any_moment_and_leaves_no_task(store: TableStore) -> None:
    rng = random.Random(1)
    database = Database("sqlite://", inline=True)
    await database.migrate("table")
    peer, clock = NoPeer(), SystemClock()
    parts = Parts(store, Registry(database), peer, peer, peer, Sealer([("k", bytes(32))]), clock)  # type: ignore[arg-type]
    # Something is always due, of a table that the registry does not know.
    await Line(store).write(deadline=0)
    others = asyncio.all_tasks()
    for _ in range(STOPS):
        house = House(parts)
        await house.start()
        await store.enter_due("oak", 1)
        for _ in range(rng.randrange(40)):
            await asyncio.sleep(0)
        await asyncio.sleep(rng.choice([0.0, rng.uniform(0.0, 0.01)]))
        async with asyncio.timeout(STOP_SECONDS_MAX):
            await house.stop()
        assert {task.get_name() for task in asyncio.all_tasks() - others} == set()
    await database.close()
