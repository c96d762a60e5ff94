"""Players' seeds: taken between the commitment to a deck and its shuffle, for that deck alone (DESIGN 5)."""

from __future__ import annotations

import pytest

from services.runtime.errors import Fault
from services.table import asks, core, entropy, words
from services.table import state as s
from tests.unit.table.scripted import OPERATOR, Table, player_at

NEXT = b"n" * 32
OPENED = b"c" * 32


def give(table: Table, seat: int, seed: bytes, commitment: bytes = b"") -> None:
    table.ask(asks.SetSeed, player_at(seat), commitment or table.state.commitment, seed)


def refused(table: Table, seat: int, commitment: bytes) -> Fault:
    with pytest.raises(Fault) as caught:
        give(table, seat, b"too late", commitment)
    assert caught.value.reason == "COMMITMENT_NOT_OPEN"
    return caught.value


def shuffle(table: Table) -> s.ShuffleDeck:
    """Goes on to the shuffle of the next deck, without carrying it out."""
    while True:
        if table.state.effects:
            if isinstance(table.state.effects[0], s.ShuffleDeck):
                return table.state.effects[0]
            table.work_one()
        else:
            table.time_out()


def between_hands(rulebook: str = "house") -> Table:
    """Three seats after their first hand."""
    return Table(rulebook).sit(1, 2, 4).next_hand().play_out().work()


def test_seeds_given_between_hands_go_into_the_next_shuffle_by_seat() -> None:
    table = between_hands("clocked")
    assert table.state.commitment == NEXT
    give(table, 4, b"four")
    give(table, 1, b"one")
    give(table, 1, b"one, better")
    assert shuffle(table).seeds == (s.SeatSeed(1, b"one, better"), s.SeatSeed(4, b"four"))
    refused(table, 2, NEXT)
    table.work()
    told = next(each.public.deck_committed for each in reversed(table.told) if each.public.HasField("deck_committed"))
    assert [(each.seat, each.seed) for each in told.player_seeds] == [(1, b"one, better"), (4, b"four")]
    refused(table, 2, NEXT)
    # They are used up: the deck after that has none.
    table.play_out().work()
    assert shuffle(table).seeds == ()


def test_nobody_is_told_a_seed_before_the_root() -> None:
    table = between_hands()
    told = len(table.told)
    give(table, 1, b"secret until then")
    assert len(table.told) == told
    for viewer in (*map(player_at, (1, 2, 4)), OPERATOR):
        assert b"secret" not in words.view(table.state, viewer, 0).SerializeToString()
    assert b"secret" not in words.table(table.state).SerializeToString()


def test_a_first_deck_takes_seeds_while_its_cut_is_waited_for() -> None:
    table = Table("american").sit(1, 2)
    refused(table, 1, OPENED)
    table.next_hand()
    assert table.stage == "cut"
    assert table.state.commitment == OPENED
    give(table, 2, b"two")
    table.act("cut")
    assert table.state.effects[0].seeds == (s.SeatSeed(2, b"two"),)
    refused(table, 1, OPENED)


def test_a_first_deck_without_a_cut_takes_none() -> None:
    table = Table("clocked").sit(1, 2)
    assert shuffle(table).seeds == ()
    refused(table, 1, OPENED)


def test_a_seed_for_another_commitment_is_refused_and_the_right_one_named() -> None:
    table = between_hands()
    assert refused(table, 1, b"x" * 32).metadata["commitment"] == NEXT.hex()
    assert table.state.seats[1].seed == b""


def test_a_seed_whose_commitment_was_replaced_is_dropped() -> None:
    table = between_hands()
    give(table, 1, b"for the deck that was told")
    table.step(lambda draft: entropy.committed(draft, b"another deck than was told".ljust(32)))
    assert shuffle(table).seeds == ()


def test_a_void_hand_takes_its_seeds_with_it_and_commits_to_the_next_deck() -> None:
    table = between_hands("american")
    while table.state.playing is None:
        table.time_out()
        table.work()
    give(table, 1, b"one")
    table.ask(asks.Void, OPERATOR, table.hand.number, "a test")
    assert table.state.commitment == b""
    assert table.state.seats[1].seed == b""
    table.work()
    voided = next(each.public.hand_voided for each in reversed(table.told) if each.public.HasField("hand_voided"))
    assert voided.next_commitment == table.state.commitment == NEXT
    give(table, 1, b"again")


def test_who_has_no_seat_gives_no_seed_and_who_leaves_takes_it_along() -> None:
    table = between_hands("clocked")
    with pytest.raises(Fault) as caught:
        give(table, 3, b"three")
    assert caught.value.reason == "NOT_SEATED"
    give(table, 4, b"four")
    give(table, 2, b"two")
    table.ask(asks.Leave, player_at(4))
    table.work()
    table.ask(asks.SitDown, "players/new", 4, table.state.rulebook.max_buy_in_minor, 0)
    table.work()
    assert shuffle(table).seeds == (s.SeatSeed(2, b"two"),)


def test_the_answer_names_the_hand_and_a_repeated_request_gets_it_again() -> None:
    table = between_hands()
    request = table.request(player_at(1), "seed-1", b"digest")
    asked = asks.SetSeed(request, NEXT, b"one")
    for _ in range(2):
        table.step(lambda draft: core.ask(draft, asked))
    (answer,) = [each for each in table.state.answers[player_at(1)] if each.request_id == "seed-1"]
    assert answer.answer[1:] == b"\x08\x02"  # hand 2
