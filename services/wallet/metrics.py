"""What the wallet measures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from services.runtime import telemetry
from services.runtime.errors import Fault
from services.wallet import commands as c
from services.wallet.closures import WHOLE

BATCHES: Final = telemetry.counter("fivedraw_wallet_batches_total", "Batches answered, by operation.", ("operation",))
REFUSALS: Final = telemetry.counter("fivedraw_wallet_refusals_total", "Batches refused, by reason.", ("reason",))
BROKEN: Final = telemetry.counter(
    "fivedraw_wallet_broken_books_total", "Contradictions and mistakes of the program met while deciding."
)
GROUP_SIZE: Final = telemetry.histogram(
    "fivedraw_wallet_group_batches", "Batches that shared one commit.", buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256)
)
IMBALANCE: Final = telemetry.gauge(
    "fivedraw_wallet_imbalance_minor", "Sum of all accounts; anything but 0 is a fault.", ("currency",)
)
CHIPS: Final = telemetry.gauge(
    "fivedraw_wallet_chips_minor", "Sum of balances by kind of account.", ("kind", "currency")
)
OPEN_HANDS: Final = telemetry.gauge("fivedraw_wallet_open_hands", "Hands whose pot may hold chips.")
CLOSED: Final = telemetry.gauge(
    "fivedraw_wallet_closed", "What takes no new hand until a clean audit: the whole ledger (0 or 1), tables.", ("of",)
)
SEALED_BATCH: Final = telemetry.gauge(
    "fivedraw_wallet_sealed_batch", "Number of the last batch under the chain's head."
)
EXPIRED: Final = telemetry.counter(
    "fivedraw_wallet_reservations_expired_total", "Reservations given back because their time was over."
)
UNSWEPT: Final = telemetry.gauge(
    "fivedraw_wallet_unswept_minor",
    "What the sub-accounts of a hot account held, in or out, when the last sweep found them.",
    ("kind", "currency"),
)
SWEEPS_FAILED: Final = telemetry.counter(
    "fivedraw_wallet_sweeps_failed_total", "Rounds of sweeping that the ledger did not carry out."
)
AUDIT_FAULTS: Final = telemetry.gauge(
    "fivedraw_wallet_audit_faults", "Faults that the last check of what is new, or of the whole ledger, found.", ("of",)
)
CHECKED_SECONDS: Final = telemetry.gauge(
    "fivedraw_wallet_checked_timestamp_seconds", "When what was new had last been checked."
)
UNCHECKED: Final = telemetry.gauge(
    "fivedraw_wallet_unchecked_batches", "Batches that were committed and not yet checked, at the last check."
)
AUDITED_SECONDS: Final = telemetry.gauge(
    "fivedraw_wallet_audited_timestamp_seconds", "When the whole ledger had last been audited."
)


def count(command: c.Command, outcome: c.Answer | Fault) -> None:
    """Counts one answered batch."""
    BATCHES.labels(type(command).__name__).inc()
    if isinstance(outcome, Fault):
        REFUSALS.labels(outcome.reason).inc()


def show_closures(closed: Mapping[str, str]) -> None:
    """Shows what takes no new hand."""
    CLOSED.labels("ledger").set(WHOLE in closed)
    CLOSED.labels("table").set(len(closed.keys() - {WHOLE}))


def show_summary(summary: c.LedgerSummary) -> None:
    """Shows the ledger's totals."""
    for total in summary.totals:
        CHIPS.labels(total.kind.name.lower(), total.currency).set(total.amount_minor)
    for balance in summary.imbalance:
        IMBALANCE.labels(balance.currency).set(balance.amount_minor)
    OPEN_HANDS.set(summary.open_hands)
