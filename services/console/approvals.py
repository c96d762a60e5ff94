"""Actions that one person prepared and a second must approve. The first one's token waits sealed, and is used once."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from services.runtime.clock import Clock
from services.runtime.database import Database
from services.runtime.errors import Fault
from services.runtime.sealing import Sealer

PENDING_MAX: Final = 100
ID_BYTES: Final = 12

_pending = sa.Table(
    "console_pending",
    sa.MetaData(),
    sa.Column("pending", sa.String, primary_key=True),
    sa.Column("person", sa.String),
    sa.Column("action", sa.String),
    sa.Column("target", sa.String),
    sa.Column("reason", sa.String),
    sa.Column("sealed_token", sa.LargeBinary),
    sa.Column("expires_ms", sa.BigInteger),
)


@dataclass(frozen=True, slots=True)
class Prepared:
    """An action that waits. `target` is a hand, `tables/{table}/hands/{hand}`, or what a player's cash is corrected by,
    `players/{player}/cash/{currency}/{signed minor units}`.
    """

    id: str
    person: str
    action: str
    target: str
    reason: str
    expires_ms: int


class Approvals:
    """The actions that wait, in the console's database."""

    def __init__(self, database: Database, sealer: Sealer, clock: Clock, wait_seconds: int) -> None:
        self._database = database
        self._sealer = sealer
        self._clock = clock
        self._wait_ms = wait_seconds * 1000

    async def prepare(
        self, person: str, token: str, action: str, target: str, reason: str, *, token_ends_ms: int
    ) -> Prepared:
        """Keeps an action for its second person, no longer than the first one's token. Raises `Fault` QUEUE_FULL."""
        now_ms = self._clock.now_ms()
        expires_ms = min(now_ms + self._wait_ms, token_ends_ms)
        prepared = Prepared(secrets.token_hex(ID_BYTES), person, action, target, reason, expires_ms)
        await self._database.write(_keep, prepared, self._sealed(prepared, token), now_ms, PENDING_MAX)
        return prepared

    async def put_back(self, prepared: Prepared, token: str) -> None:
        """Lets an action that was taken, and not done, wait on under its own id for what is left of its time."""
        # It had its place among the others, so no more than are being approved come on top of the bound.
        await self._database.write(_keep, prepared, self._sealed(prepared, token), self._clock.now_ms(), None)

    async def waiting(self) -> list[Prepared]:
        """What waits, the oldest first."""
        return await self._database.read(_waiting, self._clock.now_ms())

    async def take(self, pending: str, approver: str) -> tuple[Prepared, str]:
        """Takes an action off the list for its approver; with the first person's token.

        Raises `Fault`: SECOND_PERSON_REQUIRED for the person who prepared it, HAND_NOT_FOUND where it waits no more.
        """
        prepared, sealed = await self._database.write(_take, pending, approver, self._clock.now_ms())
        return prepared, self._sealer.open(sealed, _purpose(pending)).decode()

    async def withdraw(self, pending: str) -> Prepared:
        """Takes an action off the list for good. Raises `Fault` HAND_NOT_FOUND where it waits no more."""
        prepared, _ = await self._database.write(_take, pending, "", self._clock.now_ms())
        return prepared

    def _sealed(self, prepared: Prepared, token: str) -> bytes:
        return self._sealer.seal(token.encode(), _purpose(prepared.id))


def _purpose(pending: str) -> bytes:
    return f"console approval|{pending}".encode()


def _keep(conn: sa.Connection, prepared: Prepared, sealed: bytes, now_ms: int, most: int | None) -> None:
    conn.execute(sa.delete(_pending).where(_pending.c.expires_ms <= now_ms))
    waiting = conn.scalar(sa.select(sa.func.count()).select_from(_pending)) or 0
    if most is not None and waiting >= most:
        raise Fault("QUEUE_FULL", f"{waiting} actions wait for a second person")
    conn.execute(
        sa.insert(_pending).values(
            pending=prepared.id,
            person=prepared.person,
            action=prepared.action,
            target=prepared.target,
            reason=prepared.reason,
            sealed_token=sealed,
            expires_ms=prepared.expires_ms,
        )
    )


def _waiting(conn: sa.Connection, now_ms: int) -> list[Prepared]:
    query = sa.select(_pending).where(_pending.c.expires_ms > now_ms).order_by(_pending.c.expires_ms)
    return [_prepared(row) for row in conn.execute(query)]


def _take(conn: sa.Connection, pending: str, approver: str, now_ms: int) -> tuple[Prepared, bytes]:
    row = conn.execute(sa.select(_pending).where(_pending.c.pending == pending)).one_or_none()
    if row is None or row.expires_ms <= now_ms:
        raise Fault("HAND_NOT_FOUND", "this action waits no more")
    if row.person == approver:
        raise Fault("SECOND_PERSON_REQUIRED", "who prepared an action cannot approve it")
    # Of two who approve at the same moment one takes it.
    if not conn.execute(sa.delete(_pending).where(_pending.c.pending == pending)).rowcount:
        raise Fault("HAND_NOT_FOUND", "this action waits no more")
    return _prepared(row), bytes(row.sealed_token)


def _prepared(row: Any) -> Prepared:
    return Prepared(row.pending, row.person, row.action, row.target, row.reason, row.expires_ms)
