"""No hidden card stands in any log line, metric, Redis value, Redis channel or error of a 200-hand run."""

from __future__ import annotations

import pytest

from tests.card_search import hidden_cards, single_cards, unescaped
from tests.two_hundred_hands import HANDS, PLAYERS, Run, two_hundred_hands

pytestmark = pytest.mark.timeout(400)


@pytest.fixture
def run() -> Run:
    return two_hundred_hands()


def test_the_hidden_cards_of_the_run_are_known(run: Run):
    assert run.hands_known >= HANDS * 2
    assert run.hands_known <= len(run.history_rows) * PLAYERS
    assert len(run.truth.hidden) > HANDS
    assert run.truth.shown


def test_no_value_in_redis_holds_one(run: Run):
    assert len(run.redis_values) > HANDS
    assert [found for value in run.redis_values for found in hidden_cards(value, run.truth)] == []


def test_no_command_and_no_channel_of_redis_carries_one(run: Run):
    lines = run.redis_commands.splitlines()
    assert any(b'"PUBLISH"' in line.upper() or b'"SPUBLISH"' in line.upper() for line in lines)
    assert [found for line in lines for found in hidden_cards(unescaped(line), run.truth)] == []


def test_no_log_line_holds_one(run: Run):
    assert {"table.log", "deck.log", "wallet.log", "history.log", "worker.log", "redis.log"} <= set(run.logs)
    for name, log in run.logs.items():
        assert list(hidden_cards(log, run.truth)) == [], name
        assert single_cards(log) == [], name


def test_no_metric_holds_one(run: Run):
    pages = [page for page in run.metrics if page]
    assert any(b"fivedraw_deck" in page for page in pages)
    assert [found for page in pages for found in [*hidden_cards(page, run.truth), *single_cards(page)]] == []


def test_no_error_holds_one(run: Run):
    assert len(run.refusals) > 100
    for refusal in run.refusals:
        named, _, told = refusal.partition("] ")
        for card in set(named.strip("[").split(",")) - {""}:
            told = told.replace(card, "")
        # The house's own example of how a card is written.
        told = told.replace("such as 'Td'", "")
        assert list(hidden_cards(told.encode(), run.truth)) == []
        assert single_cards(told.encode()) == []
