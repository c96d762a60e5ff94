"""Doubt about the randomness closes the deck: no hand is dealt, open ones can be closed, what was answered stays."""

from __future__ import annotations

import os

import pytest

from services.deck.values import HandKey
from services.runtime.errors import Fault

KEY = HandKey("tables/oak", 1, 1)


class Source:
    """The operating system's entropy until it is told to get stuck."""

    def __init__(self) -> None:
        self.stuck = False

    def __call__(self, count: int) -> bytes:
        return bytes(count) if self.stuck else os.urandom(count)


async def reason_of(call) -> str:
    with pytest.raises(Fault) as caught:
        await call
    return caught.value.reason


async def test_a_source_that_gets_stuck_closes_the_deck(open_decks) -> None:
    source = Source()
    decks = await open_decks(entropy=source)
    await decks.open_deck(KEY, "open")
    await decks.cut_deck(KEY, "cut")
    dealt = await decks.deal_cards(KEY, "deal", seats=(1, 2))
    source.stuck = True
    # The next seed is drawn with entropy read for it alone, so the fault is found at once, and nothing was opened.
    other = HandKey("tables/elm", 1, 1)
    assert await reason_of(decks.open_deck(other, "open")) == "DECK_UNHEALTHY"
    assert not decks.get_rng_health().healthy
    assert "repetition count" in decks.get_rng_health().fault
    assert await reason_of(decks.exchange_cards(KEY, "x", seat=1, discards=())) == "DECK_UNHEALTHY"
    assert await reason_of(decks.draw_lots("tables/elm", "lot", seats=(1, 2))) == "DECK_UNHEALTHY"
    assert await decks.deal_cards(KEY, "deal", seats=(1, 2)) == dealt
    closed = await decks.close_deck(KEY, "close", void=True)
    assert closed.next_commitment == b""
    assert await reason_of(decks.open_deck(HandKey("tables/oak", 1, 2), "open-2")) == "DECK_UNHEALTHY"

    sound = await open_decks()
    assert sound.get_rng_health().healthy
    opened = await sound.open_deck(HandKey("tables/oak", 1, 2), "open-2")
    assert (opened.deck_number, len(opened.commitment)) == (2, 32)


async def test_a_fence_works_in_doubt_too(open_decks) -> None:
    source = Source()
    decks = await open_decks(entropy=source)
    await decks.open_deck(KEY, "open")
    source.stuck = True
    assert await reason_of(decks.draw_lots("tables/elm", "lot", seats=(1, 2))) == "DECK_UNHEALTHY"
    fenced = await decks.fence_table(KEY.table, 2)
    assert (fenced.voided_hand, fenced.next_commitment) == (1, b"")


async def test_a_source_that_fails_while_a_deck_is_closed_does_not_keep_it_open(open_decks) -> None:
    source = Source()
    decks = await open_decks(entropy=source)
    await decks.open_deck(KEY, "open")
    source.stuck = True
    closed = await decks.close_deck(KEY, "close", void=True)
    assert closed.next_commitment == b""
    assert not decks.get_rng_health().healthy
