"""From the rules' values to the contract's messages, written from the protos and not shared with the table service."""

from __future__ import annotations

from fivedraw.table.v1 import table_pb2

from services.rules.betting import LegalActions
from services.rules.cards import format_card
from services.rules.rulebook import Rulebook

BETTING = {
    "fixed_limit": table_pb2.BETTING_FIXED_LIMIT,
    "spread_limit": table_pb2.BETTING_SPREAD_LIMIT,
    "pot_limit": table_pb2.BETTING_POT_LIMIT,
    "no_limit": table_pb2.BETTING_NO_LIMIT,
}
STAGE = {
    "first_round": table_pb2.STAGE_FIRST_ROUND,
    "draw": table_pb2.STAGE_DRAW,
    "second_round": table_pb2.STAGE_SECOND_ROUND,
}
ACTION = {
    "fold": table_pb2.ACTION_KIND_FOLD,
    "check": table_pb2.ACTION_KIND_CHECK,
    "call": table_pb2.ACTION_KIND_CALL,
    "bet": table_pb2.ACTION_KIND_BET,
    "raise": table_pb2.ACTION_KIND_RAISE,
}
FORCED = {
    "ante": table_pb2.FORCED_BET_KIND_ANTE,
    "small_blind": table_pb2.FORCED_BET_KIND_SMALL_BLIND,
    "big_blind": table_pb2.FORCED_BET_KIND_BIG_BLIND,
    "post": table_pb2.FORCED_BET_KIND_POST,
    "dead_post": table_pb2.FORCED_BET_KIND_DEAD_BLIND,
}
OUTCOME = {
    "showdown": table_pb2.HAND_OUTCOME_SHOWDOWN,
    "uncontested": table_pb2.HAND_OUTCOME_UNCONTESTED,
    "passed_out": table_pb2.HAND_OUTCOME_PASSED_OUT,
}
_SAME = (
    *("seats", "bets_per_round", "first_round", "openers", "first_round_all_checked", "second_round"),
    *("second_round_all_checked", "max_draw", "single_four_card_draw", "cut", "reshuffle", "missed_draw", "losers"),
    *("odd_chips", "button_after_pass_out", "rake_basis_points"),
)
_AMOUNTS = (
    *("ante", "small_blind", "big_blind", "chip_unit", "small_bet", "big_bet", "spread_min", "spread_max", "rake_cap"),
)


def cards(numbers: tuple[int, ...]) -> list[str]:
    return [format_card(number) for number in numbers]


def options(book: Rulebook) -> table_pb2.GameOptions:
    told = table_pb2.GameOptions(betting=BETTING[book.betting])
    for name in _SAME:
        setattr(told, name, getattr(book, name))
    for name in _AMOUNTS:
        setattr(told, f"{name}_minor", getattr(book, name))
    told.action_clock.FromMilliseconds(book.action_clock_ms)
    told.draw_clock.FromMilliseconds(book.draw_clock_ms)
    return told


def legal_actions(allowed: LegalActions) -> table_pb2.LegalActions:
    told = table_pb2.LegalActions(fold=allowed.fold, check=allowed.check, call=allowed.call is not None)
    told.call_minor = allowed.call or 0
    told.discard = bool(allowed.max_discards)
    told.max_discards = allowed.max_discards or 0
    return told
