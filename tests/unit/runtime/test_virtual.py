"""Virtual time jumps, keeps its order, and names a deadlock."""

import asyncio
import time

import pytest

from services.runtime.virtual import DEFAULT_START_MS, VirtualClock, VirtualDeadlockError, run_virtual


def test_a_day_passes_at_once():
    async def day() -> tuple[float, int]:
        clock = VirtualClock(asyncio.get_running_loop())
        await clock.sleep(86_400)
        return clock.monotonic(), clock.now_ms()

    started = time.monotonic()
    seconds, now_ms = run_virtual(day())
    assert time.monotonic() - started < 1
    assert seconds == pytest.approx(86_400)
    assert now_ms == pytest.approx(DEFAULT_START_MS + 86_400_000, abs=1)


def test_timers_fire_in_their_order_every_time():
    async def race() -> list[tuple[int, float]]:
        order = []
        loop = asyncio.get_running_loop()

        async def runner(number: int, pause: float) -> None:
            for _ in range(5):
                await asyncio.sleep(pause)
                order.append((number, round(loop.time(), 6)))

        await asyncio.gather(*[runner(number, 0.1 * (number + 1)) for number in range(5)])
        return order

    first = run_virtual(race())
    assert [at for _, at in first] == sorted(at for _, at in first)
    assert all(run_virtual(race()) == first for _ in range(3))


def test_timeouts_work_on_virtual_time():
    async def wait() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3600):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time()

    assert run_virtual(wait()) == pytest.approx(3600)


def test_waiting_for_nothing_is_a_deadlock():
    async def wait() -> None:
        await asyncio.Event().wait()

    with pytest.raises(VirtualDeadlockError):
        run_virtual(wait())
