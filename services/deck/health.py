"""Is the randomness still random? Tests of the source and of the shuffles; the first failure closes the deck.

Source: the repetition count and adaptive proportion tests of NIST SP 800-90B (4.4.1, 4.4.2), over bytes. They assume
no more than 4 of 8 bits of entropy in a byte, so that with a sound source their false alarms (below 2^-80 a byte)
never matter, and a source that lost half its entropy is caught.

Shuffles: chi-square of place by card over whole opening permutations, in windows. With N permutations of n cards,
(n-1)/n * sum((O-E)^2/E) has (n-1)^2 degrees of freedom; the limits below are for a false alarm of 1e-9 a window.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from services.deck import metrics
from services.deck.dealing import DECK_SIZE
from services.deck.drbg import Entropy
from services.runtime.errors import Fault

# Cutoffs for a false alarm of 2^-40 a byte at 4 bits of entropy: 1 + 40/4, and 1 + critbinom(512, 1/16, 1 - 2^-40).
REPETITION_CUTOFF: Final = 11
PROPORTION_WINDOW: Final = 512
PROPORTION_CUTOFF: Final = 78
STARTUP_BYTES: Final = 4_096

SHUFFLE_WINDOW: Final = 5_200
# The point that a chi-square of 51 * 51 degrees of freedom exceeds once in 1e9 times.
SHUFFLE_LIMIT: Final = 3_057.17


class Health:
    """Whether the house may deal. Once in doubt it stays so until the process starts anew."""

    def __init__(self) -> None:
        self.fault = ""

    @property
    def is_sound(self) -> bool:
        """Whether no test has failed."""
        return not self.fault

    def close(self, fault: str) -> None:
        """Notes what failed; the first fault is kept."""
        self.fault = self.fault or fault

    def require(self) -> None:
        """Raises `Fault` DECK_UNHEALTHY once a test has failed."""
        if self.fault:
            raise Fault("DECK_UNHEALTHY", f"the deck is closed: {self.fault}", fault=self.fault)


class CheckedSource:
    """The source of entropy behind its tests. Raises `Fault` DECK_UNHEALTHY when one fails, and ever after."""

    def __init__(self, entropy: Entropy, health: Health) -> None:
        self._entropy = entropy
        self._health = health
        self._last = -1
        self._run = 0
        self._sample = -1
        self._seen = 0
        self._window_left = 0
        self.bytes_tested = 0
        # The start-up bytes are tested and thrown away (SP 800-90B, 4.3).
        self.read(STARTUP_BYTES)

    def read(self, count: int) -> bytes:
        """So many tested bytes."""
        self._health.require()
        taken = self._entropy(count)
        if len(taken) != count:
            self._health.close("the source gave fewer bytes than it was asked for")
        for byte in taken:
            self._test(byte)
        self.bytes_tested += count
        self._health.require()
        return taken

    def _test(self, byte: int) -> None:
        if byte == self._last:
            self._run += 1
            if self._run >= REPETITION_CUTOFF:
                self._health.close("the source failed its repetition count test")
        else:
            self._last, self._run = byte, 1
        if not self._window_left:
            self._sample, self._seen, self._window_left = byte, 1, PROPORTION_WINDOW - 1
            return
        self._window_left -= 1
        if byte == self._sample:
            self._seen += 1
            if self._seen >= PROPORTION_CUTOFF:
                self._health.close("the source failed its adaptive proportion test")


class ShuffleTest:
    """Counts which card lies where over a window of opening shuffles, and judges each full window."""

    def __init__(self, health: Health, window: int = SHUFFLE_WINDOW) -> None:
        self._health = health
        self._window = window
        self._counts = [0] * (DECK_SIZE * DECK_SIZE)
        self._in_window = 0
        self.shuffles = 0
        self.windows = 0
        self.last_statistic = 0.0

    def note(self, order: Sequence[int]) -> None:
        """Takes one opening permutation of the 52 into account."""
        counts = self._counts
        at = 0
        for card in order:
            counts[at + card] += 1
            at += DECK_SIZE
        self.shuffles += 1
        self._in_window += 1
        if self._in_window == self._window:
            self._judge()

    def _judge(self) -> None:
        expected = self._window / DECK_SIZE
        total = sum((count - expected) ** 2 for count in self._counts) / expected
        self.last_statistic = total * (DECK_SIZE - 1) / DECK_SIZE
        metrics.CHI_SQUARE.set(self.last_statistic)
        self.windows += 1
        self._counts = [0] * (DECK_SIZE * DECK_SIZE)
        self._in_window = 0
        if self.last_statistic > SHUFFLE_LIMIT:
            self._health.close("the shuffles failed their chi-square test")
