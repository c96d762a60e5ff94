"""Requests: the same id is the same request, and reasons come in their order (RULES 11)."""

from __future__ import annotations

import pytest

from services.runtime.errors import Fault
from services.table import asks, core
from services.table.state import ANSWERS_PER_CALLER_MAX, CALLERS_REMEMBERED_MAX
from tests.unit.table.scripted import OPERATOR, Table, answer_of, player_at


def refusal(table: Table, caller: str, hand: int, turn: int, kind: str, *cards: int) -> str:
    with pytest.raises(Fault) as caught:
        table.ask(asks.TakeAction, caller, hand, turn, kind, 0, cards, b"")
    return caught.value.reason


def other_than(seat: int) -> int:
    return next(each for each in (1, 2, 3) if each != seat)


def test_a_request_is_taken_in_once() -> None:
    table = Table("house").sit(1)
    request = table.request(player_at(1), "once")
    asked = asks.UpdateSeat(request, True)
    table.step(lambda draft: core.ask(draft, asked))
    sequence, answer = table.state.sequence, answer_of(table, request)
    draft = table.step(lambda draft: core.ask(draft, asked))
    assert draft.told == []
    assert (table.state.sequence, answer_of(table, request)) == (sequence, answer)


def test_an_id_used_for_something_else_is_a_conflict_for_its_caller_alone() -> None:
    table = Table("house").sit(1, 2)
    first = asks.UpdateSeat(table.request(player_at(1), "mine", b"a"), True)
    other = asks.UpdateSeat(table.request(player_at(1), "mine", b"b"), False)
    theirs = asks.UpdateSeat(table.request(player_at(2), "mine", b"b"), True)
    table.step(lambda draft: core.ask(draft, first))
    with pytest.raises(Fault) as caught:
        table.step(lambda draft: core.ask(draft, other))
    assert caught.value.reason == "ACTION_CONFLICT"
    table.step(lambda draft: core.ask(draft, theirs))
    assert table.state.seats[2].sitting_out


def test_a_refused_request_is_not_remembered_and_may_be_asked_again() -> None:
    table = Table("house").sit(1)
    request = table.request(player_at(2), "again")
    with pytest.raises(Fault):
        table.step(lambda draft: core.ask(draft, asks.Leave(request)))
    assert answer_of(table, request) is None
    table.sit(2)
    table.step(lambda draft: core.ask(draft, asks.Leave(request)))
    assert answer_of(table, request) == b"", "promised until the ledger has paid"
    table.work()
    assert answer_of(table, request)


def test_what_is_remembered_is_bounded() -> None:
    table = Table("house").sit(1)
    for number in range(3 * ANSWERS_PER_CALLER_MAX):
        table.ask(asks.UpdateSeat, player_at(1), number % 2 == 0)
    assert len(table.state.answers[player_at(1)]) == ANSWERS_PER_CALLER_MAX
    for number in range(2 * CALLERS_REMEMBERED_MAX):
        table.ask(asks.Pause, f"operators/o{number}", "a break")
    assert len(table.state.answers) == CALLERS_REMEMBERED_MAX


def test_of_several_reasons_the_first_of_the_order_is_given() -> None:
    table = Table("house").sit(1, 2, 3).next_hand().play_to("first_round")
    acting, hand, turn = table.to_act, table.hand.number, table.hand.turn
    other = other_than(acting)
    assert refusal(table, player_at(9), hand, turn, "call") == "NOT_SEATED"
    assert refusal(table, player_at(acting), hand + 1, turn, "call") == "STALE_TURN"
    assert refusal(table, player_at(other), hand, turn + 1, "call") == "STALE_TURN"
    assert refusal(table, player_at(other), hand, turn, "discard") == "NOT_YOUR_TURN"
    assert refusal(table, player_at(acting), hand, turn, "discard") == "WRONG_STAGE"
    assert refusal(table, player_at(acting), hand, turn, "cut") == "WRONG_STAGE"
    assert refusal(table, player_at(acting), hand, turn, "check") == "CANNOT_CHECK"
    assert refusal(table, player_at(acting), hand, turn, "show") == "WRONG_STAGE"
    table.ask(asks.Pause, OPERATOR, "a break")
    assert refusal(table, player_at(other), hand, turn + 1, "call") == "TABLE_PAUSED"


def test_who_has_drawn_is_told_so_before_anything_else() -> None:
    table = Table("house").sit(1, 2, 3).next_hand().play_to("draw")
    drew, hand = table.to_act, table.hand.number
    table.act("discard")
    table.work()
    assert refusal(table, player_at(drew), hand, 1, "discard") == "ALREADY_DREW"
    table.ask(asks.Pause, OPERATOR, "a break")
    assert refusal(table, player_at(drew), hand, 1, "discard") == "ALREADY_DREW"


def test_a_discard_of_anothers_card_names_the_card_to_its_player_alone() -> None:
    table = Table("house").sit(1, 2, 3).next_hand().play_to("draw")
    acting, hand, turn = table.to_act, table.hand.number, table.hand.turn
    theirs = table.cards(other_than(acting))[0]
    own = table.cards(acting)[0]
    assert refusal(table, player_at(acting), hand, turn, "discard", theirs) == "CARD_NOT_HELD"
    assert refusal(table, player_at(acting), hand, turn, "discard", own, own) == "DUPLICATE_CARD"


def test_a_clock_and_a_late_action_race_and_one_of_them_counts() -> None:
    table = Table("house", time_bank_ms=0).sit(1, 2, 3).next_hand().play_to("first_round")
    acting, hand, turn = table.to_act, table.hand.number, table.hand.turn
    table.time_out()
    assert refusal(table, player_at(acting), hand, turn, "call") == "STALE_TURN"
    assert table.told[-2].public.action_taken.by_clock


def test_the_clock_of_a_turn_that_was_taken_in_time_does_nothing() -> None:
    table = Table("house").sit(1, 2, 3).next_hand().play_to("first_round")
    table.now_ms = table.deadline_ms  # due, but the action was first
    acting = table.to_act
    table.act()
    assert table.to_act != acting
    assert table.deadline_ms > table.now_ms
