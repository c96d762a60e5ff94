"""The history's own settings, beside those of every service."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from services.runtime.settings import ServiceSettings


class HistorySettings(ServiceSettings):
    """What the history service and its workers can be told. Variables begin with `FIVEDRAW_`."""

    # From a hand's end until an auditor may read its sealed cards: the same setting as the deck service's, which
    # opens the seed after it.
    deck_seed_delay_ms: int = Field(default=24 * 3_600_000, ge=0)

    # Tasks that one writing worker has at work at once; their waits for the disk and the table overlap.
    history_write_concurrency: int = Field(default=8, ge=1, le=64)
    # Hands that wait for longer than this are sent again, and how often that is looked at.
    history_resend_after_seconds: int = Field(default=15, ge=1)
    history_resend_every_seconds: int = Field(default=10, ge=1)
    # Hands that are over for the ledger and have no row after this time are written from what it knows of them, and
    # how often that is looked at.
    history_reconcile_after_seconds: int = Field(default=120, ge=1)
    history_reconcile_every_seconds: int = Field(default=60, ge=1)
    # Hands are kept this long; 0 keeps them for ever.
    history_retention_days: int = Field(default=0, ge=0)
    # A file of each day's hands, as everybody may see them (needs a worker of the exports queue), and where.
    history_export_days: bool = False
    history_exports_folder: Path = Path("exports")
    # A round of checks of rows against their records (needs a worker of the audits queue).
    history_audit_rows: bool = False
