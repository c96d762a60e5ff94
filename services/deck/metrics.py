"""What the deck service measures: whether it deals, and how much it dealt. Never anything about a card."""

from __future__ import annotations

from typing import Final, Protocol

from services.deck.values import RngHealth
from services.runtime import telemetry

HEALTHY: Final = telemetry.gauge("fivedraw_deck_healthy", "1 while decks are dealt, 0 once a test has failed.")
SHUFFLES: Final = telemetry.gauge("fivedraw_deck_opening_shuffles", "Opening shuffles since the process began.")
RESEEDS: Final = telemetry.gauge("fivedraw_deck_generator_reseeds", "Reseeds of the generator since the process began.")
TESTED_SECONDS: Final = telemetry.gauge("fivedraw_deck_tested_timestamp_seconds", "When the source was tested last.")
RESHUFFLES: Final = telemetry.counter("fivedraw_deck_reshuffles_total", "Answers that tell of a reshuffle in the draw.")
STEPS: Final = telemetry.counter("fivedraw_deck_steps_total", "Steps taken or refused, by kind.", ("step", "outcome"))
STEPS_TOGETHER: Final = telemetry.histogram(
    "fivedraw_deck_steps_together", "Steps that shared one transaction.", buckets=(1, 2, 4, 8, 16, 32, 64)
)
CHI_SQUARE: Final = telemetry.gauge(
    "fivedraw_deck_chi_square", "Statistic of the last full window of opening shuffles; 2601 is expected."
)


class HealthTeller(Protocol):
    """Whoever knows the health of the randomness: the `Decks` of this process."""

    def get_rng_health(self) -> RngHealth:
        """The health now."""
        ...


def show(decks: HealthTeller) -> None:
    """Shows the health of these decks with every reading of the metrics."""
    HEALTHY.set_function(lambda: float(decks.get_rng_health().healthy))
    SHUFFLES.set_function(lambda: decks.get_rng_health().shuffles)
    RESEEDS.set_function(lambda: decks.get_rng_health().reseeds)
    TESTED_SECONDS.set_function(lambda: decks.get_rng_health().last_test_ms / 1000)
