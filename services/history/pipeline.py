"""The history's tasks: what a Celery worker runs, on an event loop that lives beside Celery's threads.

Celery's threads only wait; the loop reads logs and writes rows for several tasks at once, so that their waits for the
table and the disk overlap and SQLite's commits are shared.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from typing import Any, Final, TypeVar

import grpc
from celery import Celery

from services.history.reconciling import Reconciler
from services.history.settings import HistorySettings
from services.history.upkeep import Upkeep
from services.history.writing import EXPECTED, UNWRITTEN_PAGE_MAX, FinishedHand, HandWriter, reason_of
from services.runtime import telemetry
from services.runtime.clock import Clock
from services.runtime.tasks import (
    AUDIT_ROWS,
    AUDITS_QUEUE,
    DELETE_OLD_HANDS,
    EXPORT_DAY,
    EXPORTS_QUEUE,
    HANDS_OF_A_TASK_MAX,
    RECONCILE_HANDS,
    RESEND_UNWRITTEN,
    TASK_LIMIT_SECONDS,
    WRITE_HAND,
    WRITE_HANDS,
    WRITE_QUEUE,
    WriteHand,
    send_hands,
    sent_ms_of,
)

T = TypeVar("T")

STOP_SECONDS: Final = 10.0
# With more than this in the queue a re-sent task would only stand behind its own first one.
QUEUE_BUSY_LENGTH: Final = 2_000

FAILED: Final = "failed"

_WRITTEN: Final = telemetry.counter(
    "fivedraw_history_hands_total", "Hands by what became of their write.", ("outcome",)
)
_FAILED: Final = telemetry.counter("fivedraw_history_write_failures_total", "Writes that failed.", ("reason",))
_SECONDS: Final = telemetry.histogram("fivedraw_history_write_seconds", "Seconds from a task's start to its end.")
_DUE: Final = telemetry.gauge("fivedraw_history_unwritten_hands", "Hands due for longer than they should be.")
_QUEUED: Final = telemetry.gauge("fivedraw_history_queue_tasks", "Tasks that wait in the broker.", ("queue",))
_QUEUE_SECONDS: Final = telemetry.histogram(
    "fivedraw_history_queue_seconds", "Seconds that a task waited before a worker took it."
)
_LOOKED: Final = telemetry.gauge(
    "fivedraw_history_looked_timestamp_seconds", "When a worker was last told by the beat to look for due hands."
)
_RESENT: Final = telemetry.counter("fivedraw_history_resent_total", "Tasks sent again.")


class LoopThread:
    """An event loop on a thread of its own, to which other threads hand coroutines."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="history-loop", daemon=True)
        self._thread.start()

    def run(self, work: Callable[[], Coroutine[Any, Any, T]], limit_seconds: float) -> T:
        """Runs `work()` on the loop and waits for its result. Raises `TimeoutError` after the limit."""

        async def limited() -> T:
            async with asyncio.timeout(limit_seconds):
                return await work()

        waiting: Future[T] = asyncio.run_coroutine_threadsafe(limited(), self._loop)
        return waiting.result()

    def stop(self) -> None:
        """Ends the loop; what it was at is given up."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(STOP_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()


class Pipeline:
    """What the tasks do, as coroutines of one loop; `app` is the broker to which due hands are sent again."""

    def __init__(self, app: Celery, writer: HandWriter, clock: Clock, settings: HistorySettings) -> None:
        self._app = app
        self._writer = writer
        self._clock = clock
        self._settings = settings
        self._log = telemetry.logger("history.pipeline")

    async def write_hand(self, hand: FinishedHand) -> str:
        """Writes one hand and returns what became of it.

        A peer that is away, a busy disk and a log that is no hand are counted, and told in a line; the hand stays due
        and is sent again by the beat, which is all the repeating there is.
        """
        try:
            with _SECONDS.time():
                written = await self._writer.write_hand(hand)
        except EXPECTED as error:
            reason = reason_of(error)
            _FAILED.labels(reason).inc()
            self._log.warning("hand not written", hand=f"{hand.table}/hands/{hand.hand}", error=reason)
            return FAILED
        _WRITTEN.labels(written.value).inc()
        return written.value

    async def write_hands(self, hands: Sequence[FinishedHand]) -> list[str]:
        """Writes several hands at once and returns what became of each; none keeps another from being written."""
        return await asyncio.gather(*(self.write_hand(hand) for hand in hands))

    async def resend_unwritten(self) -> int:
        """Sends the tasks of hands that are due again; returns how many."""
        try:
            due = await self._writer.list_unwritten(self._settings.history_resend_after_seconds, UNWRITTEN_PAGE_MAX)
        except grpc.aio.AioRpcError as error:
            self._log.warning("unwritten hands not listed", error=error.code().name)
            return 0
        _DUE.set(len(due))
        _LOOKED.set(self._clock.now_ms() / 1000)
        return await asyncio.to_thread(self._send_again, due)

    def taken(self, sent_ms: int) -> None:
        """Notes that a worker took a task that was sent at this time (0: not known)."""
        if sent_ms:
            _QUEUE_SECONDS.observe(max(0, self._clock.now_ms() - sent_ms) / 1000)

    def _send_again(self, due: list[FinishedHand]) -> int:
        with self._app.connection_for_write() as connection:
            # Not passive: a broker that lost its memory knows no queue, and that is when this is needed most.
            waiting = connection.default_channel.queue_declare(WRITE_QUEUE).message_count
        _QUEUED.labels(WRITE_QUEUE).set(waiting)
        if waiting > QUEUE_BUSY_LENGTH:
            self._log.info("not sent again, the queue is long", waiting=waiting, due=len(due))
            return 0
        hands = [WriteHand(*hand) for hand in due]
        for first in range(0, len(hands), HANDS_OF_A_TASK_MAX):
            # It is worth nothing once the next rounds of this have come.
            expires = self._settings.history_resend_every_seconds * 3
            send_hands(self._app, hands[first : first + HANDS_OF_A_TASK_MAX], expires_seconds=expires)
        _RESENT.inc(len(due))
        return len(due)


def add_tasks(app: Celery, pipeline: Pipeline, reconciler: Reconciler, upkeep: Upkeep, loop: LoopThread) -> None:
    """Registers the tasks with the application of a worker."""

    def write_hand(task: Any, table: str, epoch: int, hand: int) -> str:
        pipeline.taken(sent_ms_of(task.request))
        finished = FinishedHand(table, epoch, hand)
        return loop.run(lambda: pipeline.write_hand(finished), TASK_LIMIT_SECONDS[WRITE_QUEUE])

    def write_hands(task: Any, hands: list[tuple[str, int, int]]) -> list[str]:
        pipeline.taken(sent_ms_of(task.request))
        finished = [FinishedHand(*hand) for hand in hands[:HANDS_OF_A_TASK_MAX]]
        return loop.run(lambda: pipeline.write_hands(finished), TASK_LIMIT_SECONDS[WRITE_QUEUE])

    def resend_unwritten() -> int:
        return loop.run(pipeline.resend_unwritten, TASK_LIMIT_SECONDS[WRITE_QUEUE])

    def reconcile_hands() -> int:
        return loop.run(reconciler.round, TASK_LIMIT_SECONDS[WRITE_QUEUE])

    def delete_old_hands() -> int:
        return loop.run(upkeep.delete_old_hands, TASK_LIMIT_SECONDS[EXPORTS_QUEUE])

    def export_day(day: str = "") -> str:
        return loop.run(lambda: upkeep.export_day(day), TASK_LIMIT_SECONDS[EXPORTS_QUEUE])

    def audit_rows() -> int:
        return loop.run(upkeep.audit_rows, TASK_LIMIT_SECONDS[AUDITS_QUEUE])

    app.task(name=WRITE_HAND, bind=True)(write_hand)
    app.task(name=WRITE_HANDS, bind=True)(write_hands)
    app.task(name=RESEND_UNWRITTEN)(resend_unwritten)
    app.task(name=RECONCILE_HANDS)(reconcile_hands)
    app.task(name=DELETE_OLD_HANDS)(delete_old_hands)
    app.task(name=EXPORT_DAY)(export_day)
    app.task(name=AUDIT_ROWS)(audit_rows)
