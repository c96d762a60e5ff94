"""Metrics of the table service. No label names a table, a player or a card."""

from __future__ import annotations

from typing import Final

from services.runtime import telemetry

ACTIONS: Final = telemetry.counter("fivedraw_table_actions_total", "Actions taken in, by kind.", ("kind",))
REFUSALS: Final = telemetry.counter("fivedraw_table_refusals_total", "Asks refused, by reason.", ("reason",))
HANDS: Final = telemetry.counter(
    "fivedraw_table_hands_total", "Hands over, by rulebook and outcome.", ("rulebook", "outcome")
)
COMMITS: Final = telemetry.counter("fivedraw_table_commits_total", "Commits to the store.")
RACES_LOST: Final = telemetry.counter(
    "fivedraw_table_races_lost_total", "Commits that another process was faster with."
)
EFFECTS: Final = telemetry.counter("fivedraw_table_effects_total", "Effects carried out, by kind.", ("kind",))
EFFECT_FAULTS: Final = telemetry.counter(
    "fivedraw_table_effect_faults_total", "Effects refused or out of reach, by kind and reason.", ("kind", "reason")
)
EFFECT_SECONDS: Final = telemetry.histogram(
    "fivedraw_table_effect_seconds", "Seconds to carry an effect out, by kind.", ("kind",)
)
ACTION_SECONDS: Final = telemetry.histogram("fivedraw_table_action_seconds", "Seconds from an ask to its commit.")
REBUILDS: Final = telemetry.counter("fivedraw_table_rebuilds_total", "Tables rebuilt from the ledger.")
BROKEN: Final = telemetry.counter("fivedraw_table_broken_total", "Hands stopped because they contradicted the ledger.")
CLOCK_LATE_SECONDS: Final = telemetry.histogram(
    "fivedraw_table_clock_late_seconds", "Seconds from a deadline to its being acted on."
)
WATCHERS: Final = telemetry.gauge("fivedraw_table_watchers", "Watchers connected to this process.")
WATCHERS_DROPPED: Final = telemetry.counter(
    "fivedraw_table_watchers_dropped_total", "Watchers let go because they were too slow."
)
GAPS: Final = telemetry.counter("fivedraw_table_gaps_total", "Gaps in a watcher's sequence filled from the log.")
TABLES: Final = telemetry.gauge("fivedraw_table_cached", "Tables held in this process.")
SWEEPS: Final = telemetry.counter("fivedraw_table_sweeps_total", "Sweeps for due clocks and effects.")
DRIVERS_FAILED: Final = telemetry.counter(
    "fivedraw_table_drivers_failed_total", "Times that carrying out effects ended by a mistake of the house."
)
SWEEPS_FAILED: Final = telemetry.counter("fivedraw_table_sweeps_failed_total", "Sweeps that could not be done.")
# With a limit at the promise of 200 ms (deploy/prometheus/rules/slo.yml).
EVENT_LAG_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.5, 5.0, 10.0)
EVENT_LAG_SECONDS: Final = telemetry.histogram(
    "fivedraw_table_event_lag_seconds",
    "Seconds from an event's commit to its going out to a player; observers are told a moment later by design.",
    buckets=EVENT_LAG_BUCKETS,
)
STORE_SECONDS: Final = telemetry.histogram(
    "fivedraw_table_store_seconds", "Seconds that Redis took, by call.", ("call",)
)
STORE_FAULTS: Final = telemetry.counter("fivedraw_table_store_faults_total", "Calls of Redis that were not answered.")
POTS: Final = telemetry.counter(
    "fivedraw_table_pots_minor_total", "Chips in the pots of settled hands.", ("rulebook", "currency")
)
RAKE: Final = telemetry.counter("fivedraw_table_rake_minor_total", "Rake of settled hands.", ("rulebook", "currency"))
# What follows is told of the whole house by each process, so it is for `max`, never for `sum`.
TABLES_OPEN: Final = telemetry.gauge(
    "fivedraw_table_tables", "Tables that are not closed, by rulebook and state.", ("rulebook", "state")
)
SEATED: Final = telemetry.gauge("fivedraw_table_seated_players", "Seats taken, by rulebook.", ("rulebook",))
STILL_SECONDS: Final = telemetry.gauge(
    "fivedraw_table_oldest_still_hand_seconds", "Seconds since the stillest unpaused hand moved, or its clock was over."
)
UNWRITTEN: Final = telemetry.gauge("fivedraw_table_unwritten_hands", "Finished hands whose history is not confirmed.")
UNWRITTEN_SECONDS: Final = telemetry.gauge(
    "fivedraw_table_oldest_unwritten_seconds", "For how long the oldest of them waits."
)
