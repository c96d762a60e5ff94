"""`fivedraw up`, from outside: after 200 hands of all five games every promise of the house still holds."""

from __future__ import annotations

import pytest

from tests.two_hundred_hands import HANDS, Run, two_hundred_hands

pytestmark = pytest.mark.timeout(400)


@pytest.fixture
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
