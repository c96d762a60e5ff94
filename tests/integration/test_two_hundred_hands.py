"""`fivedraw up`, from outside: after 200 hands of all five games every promise of the house still holds, and no hidden
card stands in any log line, metric, Redis value, Redis channel or error of the run.
"""

from __future__ import annotations

import pytest

from tests.card_search import hidden_cards, single_cards, unescaped
from tests.two_hundred_hands import HANDS, PLAYERS, Run, two_hundred_hands

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def run() -> Run:
    return two_hundred_hands()


def test_all_accounts_sum_to_zero(run: Run):
    assert run.imbalance
    assert set(run.imbalance) == {0}
    assert run.summary["ledger_balance_minor"] == 0
    assert run.summary["chips_in_play_minor"] > 0


def test_every_finished_hand_has_exactly_one_history_row(run: Run):
    assert len(run.history_rows) >= HANDS
    assert set(run.history_rows.values()) == {1}


def test_every_watchers_sequence_is_gapless(run: Run):
    assert [str(gap) for stream in run.onlooker.streams.values() for gap in stream.violations] == []
    assert all(stream.keeper.events > 0 for stream in run.onlooker.streams.values())
    assert run.onlooker.broken_promises() == []


def test_bots_play_all_five_rulebooks_and_every_action(run: Run):
    hands = run.summary["hands_by_rulebook"]
    assert set(hands) == {"house", "clocked", "casadela", "openers", "american"}
    assert min(hands.values()) > 0
    assert {"fold", "check", "call", "bet", "raise", "discard", "cut"} <= set(run.summary["bot_actions"])


def test_the_house_ends_in_order_and_says_that_all_is_well(run: Run):
    assert run.summary["faults"] == []
    assert run.summary["ok"] is True
    assert run.summary["exit_status"] == 0
    assert run.summary["restarts"] == {}
    assert run.summary["errors"] == 0


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
