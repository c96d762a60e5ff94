"""Every panel of every dashboard has data on a real Prometheus that scrapes a playing house."""

from __future__ import annotations

import importlib.util
import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.embedded import embedded_house
from tests.full.prometheus import Prometheus, prometheus, targets_of

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "deploy" / "grafana" / "dashboards").glob("*.json"))
# By when the slowest figures are there: a scan of all tables, a rate over a minute, a rule over that.
DATA_SECONDS = 120


@pytest.fixture(scope="module")
def watched(tmp_path_factory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("dashboards")
    with (
        embedded_house(folder / "house", "--tables", "5") as house,
        prometheus(folder / "prometheus", targets_of(house.port_base)) as server,
    ):
        server.until("house:histories_bad:ratio_rate5m and on() (sum(fivedraw_table_tables) > 0)", DATA_SECONDS)
        yield server


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_query_returns_data(watched, path):
    queries = {
        f"{panel['title']}: {target['expr']}": target["expr"].replace("$__rate_interval", "1m")
        for panel in json.loads(path.read_text())["panels"]
        for target in panel.get("targets", ())
    }
    assert queries
    limit = time.monotonic() + DATA_SECONDS
    empty = queries
    while empty and time.monotonic() < limit:
        empty = {name: query for name, query in empty.items() if not watched.ask(query)}
        time.sleep(0.5)
    assert list(empty) == []


def test_nothing_is_wrong_with_a_house_that_plays(watched):
    assert [each["metric"]["alertname"] for each in watched.ask('ALERTS{alertstate="firing", severity="page"}')] == []


def test_the_files_are_what_the_code_writes():
    made = generator()
    assert {made.path_of(board): made.written(board) for board in made.BOARDS} == {
        path: path.read_text() for path in FILES
    }


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("dashboards", ROOT / "deploy" / "grafana" / "dashboards.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up.
    import sys  # noqa: PLC0415 - only here

    sys.modules["dashboards"] = module
    spec.loader.exec_module(module)
    return module
