"""States, events and commands survive their bytes; a view holds what its viewer may see."""

from __future__ import annotations

import pytest

from services.rules.codec import (
    CodecRefused,
    dump_command,
    dump_event,
    dump_state,
    load_command,
    load_event,
    load_state,
)
from services.rules.commands import (
    Act,
    Begin,
    ClockRanOut,
    DeliverDeal,
    DeliverExchange,
    DeliverLateCard,
    Discard,
    Show,
)
from services.rules.events import CardsDealt, Discarded, private_to, redact
from services.rules.views import view
from tests.unit.rules.play import Table, same

ACES, KINGS, QUEENS = "As Ah Ad 9c 4d", "Ks Kh Kd 8c 3d", "Qs Qh Jd 7c 2d"


def played() -> Table:
    table = Table("house", same(1, 2, 3), hands={1: ACES, 2: KINGS, 3: QUEENS}, stub="6s 5s", rake_basis_points=500)
    table.acts("S1 call", "S2 call", "S3 check", "S2 discard 8c 3d", "S3 pat", "S1 pat")
    return table


def test_states_and_events_survive_their_bytes():
    table = played().acts("S2 check", "S3 bet 20", "S1 call", "S2 fold")
    assert load_state(dump_state(table.state)) == table.state
    for event in table.hand.events:
        assert load_event(dump_event(event)) == event


@pytest.mark.parametrize(
    "command",
    [
        Begin(),
        DeliverDeal({1: (1, 2, 3, 4, 5)}),
        Act(1, "raise", 40),
        Discard(2, (3, 4)),
        DeliverExchange(2, (5,), True),
        DeliverLateCard(2, 6, True, False),
        ClockRanOut(3),
        Show(1),
    ],
)
def test_commands_survive_their_bytes(command: object):
    assert load_command(dump_command(command)) == command  # type: ignore[arg-type]


@pytest.mark.parametrize("packed", [b"", b"\x02\x80", b"\x01", b"\x01\xc1", b"\x01\x80"])
def test_other_bytes_are_refused(packed: bytes):
    for load in (load_state, load_event, load_command):
        with pytest.raises(CodecRefused):
            load(packed)


def test_a_view_shows_own_cards_and_discards_only():
    state = played().state
    seen = {seat.seat: seat for seat in view(state, 2).seats}
    assert len(seen[2].cards) == 5
    assert (seen[1].cards, seen[3].cards, seen[1].hand_size) == ((), (), 5)
    assert len(view(state, 2).discards) == 2
    assert view(state, 3).discards == ()
    assert all(not seat.cards for seat in view(state, None).seats)
    assert all(not seat.cards for seat in view(state, 7).seats)


def test_only_the_seat_to_act_is_told_its_legal_actions():
    state = played().state
    assert view(state, 2).legal.bet == (10, 490)
    for viewer in (1, 3, None):
        assert view(state, viewer).legal.bet is None
        assert view(state, viewer).to_act == 2


def test_drawn_counts_are_seen_by_everybody_to_the_end_of_the_hand():
    table = played().acts("S2 check", "S3 check", "S1 check")
    assert {seat.seat: seat.drawn for seat in view(table.state, None).seats} == {1: 0, 2: 2, 3: 0}


def test_shown_hands_are_seen_and_mucked_ones_are_not():
    table = played().acts("S2 check", "S3 bet 20", "S1 call", "S2 call")
    seen = {seat.seat: seat for seat in view(table.state, None).seats}
    assert (view(table.state, None).shown, view(table.state, None).mucked) == ((3, 1), (2,))
    assert (len(seen[3].cards), len(seen[1].cards), seen[2].cards) == (5, 5, ())


def test_private_parts_are_the_owner_s():
    dealt = CardsDealt(2, 5, (1, 2, 3, 4, 5))
    assert private_to(dealt) == (2,)
    assert redact(dealt, 2) == dealt
    assert redact(dealt, 3) == redact(dealt, None) == CardsDealt(2, 5, ())
    pat = Discarded(2, 0, 0, False, False, (), 3)
    assert private_to(pat) == ()
    assert redact(pat, 3) is pat


def test_all_in_is_live_without_chips_before_the_end():
    table = Table("house", {1: 50, 2: 500, 3: 500}, hands={1: ACES, 2: KINGS, 3: QUEENS})
    table.acts("S1 raise 50", "S2 call", "S3 fold")
    assert {seat.seat: seat.all_in for seat in view(table.state, None).seats} == {1: True, 2: False, 3: False}
    assert {seat.seat: seat.live for seat in view(table.state, None).seats} == {1: True, 2: True, 3: False}
    table.acts("S2 pat", "S1 pat")
    assert not any(seat.all_in for seat in view(table.state, None).seats)


def test_a_view_tells_the_money_and_the_end():
    table = played().acts("S2 check", "S3 bet 20", "S1 fold", "S2 fold")
    seen = view(table.state, None)
    assert {seat.seat: (seat.stack, seat.total, seat.returned) for seat in seen.seats} == {
        1: (490, 10, 0),
        2: (490, 10, 0),
        3: (519, 10, 20),
    }
    assert (seen.outcome, seen.rake, seen.carry_out, seen.next_button) == ("uncontested", 1, 0, 2)
    assert (seen.button, seen.to_act, seen.pot, seen.carry, seen.level) == (1, None, 30, 0, 0)


def test_a_view_marks_who_missed_the_draw_clock():
    table = Table("clocked", same(1, 2)).acts("S1 call", "S2 check", "S2 clock", "S1 pat")
    assert {seat.seat: seat.barred for seat in view(table.state, None).seats} == {1: False, 2: True}
