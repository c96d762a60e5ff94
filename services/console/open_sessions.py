"""Which sessions are open, in the console's database: a cookie whose session is not here opens nothing.

Open ones are kept, not ended ones, so that a bound on how many there are can only end a session too early, never bring
an ended one back.
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from services.runtime.clock import Clock
from services.runtime.database import Database

# At the bounds the oldest session ends, that of the same person first.
SESSIONS_MAX: Final = 10_000
SESSIONS_OF_A_PERSON_MAX: Final = 20

_sessions = sa.Table(
    "console_sessions",
    sa.MetaData(),
    sa.Column("session", sa.String, primary_key=True),
    sa.Column("person", sa.String),
    sa.Column("begun_ms", sa.BigInteger),
    sa.Column("expires_ms", sa.BigInteger),
)


class OpenSessions:
    """The ids of open sessions, each until its token's end."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def add(self, session: str, person: str, expires_ms: int) -> None:
        """Opens one."""
        await self._database.write(_add, session, person, expires_ms, self._clock.now_ms())

    async def has(self, session: str) -> bool:
        """Whether it is open."""
        return await self._database.read(_has, session, self._clock.now_ms())

    async def remove(self, session: str) -> None:
        """Ends one; one that is not open stays so."""
        await self._database.write(_remove, session)


def _add(conn: sa.Connection, session: str, person: str, expires_ms: int, now_ms: int) -> None:
    conn.execute(sa.delete(_sessions).where(_sessions.c.expires_ms <= now_ms))
    _make_room(conn, sa.select(_sessions.c.session).where(_sessions.c.person == person), SESSIONS_OF_A_PERSON_MAX)
    _make_room(conn, sa.select(_sessions.c.session), SESSIONS_MAX)
    conn.execute(sa.insert(_sessions).values(session=session, person=person, begun_ms=now_ms, expires_ms=expires_ms))


def _make_room(conn: sa.Connection, among: sa.Select[tuple[str]], most: int) -> None:
    newest_first = among.order_by(_sessions.c.begun_ms.desc(), _sessions.c.session)
    for row in conn.execute(newest_first.offset(most - 1)).all():
        _remove(conn, row.session)


def _has(conn: sa.Connection, session: str, now_ms: int) -> bool:
    query = sa.select(_sessions.c.session).where(_sessions.c.session == session, _sessions.c.expires_ms > now_ms)
    return conn.execute(query).first() is not None


def _remove(conn: sa.Connection, session: str) -> None:
    conn.execute(sa.delete(_sessions).where(_sessions.c.session == session))
