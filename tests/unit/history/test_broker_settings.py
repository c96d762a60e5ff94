"""Settings of the broker and its tasks on which the promise of one row a hand rests."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.history.settings import HistorySettings
from services.runtime import tasks
from services.runtime.tasks import QUEUES, TASK_LIMIT_SECONDS, VISIBILITY_TIMEOUT_SECONDS, make_app

BROKER_CONF = Path(__file__).resolve().parents[3] / "deploy" / "redis" / "broker.conf"


@pytest.mark.parametrize("queue", QUEUES)
def test_a_task_is_given_to_another_only_when_it_cannot_be_at_work_any_more(queue: str) -> None:
    conf = make_app("memory://", consumes=queue).conf
    assert conf.task_acks_late
    assert conf.task_reject_on_worker_lost
    assert conf.worker_prefetch_multiplier == 1
    assert conf.broker_transport_options["visibility_timeout"] == VISIBILITY_TIMEOUT_SECONDS[queue]
    assert VISIBILITY_TIMEOUT_SECONDS[queue] >= 2 * TASK_LIMIT_SECONDS[queue]


def test_queues_keep_what_is_at_work_apart() -> None:
    options = [make_app("memory://", consumes=queue).conf.broker_transport_options for queue in QUEUES]
    for name in ("unacked_key", "unacked_index_key", "unacked_mutex_key"):
        assert len({each[name] for each in options}) == len(QUEUES)


def test_writing_exports_and_audits_have_queues_of_their_own() -> None:
    assert tasks.QUEUE_OF_TASK[tasks.WRITE_HAND] == tasks.QUEUE_OF_TASK[tasks.WRITE_HANDS] == tasks.WRITE_QUEUE
    assert tasks.QUEUE_OF_TASK[tasks.EXPORT_DAY] == tasks.EXPORTS_QUEUE
    assert tasks.QUEUE_OF_TASK[tasks.AUDIT_ROWS] == tasks.AUDITS_QUEUE


def test_the_broker_of_production_evicts_nothing_and_keeps_a_log() -> None:
    lines = BROKER_CONF.read_text().splitlines()
    assert "maxmemory-policy noeviction" in lines
    assert "appendonly yes" in lines


def test_a_hand_is_sent_again_before_it_is_taken_for_lost() -> None:
    settings = HistorySettings()
    sent_again = settings.history_resend_after_seconds + 3 * settings.history_resend_every_seconds
    assert settings.history_reconcile_after_seconds > sent_again + TASK_LIMIT_SECONDS[tasks.WRITE_QUEUE]
