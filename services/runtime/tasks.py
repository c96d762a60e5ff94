"""Tasks that go through the broker: their names and queues, one configuration, and a sender that never blocks.

A task is only ever a hint: what is due stays in the index of whoever owns it until it is confirmed, and is sent again.
So a sender may drop a task (it counts it), a broker may lose one, and a worker may get one twice.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol

from celery import Celery
from kombu.exceptions import KombuError, OperationalError

from services.runtime import telemetry, tracing

WRITE_HAND: Final = "history.write_hand"
WRITE_HANDS: Final = "history.write_hands"
RESEND_UNWRITTEN: Final = "history.resend_unwritten"
RECONCILE_HANDS: Final = "history.reconcile_hands"
DELETE_OLD_HANDS: Final = "history.delete_old_hands"
EXPORT_DAY: Final = "history.export_day"
AUDIT_ROWS: Final = "history.audit_rows"
CHECK_NEW_ENTRIES: Final = "wallet.check_new_entries"
AUDIT_LEDGER: Final = "wallet.audit_ledger"

WRITE_QUEUE: Final = "history.write"
EXPORTS_QUEUE: Final = "history.exports"
AUDITS_QUEUE: Final = "history.audits"
LEDGER_QUEUE: Final = "wallet.audits"
QUEUES: Final = (WRITE_QUEUE, EXPORTS_QUEUE, AUDITS_QUEUE, LEDGER_QUEUE)

QUEUE_OF_TASK: Final = {
    WRITE_HAND: WRITE_QUEUE,
    WRITE_HANDS: WRITE_QUEUE,
    RESEND_UNWRITTEN: WRITE_QUEUE,
    RECONCILE_HANDS: WRITE_QUEUE,
    DELETE_OLD_HANDS: EXPORTS_QUEUE,
    EXPORT_DAY: EXPORTS_QUEUE,
    AUDIT_ROWS: AUDITS_QUEUE,
    CHECK_NEW_ENTRIES: LEDGER_QUEUE,
    AUDIT_LEDGER: LEDGER_QUEUE,
}

# How long one task of a queue may take, and after how long the broker gives it to another worker. The second is well
# above the first, so that no task is ever at work twice because it was slow.
TASK_LIMIT_SECONDS: Final = {WRITE_QUEUE: 20, EXPORTS_QUEUE: 900, AUDITS_QUEUE: 300, LEDGER_QUEUE: 3_000}
VISIBILITY_TIMEOUT_SECONDS: Final = {WRITE_QUEUE: 60, EXPORTS_QUEUE: 1_800, AUDITS_QUEUE: 600, LEDGER_QUEUE: 6_000}
RESTORE_INTERVAL_SECONDS: Final = 5

SENDS_WAITING_MAX: Final = 10_000
# Hands that end within a moment go to the broker as one task: its way there and back costs more than a hand's row.
HANDS_OF_A_TASK_MAX: Final = 32
LINGER_SECONDS: Final = 0.05
BROKER_TIMEOUT_SECONDS: Final = 2.0
CLOSE_SECONDS: Final = 5.0

# The header that tells when a task was sent, by the sender's clock.
SENT_HEADER: Final = "fivedraw_sent_ms"

_SENT: Final = telemetry.counter("fivedraw_tasks_sent_total", "Tasks by what became of them.", ("task", "outcome"))


class WriteHand(NamedTuple):
    """The history of a finished hand is due: `tables/{table}`, the table's epoch, the hand's number."""

    table: str
    epoch: int
    hand: int


class TaskSender(Protocol):
    """What the table service needs of the broker."""

    def send(self, task: WriteHand) -> bool:
        """Hands the task over without waiting for anything; False if it was dropped at once."""
        ...

    def close(self) -> None:
        """Sends what waits, within `CLOSE_SECONDS`, and lets the rest go."""
        ...


class RecordingSender:
    """A sender that keeps what it was given, for tests and simulations."""

    def __init__(self) -> None:
        self.sent: list[WriteHand] = []

    def send(self, task: WriteHand) -> bool:
        """Keeps the task."""
        self.sent.append(task)
        return True

    def close(self) -> None:
        """Nothing waits here."""


class CelerySender:
    """Sends through the broker from a thread of its own; at most `SENDS_WAITING_MAX` hands wait for it.

    Hands that come within `LINGER_SECONDS` of each other share a task, at most `HANDS_OF_A_TASK_MAX`.
    """

    def __init__(self, app: Celery) -> None:
        self._app = app
        # Each with the trace that it belongs to.
        self._waiting: queue.Queue[tuple[WriteHand, str] | None] = queue.Queue(SENDS_WAITING_MAX)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="task-sender", daemon=True)
        self._thread.start()
        self._log = telemetry.logger("runtime.tasks")

    def send(self, task: WriteHand) -> bool:
        """Hands the task to the sending thread; False (and counted) if the queue is full."""
        try:
            self._waiting.put_nowait((task, tracing.parent()))
        except queue.Full:
            _SENT.labels(WRITE_HAND, "dropped").inc()
            return False
        return True

    def close(self) -> None:
        """Sends what waits, within `CLOSE_SECONDS`; the rest is sent again by the beat."""
        try:
            self._waiting.put(None, timeout=CLOSE_SECONDS)
        except queue.Full:
            self._closing.set()
        self._thread.join(CLOSE_SECONDS)
        self._closing.set()

    def _work(self) -> None:
        while not self._closing.is_set():
            first = self._waiting.get()
            if first is None:
                return
            hands, is_last = self._gather(first[0])
            try:
                # Hands that share a task share the trace of the first.
                send_hands(self._app, hands, parent=first[1])
            except (KombuError, OperationalError, OSError) as error:
                # The broker is away; what is due is in the table's index and will be sent again.
                _SENT.labels(WRITE_HAND, "failed").inc(len(hands))
                self._log.warning("hands not sent", hands=len(hands), error=type(error).__name__)
            else:
                _SENT.labels(WRITE_HAND, "sent").inc(len(hands))
            if is_last:
                return

    def _gather(self, first: WriteHand) -> tuple[list[WriteHand], bool]:
        """The first hand and those that come soon after it; whether the end came among them."""
        hands = [first]
        end = time.monotonic() + LINGER_SECONDS
        while len(hands) < HANDS_OF_A_TASK_MAX:
            try:
                hand = self._waiting.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                break
            if hand is None:
                return hands, True
            hands.append(hand[0])
        return hands, False


def send_hands(
    app: Celery, hands: Sequence[WriteHand], *, expires_seconds: float | None = None, parent: str = ""
) -> None:
    """Publishes one task for these hands, at most `HANDS_OF_A_TASK_MAX`; otherwise as `send_now`."""
    if len(hands) == 1:
        send_now(app, WRITE_HAND, tuple(hands[0]), expires_seconds=expires_seconds, parent=parent)
    else:
        send_now(app, WRITE_HANDS, ([list(hand) for hand in hands],), expires_seconds=expires_seconds, parent=parent)


def send_now(
    app: Celery, name: str, args: tuple[Any, ...] = (), *, expires_seconds: float | None = None, parent: str = ""
) -> None:
    """Publishes one task and waits for the broker to have it. Raises kombu's `OperationalError`, never retries.

    `parent` is the trace that the task goes on with, as a `traceparent`.
    """
    app.send_task(
        name,
        args=args,
        queue=QUEUE_OF_TASK[name],
        ignore_result=True,
        retry=False,
        expires=expires_seconds,
        headers={SENT_HEADER: time.time_ns() // 1_000_000} | ({tracing.PARENT: parent} if parent else {}),
    )


def sent_ms_of(request: Any) -> int:
    """When the task of a worker's request was sent, in milliseconds since the Unix epoch; 0 if it does not say."""
    sent = request.get(SENT_HEADER) or (request.get("headers") or {}).get(SENT_HEADER)
    return sent if isinstance(sent, int) else 0


def make_app(broker_url: str, *, consumes: str = WRITE_QUEUE) -> Celery:
    """The Celery application of senders and workers. `consumes` is the queue whose tasks this process takes.

    Each queue's workers keep their unacknowledged tasks under keys of their own, because the broker's clients restore
    whatever they find there by *their* visibility timeout.
    """
    app = Celery("fivedraw", broker=broker_url, set_as_current=False)
    app.conf.update(
        task_queues={name: {"exchange": name, "routing_key": name} for name in QUEUES},
        task_default_queue=WRITE_QUEUE,
        task_routes={task: {"queue": name} for task, name in QUEUE_OF_TASK.items()},
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_store_errors_even_if_ignored=False,
        # A task is acknowledged when it is done; one whose worker dies is given to another.
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        worker_send_task_events=False,
        worker_enable_remote_control=False,
        worker_cancel_long_running_tasks_on_connection_loss=True,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_pool_limit=2,
        broker_transport_options={
            "visibility_timeout": VISIBILITY_TIMEOUT_SECONDS[consumes],
            "unacked_key": f"unacked.{consumes}",
            "unacked_index_key": f"unacked_index.{consumes}",
            "unacked_mutex_key": f"unacked_mutex.{consumes}",
            "unacked_restore_interval": RESTORE_INTERVAL_SECONDS,
            "unacked_restore_throttle": 1,
            "socket_timeout": BROKER_TIMEOUT_SECONDS * 5,
            "socket_connect_timeout": BROKER_TIMEOUT_SECONDS,
            "socket_keepalive": True,
            "health_check_interval": 10,
        },
        enable_utc=True,
        timezone="UTC",
        # The schedule has intervals only, so nothing need be remembered on disk.
        beat_scheduler="celery.beat:Scheduler",
    )
    return app
