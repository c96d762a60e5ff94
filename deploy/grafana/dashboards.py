"""Writes the dashboards: `python deploy/grafana/dashboards.py` after a change here; a test holds the files to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from grafana_foundation_sdk.builders.dashboard import Dashboard, Row
from grafana_foundation_sdk.builders.dashboard import ThresholdsConfig as Thresholds
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.builders.stat import Panel as Stat
from grafana_foundation_sdk.builders.timeseries import Panel as Timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import DataSourceRef, Threshold, ThresholdsMode

FOLDER = Path(__file__).parent / "dashboards"
SOURCE = DataSourceRef(type_val="prometheus", uid="prometheus")


@dataclass(frozen=True)
class Figure:
    """One number that is bad from `bad` on (or below it, where `below`)."""

    title: str
    query: str
    bad: float | None = 1
    unit: str = "short"
    below: bool = False


@dataclass(frozen=True)
class Chart:
    """Lines over time; `queries` by legend."""

    title: str
    queries: dict[str, str]
    unit: str = "short"


@dataclass(frozen=True)
class Board:
    """A dashboard: its rows' titles and panels."""

    uid: str
    title: str
    rows: dict[str, list[Figure | Chart]] = field(default_factory=dict)


def rate(metric: str, by: str = "", where: str = "") -> str:
    """The rate of a counter, summed."""
    return f"sum{f' by ({by})' if by else ''} (rate({metric}{where}[$__rate_interval]))"


def quantiles(metric: str, by: str = "", where: str = "") -> dict[str, str]:
    """Median, slowest of a hundred and of a thousand."""
    group = f"le, {by}" if by else "le"
    legend = f" {{{{{by}}}}}" if by else ""
    return {
        f"{name}{legend}": f"histogram_quantile({quantile}, {rate(f'{metric}_bucket', group, where)})"
        for name, quantile in (("median", 0.5), ("1 of 100", 0.99), ("1 of 1000", 0.999))
    }


HOUSE = Board(
    "fivedraw-house",
    "House",
    {
        "Is the house well?": [
            Figure("Processes down", "count(up == 0) or vector(0)"),
            Figure("Alerts", 'count(ALERTS{alertstate="firing"}) or vector(0)'),
            Figure("Ledger imbalance", "sum(abs(fivedraw_wallet_imbalance_minor))"),
            Figure("Decks healthy", "min(fivedraw_deck_healthy)", 1, below=True),
            Figure("Oldest unwritten hand", "max(fivedraw_table_oldest_unwritten_seconds)", 30, "s"),
            Figure("Stillest hand", "max(fivedraw_table_oldest_still_hand_seconds)", 120, "s"),
        ],
        "Promises, share broken": [
            Figure("Actions within 100 ms", "house:actions_bad:ratio_rate5m", 0.001, "percentunit"),
            Figure("Events within 200 ms", "house:events_bad:ratio_rate5m", 0.001, "percentunit"),
            Figure("Histories within 10 s", "house:histories_bad:ratio_rate5m", 0.001, "percentunit"),
        ],
        "Play": [
            Chart("Actions per second", {"{{kind}}": rate("fivedraw_table_actions_total", "kind")}),
            Chart("From an action to its commit", quantiles("fivedraw_table_action_seconds"), "s"),
            Chart("Hands over per second", {"{{outcome}}": rate("fivedraw_table_hands_total", "outcome")}),
            Chart("Seated", {"{{rulebook}}": "max by (rulebook) (fivedraw_table_seated_players)"}),
        ],
        "Calls": [
            Chart("Calls per second", {"{{job}}": "sum by (job) (job_method:fivedraw_rpc:rate1m)"}),
            Chart(
                "Failed per second", {"{{job}}": "sum by (job) (job_method:fivedraw_rpc_errors:rate1m) or vector(0)"}
            ),
            Chart("Slowest of a hundred", {"{{job}}": "max by (job) (job_method:fivedraw_rpc_seconds:p99_1m)"}, "s"),
            Chart("Mistakes of the house", {"per second": f"{rate('fivedraw_rpc_unexpected_total')} or vector(0)"}),
        ],
    },
)

TABLES = Board(
    "fivedraw-tables",
    "Tables",
    {
        "Tables": [
            Chart("Tables", {"{{rulebook}} {{state}}": "max by (rulebook, state) (fivedraw_table_tables)"}),
            Chart(
                "Refusals per second",
                {"{{reason}}": f"{rate('fivedraw_table_refusals_total', 'reason')} or vector(0)"},
            ),
            Chart("Chips in pots per second", {"{{rulebook}}": rate("fivedraw_table_pots_minor_total", "rulebook")}),
            Chart("Rake per second", {"{{rulebook}}": rate("fivedraw_table_rake_minor_total", "rulebook")}),
        ],
        "Commits and effects": [
            Chart(
                "Commits per second",
                {"done": rate("fivedraw_table_commits_total"), "lost": rate("fivedraw_table_races_lost_total")},
            ),
            Chart("Redis: seconds by call", quantiles("fivedraw_table_store_seconds", "call"), "s"),
            Chart("Effects per second", {"{{kind}}": rate("fivedraw_table_effects_total", "kind")}),
            Chart(
                "Effects: slowest of a hundred",
                {"{{kind}}": quantiles("fivedraw_table_effect_seconds", "kind")["1 of 100 {{kind}}"]},
                "s",
            ),
        ],
        "Watchers and clocks": [
            Chart("Watchers", {"connected": "sum(fivedraw_table_watchers)"}),
            Chart(
                "Dropped, and gaps filled",
                {"dropped": rate("fivedraw_table_watchers_dropped_total"), "gaps": rate("fivedraw_table_gaps_total")},
            ),
            Chart("From a commit to the watcher", quantiles("fivedraw_table_event_lag_seconds"), "s"),
            Chart("Sweeps per second", {"done": rate("fivedraw_table_sweeps_total")}),
        ],
    },
)

WALLET = Board(
    "fivedraw-wallet",
    "Wallet",
    {
        "Books": [
            Figure("Imbalance", "sum(abs(fivedraw_wallet_imbalance_minor))"),
            Figure("Audit faults", "max(fivedraw_wallet_audit_faults)"),
            Figure("Hands open", "max(fivedraw_wallet_open_hands)", None),
        ],
        "Chips and batches": [
            Chart(
                "Chips by kind of account",
                {"{{kind}} {{currency}}": "max by (kind, currency) (fivedraw_wallet_chips_minor)"},
            ),
            Chart("Batches per second", {"{{operation}}": rate("fivedraw_wallet_batches_total", "operation")}),
            Chart(
                "Refused per second",
                {"{{reason}}": f"{rate('fivedraw_wallet_refusals_total', 'reason')} or vector(0)"},
            ),
            Chart("Batches that share a commit", quantiles("fivedraw_wallet_group_batches")),
        ],
        "Database": [
            Chart("Writes", quantiles("fivedraw_database_seconds", where='{job="wallet", kind="write"}'), "s"),
            Chart("Reads", quantiles("fivedraw_database_seconds", where='{job="wallet", kind="read"}'), "s"),
        ],
    },
)

DECK = Board(
    "fivedraw-deck",
    "Deck",
    {
        "Health": [
            Figure("Healthy", "min(fivedraw_deck_healthy)", 1, below=True),
            Figure("Since the last test", "time() - max(fivedraw_deck_tested_timestamp_seconds)", None, "s"),
            Figure("Chi-square of the last window", "max(fivedraw_deck_chi_square)", 3057),
        ],
        "Work": [
            Chart("Opening shuffles", {"{{instance}}": "fivedraw_deck_opening_shuffles"}),
            Chart("Reseeds", {"{{instance}}": "fivedraw_deck_generator_reseeds"}),
            Chart("Steps per second", {"{{step}} {{outcome}}": rate("fivedraw_deck_steps_total", "step, outcome")}),
            Chart("Reshuffles per second", {"all": rate("fivedraw_deck_reshuffles_total")}),
        ],
    },
)

HISTORY = Board(
    "fivedraw-history",
    "History",
    {
        "Due": [
            Figure("Unwritten hands", "max(fivedraw_table_unwritten_hands)", 500),
            Figure("Oldest of them", "max(fivedraw_table_oldest_unwritten_seconds)", 30, "s"),
            Figure("Since the beat", "time() - max(fivedraw_history_looked_timestamp_seconds)", 90, "s"),
        ],
        "Writing": [
            Chart("Hands per second", {"{{outcome}}": rate("fivedraw_history_hands_total", "outcome")}),
            Chart("From a hand's end to its row", quantiles("fivedraw_history_lag_seconds"), "s"),
            Chart("In the queue", quantiles("fivedraw_history_queue_seconds"), "s"),
            Chart("Tasks waiting", {"{{queue}}": "max by (queue) (fivedraw_history_queue_tasks)"}),
            Chart("Tasks sent per second", {"{{outcome}}": rate("fivedraw_tasks_sent_total", "outcome")}),
        ],
    },
)

CAPACITY = Board(
    "fivedraw-capacity",
    "Capacity",
    {
        "Processes": [
            Chart("Processor", {"{{job}} {{instance}}": "rate(process_cpu_seconds_total[$__rate_interval])"}),
            Chart("Memory", {"{{job}} {{instance}}": "process_resident_memory_bytes"}, "bytes"),
            Chart("Files open, share", {"{{job}} {{instance}}": "process_open_fds / process_max_fds"}, "percentunit"),
            Chart("Streams open", {"{{job}}": "sum by (job) (fivedraw_rpc_open_streams)"}),
            Chart("Tables held", {"{{instance}}": "fivedraw_table_cached"}),
            Chart("Console: live pages", {"{{instance}}": "fivedraw_console_streams"}),
        ],
        "Databases": [
            Chart(
                "Transactions per second", {"{{job}} {{kind}}": rate("fivedraw_database_seconds_count", "job, kind")}
            ),
            Chart(
                "Slowest of a hundred",
                {"{{job}}": f"histogram_quantile(0.99, {rate('fivedraw_database_seconds_bucket', 'le, job')})"},
                "s",
            ),
        ],
    },
)

BOARDS = (HOUSE, TABLES, WALLET, DECK, HISTORY, CAPACITY)


def panel(each: Figure | Chart) -> Stat | Timeseries:
    """A panel as Grafana has it."""
    if isinstance(each, Chart):
        chart = Timeseries().title(each.title).datasource(SOURCE).unit(each.unit).span(12).height(8)
        for letter, (legend, query) in zip("ABCDEF", each.queries.items(), strict=False):
            chart = chart.with_target(Dataquery().ref_id(letter).expr(query).legend_format(legend))
        return chart
    stat = Stat().title(each.title).datasource(SOURCE).unit(each.unit).span(4).height(4)
    if each.bad is not None:
        first, then = ("red", "green") if each.below else ("green", "red")
        steps = [Threshold(value=None, color=first), Threshold(value=each.bad, color=then)]
        stat = stat.thresholds(Thresholds().mode(ThresholdsMode.ABSOLUTE).steps(steps))
    return stat.with_target(Dataquery().ref_id("A").expr(each.query))


def written(board: Board) -> str:
    """A dashboard's file."""
    made = Dashboard(board.title).uid(board.uid).tags(["fivedraw"]).refresh("10s").time("now-1h", "now").timezone("utc")
    number = 0
    for title, panels in board.rows.items():
        made = made.with_row(Row(title))
        for each in panels:
            number += 1
            made = made.with_panel(panel(each).id(number))
    return JSONEncoder(sort_keys=True, indent=1).encode(made.build()) + "\n"


def path_of(board: Board) -> Path:
    """Where a dashboard's file lies."""
    return FOLDER / f"{board.uid.removeprefix('fivedraw-')}.json"


if __name__ == "__main__":
    for each_board in BOARDS:
        path_of(each_board).write_text(written(each_board))
