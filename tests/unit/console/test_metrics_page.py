"""docs/metrics.md lists every metric: `python -m tests.unit.console.test_metrics_page > docs/metrics.md`."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "metrics.md"
HEAD = """# Metrics

Every process serves its own at `/metrics`. Names are `fivedraw_<subject>_<what>_<unit>`; units are seconds, minor
units of a currency, or a count. Labels have few values: no table, player, hand or card is ever one. Beside these, each
process tells its processor time, memory and open files (`process_*`).

Requests, errors and durations of each RPC are `fivedraw_rpc_total`, by `code`, and `fivedraw_rpc_seconds`. What a table
process tells of the whole house (`fivedraw_table_tables`, `fivedraw_table_seated_players`, the oldest still hand, the
unwritten hands) each replica tells alike: take `max`, not `sum`.

| metric | kind | labels | what |
|---|---|---|---|
"""
FORBIDDEN_LABELS = {"player", "table", "hand", "seat", "card", "sitting", "token", "person"}


class Metric(NamedTuple):
    name: str
    kind: str
    labels: tuple[str, ...]
    text: str


def metrics() -> list[Metric]:
    """What the source registers, read from its syntax tree."""
    found = []
    for path in sorted((ROOT / "services").rglob("*.py")):
        if "gen" in path.relative_to(ROOT).parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if (
                node.func.attr in ("counter", "gauge", "histogram")
                and getattr(node.func.value, "id", "") == "telemetry"
            ):
                name, text = (ast.literal_eval(each) for each in node.args[:2])
                labels = ast.literal_eval(node.args[2]) if len(node.args) > 2 else ()
                found.append(Metric(name, node.func.attr, tuple(labels), text))
    return sorted(found)


def page() -> str:
    rows = [f"| `{each.name}` | {each.kind} | {', '.join(each.labels)} | {each.text} |" for each in metrics()]
    return HEAD + "\n".join(rows)


def test_the_page_lists_what_there_is():
    assert PAGE.read_text() == page() + "\n", "run: python -m tests.unit.console.test_metrics_page > docs/metrics.md"


@pytest.mark.parametrize("metric", metrics(), ids=lambda metric: metric.name)
def test_a_metric_keeps_the_conventions(metric):
    assert re.fullmatch(r"fivedraw_[a-z_]+", metric.name)
    assert metric.name.endswith("_total") == (metric.kind == "counter")
    assert not FORBIDDEN_LABELS.intersection(metric.labels)
    assert metric.text.endswith(".")


if __name__ == "__main__":
    import sys

    sys.stdout.write(page() + "\n")
