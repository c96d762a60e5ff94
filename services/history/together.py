"""Rows that are ready at the same time are written by the same statements, in one transaction."""

from __future__ import annotations

import asyncio
from typing import Final

from sqlalchemy.exc import OperationalError

from services.history import store
from services.history.store import NewHand, Written
from services.runtime.database import Database, DatabaseBusyError

BATCH_MAX: Final = 64
WAITING_MAX: Final = 1_000


class Together:
    """Collects the hands that are handed in while a transaction is at work, and writes them in the next one.

    Nobody waits for others to come: a hand that finds nothing at work is written at once.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[tuple[NewHand, asyncio.Future[Written]]] = []
        self._work: asyncio.Task[None] | None = None

    async def write(self, hand: NewHand) -> Written:
        """Writes a hand and returns what became of it once that is durable.

        Raises `DatabaseBusyError` (also when `WAITING_MAX` hands wait) and `store.HandIdsExhaustedError`.
        """
        if len(self._waiting) >= WAITING_MAX:
            raise DatabaseBusyError(f"{WAITING_MAX} hands wait to be written")
        outcome: asyncio.Future[Written] = asyncio.get_running_loop().create_future()
        self._waiting.append((hand, outcome))
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._write_all())
        return await outcome

    async def _write_all(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:BATCH_MAX], self._waiting[BATCH_MAX:]
            if not await self._write_batch(batch):
                # One of them is the trouble, and the others shall not have it.
                for each in batch:
                    await self._write_batch([each])

    async def _write_batch(self, batch: list[tuple[NewHand, asyncio.Future[Written]]]) -> bool:
        """Writes a batch and tells its waiters; False, and nobody is told, if each is to be tried by itself."""
        write = self._database.write(store.insert_hands, [hand for hand, _ in batch])
        (written,) = await asyncio.gather(write, return_exceptions=True)
        if isinstance(written, BaseException):
            # A database that is away is away for all of them.
            if len(batch) > 1 and not isinstance(written, OperationalError | DatabaseBusyError):
                return False
            for _, outcome in batch:
                if not outcome.done():
                    outcome.set_exception(written)
            return True
        for (_, outcome), what in zip(batch, written, strict=True):
            # Who gave up waiting is gone; the row is there all the same.
            if not outcome.done():
                outcome.set_result(what)
        return True
