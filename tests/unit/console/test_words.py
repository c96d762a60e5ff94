"""What the console's words make of names."""

from __future__ import annotations

import pytest
from fivedraw.table.v1 import event_pb2, table_pb2

from services.console import words


@pytest.mark.parametrize(
    ("name", "drawn"),
    [("ann", "ann"), ("bots-1-house-4", "bots-1-house-4"), ("bots-2-clocked-4", "bots-2…ocked-4")],
)
def test_a_long_name_keeps_both_ends(name, drawn):
    assert words.short(name) == drawn
    assert len(drawn) <= words.NAME_MAX


def test_only_what_has_a_level_tells_one():
    took = {"seat": 2, "to_minor": 20}
    fold = event_pb2.TableEvent(action_taken=event_pb2.ActionTaken(kind=table_pb2.ACTION_KIND_FOLD, **took))
    call = event_pb2.TableEvent(action_taken=event_pb2.ActionTaken(kind=table_pb2.ACTION_KIND_CALL, **took))
    assert [words.line(fold, "EUR"), words.line(call, "EUR")] == ["seat 2: fold", "seat 2: call to 0.20"]


@pytest.mark.parametrize(("currency", "level"), [("EUR", "0.20"), ("JPY", "20"), ("CHIPS", "20"), ("KWD", "0.020")])
def test_amounts_are_in_the_unit_of_the_tables_currency(currency, level):
    call = event_pb2.ActionTaken(kind=table_pb2.ACTION_KIND_CALL, seat=2, to_minor=20)
    posted = event_pb2.ForcedBetPosted(seat=1, amount_minor=20)
    pot = table_pb2.Pot(amount_minor=20, winners={3: 20})
    stage = event_pb2.StageStarted(stage=table_pb2.STAGE_DRAW, pot_minor=20)
    events = [
        event_pb2.TableEvent(action_taken=call),
        event_pb2.TableEvent(forced_bet_posted=posted),
        event_pb2.TableEvent(pot_awarded=event_pb2.PotAwarded(pot=pot)),
        event_pb2.TableEvent(stage_started=stage),
    ]
    assert [words.line(event, currency) for event in events] == [
        f"seat 2: call to {level}",
        f"seat 1 posts {level}",
        f"pot of {level}: seat 3 {level}",
        f"draw, pot {level}",
    ]
    seats = [table_pb2.SeatView(seat=1, stack_minor=20, bet_minor=20)]
    view = table_pb2.TableView(table=table_pb2.Table(currency=currency), pot_minor=20, carry_minor=20, seats=seats)
    drawn = words.picture(view)
    assert {drawn.pot, drawn.carry, drawn.seats[0].stack, drawn.seats[0].bet} == {level}


LIMIT = {"small_bet_minor": 1000, "big_bet_minor": 2000}
BLINDS = {"small_blind_minor": 5, "big_blind_minor": 10}


@pytest.mark.parametrize(
    ("currency", "options", "told"),
    [
        ("EUR", {"betting": table_pb2.BETTING_NO_LIMIT, **BLINDS}, "NL 0.05/0.10 EUR"),
        ("JPY", {"betting": table_pb2.BETTING_NO_LIMIT, **BLINDS}, "NL 5/10 JPY"),
        ("CHIPS", {"betting": table_pb2.BETTING_POT_LIMIT, **BLINDS, "ante_minor": 2}, "PL 5/10 ante 2 CHIPS"),
        ("USD", {"betting": table_pb2.BETTING_FIXED_LIMIT, **LIMIT, **BLINDS}, "FL 10/20 USD"),
        ("KWD", {"betting": table_pb2.BETTING_FIXED_LIMIT, **LIMIT}, "FL 1/2 KWD"),
        (
            "EUR",
            {
                "betting": table_pb2.BETTING_SPREAD_LIMIT,
                "spread_min_minor": 50,
                "spread_max_minor": 200,
                "ante_minor": 50,
            },
            "SL 0.50-2 ante 0.50 EUR",
        ),
    ],
)
def test_stakes_are_in_the_unit_of_the_tables_currency(currency, options, told):
    table = table_pb2.Table(currency=currency, stakes="in minor units", options=table_pb2.GameOptions(**options))
    assert words.stakes(table) == told


@pytest.mark.parametrize(
    ("milliseconds", "told"),
    [(9_999, ""), (10_000, "10 s"), (59_999, "50 s"), (60_000, "1 min"), (3_599_000, "59 min"), (3_600_000, "1 h")],
)
def test_a_time_is_told_in_one_figure(milliseconds, told):
    assert words.lasting(milliseconds) == told
    assert words.lasting(200_000_000) == "2 days"
