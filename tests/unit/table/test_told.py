"""What a player is told (RULES 3 and 5): each fact of a hand in an event of its own, as it happened."""

from __future__ import annotations

from typing import Any

from fivedraw.table.v1 import table_pb2

from services.rules.ranking import hand_name
from services.table import words
from tests.unit.table.scripted import Table

SEEDS = range(30)


def bodies(table: Table, kind: str = "") -> list[Any]:
    """All events told, or those of one kind."""
    events = [told.public for told in table.told]
    if not kind:
        return [event.WhichOneof("body") for event in events]
    return [getattr(event, kind) for event in events if event.WhichOneof("body") == kind]


def at_draw(rulebook: str, seats: int) -> Table:
    """A table whose hand has come to the draw with everybody in it; whose cards let nobody open is dealt again."""
    for seed in SEEDS:
        table = Table(rulebook, seed, seats=6)
        table.sit(*range(1, seats + 1)).next_hand()
        try:
            table.play_to("draw")
        except AssertionError:
            continue
        assert table.hand.engine is not None
        if table.hand.engine.live.bit_count() == seats:
            return table
    raise AssertionError("no hand came to the draw")


def test_every_event_carries_its_hand_and_a_sequence_without_gaps():
    table = at_draw("house", 3).play_out()
    events = [told.public for told in table.told]
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    start = bodies(table).index("hand_started")
    end = bodies(table).index("hand_settled")
    assert {event.hand for event in events[start : end + 1]} == {1}
    assert {event.hand for event in events[:start]} == {0}


def test_forced_bets_and_the_order_of_the_deal_are_told():
    table = at_draw("house", 3)
    button = bodies(table, "hand_started")[0].button
    left, next_left = button % 3 + 1, (button + 1) % 3 + 1
    posted = [(bet.seat, bet.kind, bet.amount_minor) for bet in bodies(table, "forced_bet_posted")]
    small, big = table_pb2.FORCED_BET_KIND_SMALL_BLIND, table_pb2.FORCED_BET_KIND_BIG_BLIND
    assert posted == [(left, small, 5), (next_left, big, 10)]
    assert list(bodies(table, "cards_dealt")[0].seats) == [left, next_left, button]


def test_the_count_drawn_is_told_and_stays_in_the_view_to_the_end_of_the_hand():
    table = at_draw("house", 3)
    seat = table.to_act
    table.act("discard", cards=table.cards(seat)[:2])
    table.work()
    assert [(each.seat, each.count) for each in bodies(table, "cards_discarded")] == [(seat, 2)]
    assert [(each.seat, each.count) for each in bodies(table, "cards_drawn")] == [(seat, 2)]
    table.play_to("second_round")
    drawn = {number: words.seat_view(table.state, each).drawn for number, each in table.state.seats.items()}
    assert drawn == {number: 2 if number == seat else 0 for number in (1, 2, 3)}
    table.play_out()
    assert words.seat_view(table.state, table.state.seats[seat]).drawn == 2


def test_an_uncalled_bet_is_told_as_returned_and_is_no_part_of_the_pot():
    table = at_draw("house", 3).play_to("second_round")
    bettor = table.to_act
    table.act("bet", 150)
    table.act("fold")
    table.act("fold")
    table.work()
    assert [(each.seat, each.amount_minor) for each in bodies(table, "bet_returned")] == [(bettor, 150)]
    pots = [(list(each.pot.winners), each.pot.amount_minor) for each in bodies(table, "pot_awarded")]
    assert pots == [([pots[0][0][0]], 30)]
    assert dict(bodies(table, "pot_awarded")[0].pot.winners) == {bettor: 30}


def test_each_pot_is_told_with_its_winners_and_each_shown_hand_by_its_name():
    table = Table("house", 4, seats=6)
    table.sit(1, chips=200).sit(2, chips=500).sit(3, chips=900).next_hand()
    table.play_to("first_round")
    while table.stage == "first_round":
        bounds = table.legal().raise_
        if bounds is not None:
            table.act("raise", bounds[1])
        else:
            table.act("call")
        table.work()
    hands = {seat: table.cards(seat) for seat in (1, 2, 3)}
    table.play_out()
    pots = [each.pot for each in bodies(table, "pot_awarded")]
    # Stacks 200, 500, 900: the side pot is paid first, the main pot last; nobody could call more than 500.
    assert [(pot.index, pot.amount_minor) for pot in pots] == [(1, 600), (0, 600)]
    assert [sum(pot.winners.values()) for pot in pots] == [600, 600]
    shown = bodies(table, "hand_shown")
    assert shown
    assert [each.hand_name for each in shown] == [hand_name(hands[each.seat]) for each in shown]


def test_a_late_fourth_card_is_told_when_asked_for_and_when_it_comes():
    table = at_draw("openers", 3)
    first = table.to_act
    table.act("discard", cards=table.cards(first)[:4])
    table.work()
    assert [(each.seat, each.count) for each in bodies(table, "cards_discarded")] == [(first, 4)]
    assert [(each.seat, each.count, each.late) for each in bodies(table, "cards_drawn")] == [(first, 3, False)]
    table.play_to("second_round")
    assert [(each.seat, each.count, each.late) for each in bodies(table, "cards_drawn")][-1] == (first, 1, True)
    assert bodies(table, "card_burned") == []


def test_a_card_burned_before_the_last_drawers_fourth_is_told():
    table = at_draw("openers", 3)
    table.act("discard")
    table.act("discard")
    last = table.to_act
    table.act("discard", cards=table.cards(last)[:4])
    table.work()
    order = [body for body in bodies(table) if body in ("cards_discarded", "cards_drawn", "card_burned")]
    assert order[-4:] == ["cards_discarded", "cards_drawn", "card_burned", "cards_drawn"]
    assert [(each.seat, each.late) for each in bodies(table, "cards_drawn")] == [(last, False), (last, True)]
