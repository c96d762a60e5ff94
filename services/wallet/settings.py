"""What the wallet service can be told, beyond what every service can."""

from __future__ import annotations

from pydantic import Field

from services.runtime.settings import ServiceSettings


class WalletSettings(ServiceSettings):
    """Variables `FIVEDRAW_WALLET_…`."""

    # Group commit: how many batches share a commit, how many may wait, and how long the first may wait for company.
    wallet_group_max: int = Field(default=128, ge=1, le=1_000)
    wallet_queue_max: int = Field(default=4_096, ge=1, le=100_000)
    wallet_group_wait_ms: int = Field(default=0, ge=0, le=100)
    # Commits side by side on PostgreSQL while more than `crowd_min` batches wait; SQLite has one writer, and one lane.
    wallet_lanes: int = Field(default=2, ge=1, le=8)
    wallet_crowd_min: int = Field(default=32, ge=0, le=1_000)
    # Which sub-account of the hot accounts this process's first lane posts to, the other lanes to those after it. Keep
    # the replicas' apart, or they wait for each other.
    wallet_shard: int = Field(default=0, ge=0, le=15)
    # How often reservations past their time are given back, and hot accounts swept into their heads.
    wallet_expiry_interval_ms: int = Field(default=1_000, ge=10)
    wallet_sweep_interval_ms: int = Field(default=60_000, ge=1_000)
    # How often what is committed is sealed.
    wallet_seal_interval_ms: int = Field(default=1_000, ge=10)
