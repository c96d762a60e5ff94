"""Settings of the deck service. None of them can choose what is dealt."""

from __future__ import annotations

from pydantic import Field

from services.runtime.settings import ServiceSettings


class DeckSettings(ServiceSettings):
    """What the deck service can be told beyond what every service can."""

    # How long after a hand's close its seed stays closed to auditors.
    deck_seed_delay_ms: int = Field(default=24 * 3_600_000, ge=0)
