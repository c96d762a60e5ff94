"""The tests of the randomness: their limits, what a sound source passes, and that any failure closes the deck."""

from __future__ import annotations

import os
import random

import pytest
from scipy import stats

from services.deck import health
from services.deck.health import CheckedSource, Health, ShuffleTest
from services.deck.randomness import SELF_TEST_SHUFFLES, Randomness
from services.runtime.clock import SystemClock
from services.runtime.errors import Fault


def source_of(entropy, state: Health | None = None) -> CheckedSource:
    return CheckedSource(entropy, state or Health())


def test_limits_are_those_of_the_standard_for_the_stated_false_alarm_rates() -> None:
    assert health.REPETITION_CUTOFF == 1 + 40 // 4
    assert 1 + stats.binom.isf(2.0**-40, health.PROPORTION_WINDOW, 1 / 16) == health.PROPORTION_CUTOFF
    assert pytest.approx(stats.chi2.isf(1e-9, 51 * 51), abs=0.01) == health.SHUFFLE_LIMIT
    # With a sound source a false alarm of either test is out of reach.
    assert stats.binom.sf(health.PROPORTION_CUTOFF - 2, health.PROPORTION_WINDOW - 1, 1 / 256) < 2.0**-80
    assert (1 / 256) ** (health.REPETITION_CUTOFF - 1) <= 2.0**-80


def test_the_operating_systems_source_passes() -> None:
    source = source_of(os.urandom)
    assert source.bytes_tested == health.STARTUP_BYTES
    assert len(source.read(100_000)) == 100_000


def test_a_stuck_source_closes_the_deck_at_the_start() -> None:
    state = Health()
    with pytest.raises(Fault, match="repetition count") as caught:
        source_of(bytes, state)
    assert caught.value.reason == "DECK_UNHEALTHY"
    assert not state.is_sound


def test_one_byte_repeated_to_the_cutoff_is_too_often() -> None:
    state = Health()
    rng = random.Random(5)
    queue = [rng.randbytes(health.STARTUP_BYTES), bytes([7] * 10), bytes([8] * 10), bytes([9] * 11)]
    source = source_of(lambda count: queue.pop(0), state)
    source.read(10)
    source.read(10)
    with pytest.raises(Fault):
        source.read(11)
    with pytest.raises(Fault):
        source.read(1)


def test_a_source_with_one_byte_too_frequent_closes_the_deck() -> None:
    rng = random.Random(6)

    def biased(count: int) -> bytes:
        return bytes(0 if rng.random() < 0.3 else rng.randrange(256) for _ in range(count))

    with pytest.raises(Fault, match="adaptive proportion"):
        source_of(biased).read(100_000)


def test_a_source_that_gives_too_little_closes_the_deck() -> None:
    with pytest.raises(Fault, match="fewer bytes"):
        source_of(lambda count: os.urandom(count - 1))


def permutations(seed: int, count: int):
    rng = random.Random(seed)
    cards = list(range(52))
    for _ in range(count):
        rng.shuffle(cards)
        yield cards


def test_uniform_shuffles_pass_their_window() -> None:
    state = Health()
    test = ShuffleTest(state, window=2_000)
    for order in permutations(1, 4_000):
        test.note(order)
    assert state.is_sound
    assert (test.windows, test.shuffles) == (2, 4_000)
    # The corrected statistic has mean 2601 and deviation 72.
    assert abs(test.last_statistic - 2_601) < 5 * 72


def test_the_naive_shuffle_is_rejected_within_a_window() -> None:
    state = Health()
    test = ShuffleTest(state)
    rng = random.Random(2)
    for _ in range(health.SHUFFLE_WINDOW):
        cards = list(range(52))
        for at in range(52):
            other = rng.randrange(52)
            cards[at], cards[other] = cards[other], cards[at]
        test.note(cards)
    assert state.fault == "the shuffles failed their chi-square test"


def test_the_self_test_closes_the_deck_when_the_shuffle_is_not_one(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = Randomness(os.urandom, SystemClock())
    chance.self_test()
    assert chance.reseeds >= SELF_TEST_SHUFFLES // 1_024
    monkeypatch.setattr("services.deck.shuffling.shuffled", lambda seed, context, number, cards: tuple(cards))
    with pytest.raises(Fault, match="chi-square"):
        chance.self_test()


def test_a_mechanism_that_computes_wrongly_closes_the_deck(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = Randomness(os.urandom, SystemClock())
    monkeypatch.setattr("services.deck.drbg.HmacDrbg.reseed", lambda self, fresh: None)
    with pytest.raises(Fault, match="known-answer"):
        chance.self_test()


def test_once_in_doubt_nothing_is_drawn_any_more() -> None:
    chance = Randomness(os.urandom, SystemClock())
    chance.health.close("first")
    chance.health.close("second")
    assert chance.health.fault == "first"
    for draw in (chance.seed, chance.hand_key, lambda: chance.salts(52), lambda: chance.lot(3)):
        with pytest.raises(Fault, match="first"):
            draw()
