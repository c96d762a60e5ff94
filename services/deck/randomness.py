"""All chance in the deck service, behind its health: seeds, salts, keys, lots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from services.deck import shuffling
from services.deck.commitments import SALT_BYTES
from services.deck.dealing import DECK_SIZE
from services.deck.drbg import Entropy, Generator, gives_known_answer
from services.deck.health import CheckedSource, Health, ShuffleTest
from services.runtime.clock import Clock
from services.runtime.errors import Fault

SELF_TEST_SHUFFLES: Final = 2_600
HAND_KEY_BYTES: Final = 32


class Randomness:
    """Draws from the tested generator. Not safe to share between threads: one writer at a time uses it."""

    def __init__(self, entropy: Entropy, clock: Clock) -> None:
        self.health = Health()
        self._clock = clock
        self._source = CheckedSource(entropy, self.health)
        self._generator = Generator(self._source)
        self._test = ShuffleTest(self.health)
        self.last_test_ms = clock.now_ms()

    def self_test(self) -> None:
        """Tests mechanism and shuffle before the first hand. Raises `Fault` DECK_UNHEALTHY."""
        if not gives_known_answer():
            self.health.close("the generator failed its known-answer test")
        trial = ShuffleTest(self.health, window=SELF_TEST_SHUFFLES)
        cards = tuple(range(DECK_SIZE))
        for number in range(SELF_TEST_SHUFFLES):
            context = shuffling.context_of("self-test", number, b"", ())
            trial.note(shuffling.shuffled(self._generator.more(shuffling.SEED_BYTES), context, 0, cards))
        self.last_test_ms = self._clock.now_ms()
        self.health.require()

    def seed(self) -> bytes:
        """A hand's seed, from entropy read for it alone."""
        return self._draw(shuffling.SEED_BYTES)

    def next_seed(self) -> bytes:
        """The seed of a hand to come, or none where the source is in doubt: a deck can be closed all the same."""
        try:
            return self.seed()
        except Fault:
            return b""

    def hand_key(self) -> bytes:
        """The key under which one hand's state is sealed."""
        self.health.require()
        return self._generator.more(HAND_KEY_BYTES)

    def salts(self, places: int) -> bytes:
        """Independent salts for so many places, one after the other."""
        self.health.require()
        return self._generator.more(places * SALT_BYTES)

    def lot(self, count: int) -> int:
        """A uniform choice among `count`, from 0."""
        self.health.require()
        chosen = self._generator.below(count)
        self.last_test_ms = self._clock.now_ms()
        return chosen

    def note_shuffle(self, order: Sequence[int]) -> None:
        """Puts an opening permutation to the test. Raises `Fault` DECK_UNHEALTHY when the window fails with it."""
        self._test.note(order)
        self.health.require()

    @property
    def shuffles(self) -> int:
        """Opening shuffles of this process."""
        return self._test.shuffles

    @property
    def reseeds(self) -> int:
        """Reseeds of the generator in this process."""
        return self._generator.reseeds

    def _draw(self, count: int) -> bytes:
        self.health.require()
        drawn = self._generator.fresh(count)
        self.last_test_ms = self._clock.now_ms()
        return drawn
