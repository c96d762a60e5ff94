"""Which sessions are open: until they are ended, their token ends, or there are too many."""

from __future__ import annotations

import pytest

from services.console import open_sessions
from services.console.open_sessions import OpenSessions
from services.runtime.clock import SystemClock


class LaterClock(SystemClock):
    """The system's clock, `ahead_ms` ahead, a millisecond more with each look."""

    ahead_ms = 0

    def now_ms(self) -> int:
        self.ahead_ms += 1
        return super().now_ms() + self.ahead_ms


@pytest.fixture
def clock() -> LaterClock:
    return LaterClock()


@pytest.fixture
async def sessions(database, clock) -> OpenSessions:
    return OpenSessions(await database("console"), clock)


async def test_a_session_is_open_until_it_is_ended_or_its_token_ends(sessions, clock):
    hour_ms = clock.now_ms() + 3_600_000
    await sessions.add("a", "olga", hour_ms)
    await sessions.add("b", "olga", hour_ms)
    assert [await sessions.has(each) for each in ("a", "b", "c")] == [True, True, False]
    await sessions.remove("a")
    await sessions.remove("c")
    assert [await sessions.has(each) for each in ("a", "b")] == [False, True]
    clock.ahead_ms = 3_600_000
    assert not await sessions.has("b")


async def test_at_the_bounds_the_oldest_ends_and_none_comes_back(sessions, clock, monkeypatch):
    monkeypatch.setattr(open_sessions, "SESSIONS_OF_A_PERSON_MAX", 2)
    monkeypatch.setattr(open_sessions, "SESSIONS_MAX", 3)
    hour_ms = clock.now_ms() + 3_600_000
    await sessions.add("a", "olga", hour_ms)
    await sessions.add("b", "otto", hour_ms)
    await sessions.add("c", "otto", hour_ms)
    await sessions.add("d", "otto", hour_ms)
    assert [await sessions.has(each) for each in "abcd"] == [True, False, True, True]
    await sessions.add("e", "ada", hour_ms)
    assert [await sessions.has(each) for each in "abcde"] == [False, False, True, True, True]
