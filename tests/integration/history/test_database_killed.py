"""PostgreSQL dies in the middle of a write: nothing is confirmed that is not there, and the next try writes it once."""

from __future__ import annotations

import asyncio
import random

import sqlalchemy as sa

from services.history import store
from services.history.pipeline import FAILED, Pipeline
from services.history.schema import HAND_PLAYERS, HAND_RECORDS
from services.history.schema import HANDS as HANDS_TABLE
from services.history.settings import HistorySettings
from services.history.writing import FinishedHand, HandLog, HandWriter
from services.runtime.clock import SystemClock
from services.runtime.database import Database
from services.runtime.tasks import make_app
from tests.unit.history.played import play

HANDS = 12
STUCK_SECONDS = 20.0

# Sessions of this database that are in a transaction and wait for a lock.
STUCK = sa.text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' "
    "AND backend_xid IS NOT NULL"
)
KILL_STUCK = sa.text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


class Log:
    def __init__(self, hands) -> None:
        self.logs: dict[FinishedHand, HandLog] = {each.finished: each.hand_log for each in hands}
        self.confirmed: list[FinishedHand] = []

    async def read(self, hand: FinishedHand) -> HandLog | None:
        return self.logs.get(hand)

    async def confirm(self, hand: FinishedHand) -> None:
        self.confirmed.append(hand)

    async def list_unwritten(self, older_than_seconds: int, limit: int) -> list[FinishedHand]:
        return [hand for hand in self.logs if hand not in self.confirmed]


async def _until(engine: sa.Engine, question: sa.TextClause) -> None:
    async with asyncio.timeout(STUCK_SECONDS):
        while True:
            with engine.connect() as conn:
                if conn.execute(question).scalar_one():
                    return
            await asyncio.sleep(0.02)


async def test_sessions_killed_in_a_write_leave_no_half_hand_and_no_confirmation(postgres_url: str) -> None:
    opened = Database(postgres_url, isolation="READ COMMITTED")
    await opened.migrate("history")
    hands = [play(random.Random(number), hand=number) for number in range(1, HANDS + 1)]
    log = Log(hands)
    writer = HandWriter(opened, log, SystemClock())
    pipeline = Pipeline(make_app("memory://"), writer, SystemClock(), HistorySettings())
    finished = [each.finished for each in hands]
    engine = sa.create_engine(postgres_url, poolclass=sa.NullPool)
    # The hand's row and its record are in; the rows of its players wait for this lock.
    with engine.connect() as holder:
        holder.execute(sa.text("LOCK TABLE hand_players IN SHARE MODE"))
        writing = asyncio.create_task(pipeline.write_hands(finished))
        await _until(engine, STUCK)
        # Hands that came a moment later are in a batch of their own, and find the same end.
        async with asyncio.timeout(STUCK_SECONDS):
            while not writing.done():
                # By a session of its own, since a transaction sees the sessions as they were when it first looked.
                with engine.connect() as killer:
                    killer.execute(KILL_STUCK)
                await asyncio.sleep(0.02)
    assert set(await writing) == {FAILED}
    assert log.confirmed == []
    assert await opened.read(store.count_hands) == 0

    # The database is back: the beat lists them again, and each is written once, all tables of it together.
    due = await writer.list_unwritten(0)
    assert set(await pipeline.write_hands(due)) == {"new"}
    assert set(await pipeline.write_hands(finished)) == {"unchanged"}
    assert sorted(set(log.confirmed)) == sorted(finished)

    def counted(conn: sa.Connection) -> list[int]:
        tables = (HANDS_TABLE, HAND_RECORDS, HAND_PLAYERS)
        return [conn.execute(sa.select(sa.func.count()).select_from(table)).scalar_one() for table in tables]

    assert await opened.read(counted) == [HANDS, HANDS, sum(len(each.state.seats) for each in hands)]
    engine.dispose()
    await opened.close()
