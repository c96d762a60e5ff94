"""The operators' audit log: one line for each action and its outcome, each linked to the one before by its hash.

link = SHA-256 over the previous link and the line's fields as compact JSON. Whoever changes, removes or inserts a line
breaks all links after it; the last link, written down elsewhere, also shows a cut tail.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from services.console import metrics
from services.runtime.clock import Clock
from services.runtime.database import Database

GENESIS: Final = "0" * 64
PAGE_MAX: Final = 100
VERIFY_PAGE: Final = 1_000
OUTCOME_CHARACTERS_MAX: Final = 500

_metadata = sa.MetaData()
_audit = sa.Table(
    "console_audit",
    _metadata,
    sa.Column("number", sa.BigInteger, primary_key=True),
    sa.Column("at_ms", sa.BigInteger),
    sa.Column("person", sa.String),
    sa.Column("second", sa.String),
    sa.Column("action", sa.String),
    sa.Column("target", sa.String),
    sa.Column("reason", sa.String),
    sa.Column("outcome", sa.String),
    sa.Column("previous", sa.String),
    sa.Column("link", sa.String),
)


@dataclass(frozen=True, slots=True)
class Line:
    """What was done: `person` (and `second`, or empty) did `action` to `target` for `reason`; `outcome` is `done`, or
    `asked` before it is tried, or the refusal.
    """

    person: str
    second: str
    action: str
    target: str
    reason: str
    outcome: str


@dataclass(frozen=True, slots=True)
class KeptLine:
    """A line as it is kept."""

    number: int
    at_ms: int
    line: Line
    previous: str
    link: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the log is whole: lines read, the last link, and the first broken line's number or 0."""

    lines: int
    head: str
    broken_at: int


class AuditLog:
    """The log in the console's database."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def add(self, line: Line) -> int:
        """Adds a line durably and returns its number."""
        return await self._database.write(_add, line, self._clock.now_ms())

    async def newest(self, before: int = 0) -> list[KeptLine]:
        """A page of lines, newest first, below a number where one is given."""
        return await self._database.read(_newest, before)

    async def verify(self) -> Verdict:
        """Reads all of it again and recomputes each link; what it finds is shown as a metric too."""
        verdict = await self._database.read(_verify)
        metrics.AUDIT_LOG_BROKEN.set(1 if verdict.broken_at else 0)
        return verdict


def link_of(previous: str, number: int, at_ms: int, line: Line) -> str:
    """The hash that links a line to the one before, in hex."""
    fields = [number, at_ms, line.person, line.second, line.action, line.target, line.reason, line.outcome]
    packed = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(f"{previous}{packed}".encode()).hexdigest()


def _add(conn: sa.Connection, line: Line, now_ms: int) -> int:
    last = conn.execute(sa.select(_audit.c.number, _audit.c.link).order_by(_audit.c.number.desc()).limit(1)).first()
    number, previous = (last.number + 1, last.link) if last is not None else (1, GENESIS)
    conn.execute(
        sa.insert(_audit).values(
            number=number,
            at_ms=now_ms,
            person=line.person,
            second=line.second,
            action=line.action,
            target=line.target,
            reason=line.reason,
            outcome=line.outcome,
            previous=previous,
            link=link_of(previous, number, now_ms, line),
        )
    )
    return number


def _newest(conn: sa.Connection, before: int) -> list[KeptLine]:
    query = sa.select(_audit).order_by(_audit.c.number.desc()).limit(PAGE_MAX)
    return [_kept(row) for row in conn.execute(query.where(_audit.c.number < before) if before else query)]


def _verify(conn: sa.Connection) -> Verdict:
    head, number = GENESIS, 0
    while True:
        query = sa.select(_audit).where(_audit.c.number > number).order_by(_audit.c.number).limit(VERIFY_PAGE)
        page = [_kept(row) for row in conn.execute(query)]
        for kept in page:
            sound = kept.number == number + 1 and kept.previous == head
            if not sound or link_of(head, kept.number, kept.at_ms, kept.line) != kept.link:
                return Verdict(number, head, number + 1)
            head, number = kept.link, kept.number
        if len(page) < VERIFY_PAGE:
            return Verdict(number, head, 0)


def _kept(row: Any) -> KeptLine:
    line = Line(row.person, row.second, row.action, row.target, row.reason, row.outcome)
    return KeptLine(row.number, row.at_ms, line, row.previous, row.link)
