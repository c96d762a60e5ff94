"""Faults planted in a playing house raise their alerts in a real Prometheus, within the bound that each page states.

One house has them one after the other, the one that closes its ledger last.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial

import pytest

from services.deck import grpc_api, metrics
from services.deck.decks import Decks
from services.deck.values import HandKey
from services.runtime.clock import SystemClock
from services.runtime.database import Database
from services.runtime.errors import Fault
from services.runtime.sealing import Sealer
from tests.embedded import EmbeddedHouse, embedded_house, scratch_folder
from tests.full.prometheus import Prometheus, prometheus, targets_of

pytestmark = [pytest.mark.full, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def watched_house() -> Iterator[tuple[EmbeddedHouse, Prometheus]]:
    folder = scratch_folder()
    with (
        embedded_house(folder / "house", "--tables", "3") as house,
        prometheus(folder / "prometheus", targets_of(house.port_base)) as server,
    ):
        server.until("sum(increase(fivedraw_table_hands_total[30s])) > 5", 90)
        yield house, server


def calm(server: Prometheus, alert: str) -> None:
    """Waits until an alert neither fires nor is about to, for what was planted before it."""
    server.until(f'absent(ALERTS{{alertname="{alert}"}})', 90)


def test_a_stopped_worker_is_missed_and_histories_are_late(watched_house):
    house, server = watched_house
    calm(server, "ServiceMissing")
    house.supervisor.stop_process("worker")
    missed = server.until_firing("ServiceMissing", 60)
    assert missed <= 30
    assert missed + server.until_firing("HistoriesLate", 60) <= 45
    house.supervisor.start_process("worker")
    server.until('absent(ALERTS{alertname="HistoriesLate", alertstate="firing"})', 90)


def test_a_paused_redis_is_told(watched_house):
    house, server = watched_house
    calm(server, "RedisFailing")
    with stopped(house.pid("redis")):
        assert server.until_firing("RedisFailing", 60) <= 30
    server.until('absent(ALERTS{alertname="RedisFailing", alertstate="firing"})', 120)


def test_a_slowed_wallet_is_told(watched_house):
    house, server = watched_house
    calm(server, "WalletSlow")
    with slowed(house.pid("wallet")):
        assert server.until_firing("WalletSlow", 120) <= 90


def test_a_forced_imbalance_is_told_at_once_and_closes_the_ledger(watched_house):
    house, server = watched_house
    calm(server, "LedgerImbalance")
    path = house.folder.database_url("wallet").removeprefix("sqlite:///")
    with closing(sqlite3.connect(path, timeout=30)) as database, database:
        database.execute(
            "UPDATE accounts SET balance = balance + 7 WHERE account ="
            " (SELECT account FROM accounts WHERE balance > 0 LIMIT 1)"
        )
    assert server.until_firing("LedgerImbalance", 30) <= 10


async def test_an_unhealthy_deck_is_told_at_once(tmp_path, serve, make_settings):
    """The deck service itself, with a source that breaks: no setting of a real house can bring that about."""
    broken = threading.Event()
    database = Database(f"sqlite:///{tmp_path / 'deck.sqlite'}")
    await database.migrate("deck")
    decks = Decks(
        database,
        SystemClock(),
        Sealer([("k", bytes(32))]),
        entropy=lambda count: bytes(count) if broken.is_set() else os.urandom(count),
    )
    metrics.show(decks)
    server = await serve(make_settings(), partial(grpc_api.register, decks), name="deck", with_metrics=True)
    with prometheus(tmp_path / "prometheus", {"deck": server.metrics_port}) as watching:
        watching.until("fivedraw_deck_healthy == 1", 30)
        assert not watching.firing("DeckUnhealthy")
        broken.set()
        # A new hand's deck takes a fresh seed, for which the source is read.
        with pytest.raises(Fault, match="DECK_UNHEALTHY"):
            await decks.open_deck(HandKey("tables/oak", 1, 1), "open")
        assert watching.until_firing("DeckUnhealthy", 30) <= 5
    await decks.close()
    await database.close()


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def slowed(pid: int) -> Iterator[None]:
    """The process runs for a moment of every second or so."""
    ended = threading.Event()

    def alternate() -> None:
        while not ended.is_set():
            os.kill(pid, signal.SIGSTOP)
            ended.wait(1.2)
            os.kill(pid, signal.SIGCONT)
            ended.wait(0.1)

    thread = threading.Thread(target=alternate)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        os.kill(pid, signal.SIGCONT)
