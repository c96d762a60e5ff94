"""The chain of hashes over batches and their transfers, sealed behind the commits (docs/ledger.md has the encoding).

A seal covers all batches after the previous seal's last one up to its own. Its head is the SHA-256 of the previous
head and, for each batch in order, the canonical JSON of the batch and its transfers, each followed by a line feed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, func, insert, select, text
from sqlalchemy.exc import DBAPIError

from services.runtime.conflicts import DatabaseBusyError, is_conflict
from services.wallet.schema import batches, seals, transfers
from services.wallet.store import SEALING_LOCK

GENESIS: Final = hashlib.sha256(b"fivedraw ledger 1").hexdigest()

# What one seal covers at most, and how many batches are in memory at a time.
SEAL_BATCHES_MAX: Final = 10_000
PAGE_BATCHES: Final = 1_000

# How long sealing waits for commits under way, and lets none begin meanwhile.
WRITERS_MS_MAX: Final = 2_000


class Seal(Struct, frozen=True, gc=False):
    """One link: which batches it covers, and the chain's head with it. Heads are hex."""

    seal_no: int
    first_batch: int
    last_batch: int
    batch_count: int
    transfer_count: int
    previous_head: str
    head: str
    sealed_ms: int


Page = Sequence[tuple[tuple[Any, ...], Sequence[tuple[Any, ...]]]]
"""Batches in order, each with its transfers: rows as `schema` has their columns."""


class HeadUnderWay:
    """A head being computed, batch by batch."""

    def __init__(self, previous_head: str) -> None:
        self._hash = hashlib.sha256(previous_head.encode())
        self.batch_count = 0
        self.transfer_count = 0

    def add(self, batch: tuple[Any, ...], lines: Sequence[tuple[Any, ...]]) -> None:
        """Takes the next batch in."""
        self._hash.update(msgspec.json.encode([batch, lines]))
        self._hash.update(b"\n")
        self.batch_count += 1
        self.transfer_count += len(lines)

    def head(self) -> str:
        """The head with all batches taken in so far, in hex."""
        return self._hash.hexdigest()


def last_batch(conn: Connection) -> int:
    """The highest batch number that is committed."""
    return conn.scalar(select(func.max(batches.c.batch_no))) or 0


def wait_for_writers(conn: Connection) -> None:
    """Returns when every commit under way is done: below any number seen before, nothing can appear any more.

    Raises `DatabaseBusyError` where one takes too long: all commits that begin meanwhile wait behind this.
    """
    if conn.dialect.name != "postgresql":
        return
    conn.execute(text(f"SET LOCAL lock_timeout = {WRITERS_MS_MAX}"))
    try:
        conn.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": SEALING_LOCK})
    except DBAPIError as error:
        if is_conflict(error):
            raise DatabaseBusyError(f"a commit is under way for more than {WRITERS_MS_MAX} ms") from error
        raise


def last_seal(conn: Connection) -> Seal | None:
    """The newest link of the chain."""
    row = conn.execute(select(*seals.c).order_by(seals.c.seal_no.desc()).limit(1)).one_or_none()
    return None if row is None else Seal(*row)


def next_seal(conn: Connection, up_to: int, now_ms: int) -> Seal | None:
    """Computes the link after the newest one, over what is committed up to a batch number; `None` for nothing new."""
    previous = last_seal(conn)
    after = previous.last_batch if previous else 0
    head = HeadUnderWay(previous.head if previous else GENESIS)
    first = last = 0
    for page in pages(conn, after, up_to):
        for batch, lines in page:
            if head.batch_count == SEAL_BATCHES_MAX:
                break
            head.add(batch, lines)
            first, last = first or batch[0], batch[0]
    if not head.batch_count:
        return None
    return Seal(
        seal_no=previous.seal_no + 1 if previous else 1,
        first_batch=first,
        last_batch=last,
        batch_count=head.batch_count,
        transfer_count=head.transfer_count,
        previous_head=previous.head if previous else GENESIS,
        head=head.head(),
        sealed_ms=now_ms,
    )


def add_seal(conn: Connection, seal: Seal) -> None:
    """Appends a link. Raises `IntegrityError` where another process has appended that number."""
    conn.execute(insert(seals).values(tuple(getattr(seal, name) for name in seal.__struct_fields__)))


def pages(conn: Connection, after: int, up_to: int) -> Iterator[Page]:
    """All batches above one number and up to another, in order, with their transfers."""
    while True:
        found = [
            tuple(row)
            for row in conn.execute(
                select(*batches.c)
                .where(batches.c.batch_no > after, batches.c.batch_no <= up_to)
                .order_by(batches.c.batch_no)
                .limit(PAGE_BATCHES)
            )
        ]
        if not found:
            return
        first, last = found[0][0], found[-1][0]
        lines: dict[int, list[tuple[Any, ...]]] = {batch[0]: [] for batch in found}
        for row in conn.execute(
            select(*transfers.c)
            .where(transfers.c.batch_no >= first, transfers.c.batch_no <= last)
            .order_by(transfers.c.batch_no, transfers.c.line)
        ):
            # A transfer without a batch is for the audit's own question.
            if row[0] in lines:
                lines[row[0]].append(tuple(row))
        yield [(batch, lines[batch[0]]) for batch in found]
        after = last
