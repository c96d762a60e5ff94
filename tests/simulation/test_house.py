"""The whole house on virtual time: hands are played, faults are seeded, and nothing is lost."""

from __future__ import annotations

import asyncio
import random

import pytest
from fivedraw.wallet.v1 import wallet_service_pb2
from sqlalchemy import text

from services.runtime.virtual import VirtualClock, run_virtual
from services.wallet.grpc_api import TableLedgerApi
from tests.simulation.house import SimulatedHouse
from tests.simulation.players import Bot

RULEBOOKS = ("house", "clocked", "casadela", "openers", "american")


async def play(
    seed: int,
    seconds: float,
    *,
    loss: float = 0.0,
    crashes: int = 0,
    rollbacks: int = 0,
    restless: float = 0.1,
    copies: int = 1,
) -> SimulatedHouse:
    loop = asyncio.get_running_loop()
    house = SimulatedHouse(VirtualClock(loop), seed, loss=0.0)  # type: ignore[arg-type]
    await house.start()
    bots: list[Bot] = []
    for number, rulebook in enumerate(RULEBOOKS * copies):
        table = f"{rulebook}-{number}"
        await house.open_table(table, rulebook, chat=True)
        unit = 1000 if rulebook == "casadela" else 10 if rulebook != "american" else 1
        for seat in range(4):
            identity = await house.make_player(f"{table}-{seat}")
            bots.append(Bot(house, identity, table, random.Random(seed * 100 + len(bots)), 50 * unit, restless))
    house.network.loss = loss
    tasks = [asyncio.create_task(bot.run()) for bot in bots]
    worker = asyncio.create_task(house.keep_working())
    faults = ["crash"] * crashes + ["roll back"] * rollbacks
    house.rng.shuffle(faults)
    for fault in faults:
        await asyncio.sleep(seconds / (len(faults) + 1))
        if fault == "crash":
            await house.crash(house.any_replica())
        else:
            kept = house.store.checkpoint()
            await asyncio.sleep(house.rng.uniform(0.01, 1.0))
            house.store.roll_back(kept)
    await asyncio.sleep(seconds / (len(faults) + 1))
    house.network.loss = 0.0
    for task in [*tasks, worker]:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    house.errors += [repr(each) for each in results if not isinstance(each, asyncio.CancelledError)]
    for bot in bots:
        house.errors += bot.seen.gaps + bot.unexpected
    house.bots = bots  # type: ignore[attr-defined]
    # Whatever was under way comes to its end by clocks alone.
    await asyncio.sleep(500)
    return house


async def verdict(house: SimulatedHouse) -> dict[str, int]:
    unwritten = await house.work_all()
    assert unwritten == []
    assert await house.check() == []
    assert house.errors == []
    hands = {}
    for record in await house.registry.list_tables("", 100):
        rows = await house.databases["history"].read(
            lambda conn, table=record.table_id: conn.execute(
                text("SELECT count(*) FROM hands WHERE table_id = :t"), {"t": table}
            ).scalar_one()
        )
        assert rows == record.last_hand, record
        hands[record.rulebook] = hands.get(record.rulebook, 0) + record.last_hand
        await seats_match_the_ledger(house, record.table_id)
    await house.stop()
    assert asyncio.all_tasks() == {asyncio.current_task()}, "left behind by the house"
    return hands


async def seats_match_the_ledger(house: SimulatedHouse, table_id: str) -> int:
    """No seat without chips of its own in the ledger, no chips without a seat; how many seats there are."""
    state, _ = await (await house.any_replica().house.host(table_id)).view_state()
    request = wallet_service_pb2.GetTableLedgerRequest(table=state.name)
    ledger = (await TableLedgerApi(house.ledger).GetTableLedger(request, None)).ledger  # type: ignore[arg-type]
    assert {seat.sitting: seat.stack for seat in state.seats.values()} == {
        stack.sitting: stack.stack_minor for stack in ledger.stacks if stack.open
    }
    assert state.carry == ledger.carry_minor
    assert state.last_hand >= ledger.last_hand
    assert state.playing is None, "a stuck table"
    return len(state.seats)


@pytest.mark.parametrize("seed", [1])
def test_a_calm_house_plays_all_rulebooks(seed: int) -> None:
    async def main() -> dict[str, int]:
        return await verdict(await play(seed, 60.0, restless=0.0))

    hands = run_virtual(main())
    assert all(hands[book] >= 5 for book in RULEBOOKS), hands


@pytest.mark.parametrize("seed", [2, 3])
def test_players_come_and_go_and_sleep(seed: int) -> None:
    async def main() -> dict[str, int]:
        return await verdict(await play(seed, 60.0, restless=0.15))

    hands = run_virtual(main())
    assert sum(hands.values()) >= 20, hands


@pytest.mark.parametrize("seed", [4, 5])
def test_nothing_is_lost_when_processes_die_and_the_network_loses_calls(seed: int) -> None:
    async def main() -> dict[str, int]:
        return await verdict(await play(seed, 60.0, loss=0.02, crashes=6, restless=0.05))

    hands = run_virtual(main())
    assert sum(hands.values()) >= 20, hands


@pytest.mark.parametrize("seed", [6, 7])
def test_the_ledger_wins_when_the_store_loses_its_last_commits(seed: int) -> None:
    async def main() -> int:
        house = await play(seed, 60.0, rollbacks=6, crashes=2, restless=0.05)
        assert await house.check() == []
        assert [each for each in house.errors if not each.startswith("gap")] == []
        seats = rebuilt = 0
        for record in await house.registry.list_tables("", 100):
            rebuilt += record.epoch - 1
            seats += await seats_match_the_ledger(house, record.table_id)
        await house.stop()
        assert rebuilt > 0, "nobody noticed a loss"
        return seats

    assert run_virtual(main()) > 0


@pytest.mark.long
@pytest.mark.timeout(1_200)
def test_two_thousand_hands_of_players_with_human_habits() -> None:
    """20 tables over all rulebooks; players join, leave, sit out, disconnect, top up, sleep and chat."""

    async def main() -> dict[str, int]:
        return await verdict(await play(8, 1_250.0, restless=0.08, copies=4))

    hands = run_virtual(main())
    assert sum(hands.values()) >= 2_000, hands
