"""Group commit: batches that wait while a commit is under way share the next one."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy.exc import DBAPIError, IntegrityError

from services.runtime import telemetry
from services.runtime.clock import Clock
from services.runtime.database import Database, DatabaseBusyError
from services.runtime.errors import Fault
from services.wallet import commands as c
from services.wallet import group, metrics
from services.wallet.books import BooksBrokenError
from services.wallet.chart import SHARDS
from services.wallet.closures import close_ledger, close_table

# Two processes that first write the same id at the same moment: the later one reads it on its next attempt.
COLLISIONS_MAX: Final = 4

_log = telemetry.logger("wallet.commits")


@dataclass(slots=True)
class _Waiting:
    key: str
    subject: str
    command: c.Command
    outcome: asyncio.Future[c.Answer]


class GroupCommitter:
    """The queue of batches, committed in groups of at most `group_max`; each group waits `wait_ms` for company.

    One lane takes all that is waiting while no more than `crowd_min` are. Past that another lane opens beside it, up
    to `lanes` of them, and closes when the crowd is gone: two small commits side by side take longer than one of both.
    A subject's batches are decided in the order of their coming, so none is taken while an earlier one is being
    written. Past `queue_max` waiting batches a call fails with QUEUE_FULL. The first lane posts to sub-account `shard`
    of the hot accounts, the others to those after it.
    """

    def __init__(
        self,
        db: Database,
        clock: Clock,
        *,
        lanes: int,
        crowd_min: int,
        group_max: int,
        queue_max: int,
        wait_ms: int,
        shard: int,
        failpoint: group.Failpoint,
    ) -> None:
        self._db = db
        self._clock = clock
        self._crowd_min = crowd_min
        self._group_max = group_max
        self._queue_max = queue_max
        self._wait_seconds = wait_ms / 1000
        self._failpoint = failpoint
        self._waiting: deque[_Waiting] = deque()
        self._subjects_at_work: set[str] = set()
        self._lanes: list[asyncio.Task[None] | None] = [None] * lanes
        self._shards = [(shard + lane) % SHARDS for lane in range(lanes)]

    async def submit(self, key: str, subject: str, command: c.Command) -> c.Answer:
        """Takes a batch in and returns its answer after the commit, or raises its refusal."""
        if len(self._waiting) >= self._queue_max:
            metrics.REFUSALS.labels("QUEUE_FULL").inc()
            raise Fault("QUEUE_FULL", f"{self._queue_max} batches are waiting")
        waiting = _Waiting(key, subject, command, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._open_lane()
        return await waiting.outcome

    async def close(self) -> None:
        """Waits until every batch that was taken in is answered."""
        await asyncio.gather(*(lane for lane in self._lanes if lane is not None))

    def _open_lane(self) -> None:
        """Opens a lane where none is open, or a crowd waits and one is left."""
        closed = [number for number, lane in enumerate(self._lanes) if lane is None or lane.done()]
        if closed and (len(closed) == len(self._lanes) or len(self._waiting) > self._crowd_min):
            self._lanes[closed[0]] = asyncio.create_task(self._work(closed[0]))

    async def _work(self, lane: int) -> None:
        while self._waiting and (not self._others_work(lane) or len(self._waiting) > self._crowd_min):
            if self._wait_seconds and len(self._waiting) < self._group_max:
                await self._clock.sleep(self._wait_seconds)
            taken = self._take()
            if not taken:
                return
            subjects = {waiting.subject for waiting in taken}
            self._subjects_at_work |= subjects
            try:
                await self._commit(taken, self._shards[lane])
            finally:
                self._subjects_at_work -= subjects

    def _others_work(self, lane: int) -> bool:
        return any(
            number != lane and other is not None and not other.done() for number, other in enumerate(self._lanes)
        )

    def _take(self) -> list[_Waiting]:
        taken: list[_Waiting] = []
        passed_over: list[_Waiting] = []
        while self._waiting and len(taken) < self._group_max:
            waiting = self._waiting.popleft()
            # A caller that gave up while waiting withdraws its batch; nothing of it has run.
            if waiting.outcome.done():
                continue
            (passed_over if waiting.subject in self._subjects_at_work else taken).append(waiting)
        self._waiting.extendleft(reversed(passed_over))
        return taken

    async def _commit(self, taken: Sequence[_Waiting], shard: int) -> None:
        """Writes a group and answers all of it, whatever happens."""
        try:
            outcomes = await self._outcomes(taken, shard)
        except Exception as error:  # noqa: BLE001 - a mistake in the program; the next group may fare better
            metrics.BROKEN.inc()
            _log.critical("the ledger made a mistake", batches=len(taken), **telemetry.where(error))
            self._end(taken, error)
            return
        except BaseException as error:
            self._end(taken, error)
            raise
        self._failpoint("committed")
        metrics.GROUP_SIZE.observe(len(taken))
        for waiting, outcome in zip(taken, outcomes, strict=True):
            metrics.count(waiting.command, outcome)
            if waiting.outcome.done():
                continue
            if isinstance(outcome, Fault):
                waiting.outcome.set_exception(outcome)
            else:
                waiting.outcome.set_result(outcome)

    @staticmethod
    def _end(taken: Sequence[_Waiting], error: BaseException) -> None:
        # Whoever waits must hear of it, or waits for ever.
        for waiting in taken:
            if not waiting.outcome.done():
                waiting.outcome.set_exception(error)

    async def _outcomes(self, taken: Sequence[_Waiting], shard: int) -> list[c.Answer | Fault]:
        asked = [(waiting.key, waiting.command) for waiting in taken]
        try:
            return await self._write(asked, shard)
        except (IntegrityError, BooksBrokenError) as error:
            if len(taken) > 1:
                # One of them spoils the others' commit: each goes alone.
                return [(await self._outcomes([waiting], shard))[0] for waiting in taken]
            return [await self._give_up(asked[0][1], error)]
        except (DBAPIError, DatabaseBusyError) as error:
            _log.error("commit failed", batches=len(taken), error=str(error))
            return [Fault("SERVICE_UNAVAILABLE", "the ledger could not be written") for _ in taken]

    async def _write(self, asked: Sequence[tuple[str, c.Command]], shard: int) -> list[c.Answer | Fault]:
        for _ in range(COLLISIONS_MAX - 1):
            try:
                return await self._decide(asked, shard)
            except IntegrityError:
                continue
        return await self._decide(asked, shard)

    async def _decide(self, asked: Sequence[tuple[str, c.Command]], shard: int) -> list[c.Answer | Fault]:
        return await self._db.write(group.decide_group, asked, shard, self._clock.now_ms(), self._failpoint)

    async def _give_up(self, command: c.Command, error: Exception) -> Fault:
        """The books contradict themselves or their schema: no new hand until somebody has looked.

        A table's contradiction stops that table alone: its chips are in no other table's accounts, and whether more is
        wrong is for the checks and audits to say, which close the whole ledger.
        """
        metrics.BROKEN.inc()
        operation = type(command).__name__
        table = command.table if isinstance(command, c.TableCommand) else ""
        _log.critical("the books are broken", command=operation, table=table, error=str(error))
        reason = f"{operation}: {error}"
        try:
            if table:
                await self._db.write(close_table, table, reason)
            else:
                await self._db.write(close_ledger, reason)
        except (DBAPIError, DatabaseBusyError) as fault:
            _log.critical("it could not be closed for new hands", table=table, error=str(fault))
            return Fault("SERVICE_UNAVAILABLE", "the ledger could not be written")
        return Fault("INTERNAL", "the ledger stopped at a contradiction; it was recorded and nothing was moved")
