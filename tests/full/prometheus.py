"""A real Prometheus with our own rules, scraping an embedded house (or any ports of this machine) once a second."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.servers import free_port

RULES = Path(__file__).parents[2] / "deploy" / "prometheus" / "rules"


class Prometheus:
    """Asks the server."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, query: str) -> list[dict[str, Any]]:
        """The result of a query, which must be valid."""
        address = f"{self.url}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        with urllib.request.urlopen(address, timeout=10) as answer:  # noqa: S310 - our own server
            told = json.load(answer)
        assert told["status"] == "success", query
        return told["data"]["result"]

    def firing(self, alert: str) -> bool:
        return bool(self.ask(f'ALERTS{{alertname="{alert}", alertstate="firing"}}'))

    def until(self, query: str, seconds: float) -> float:
        """Waits until a query returns something; returns how long it took."""
        started = time.monotonic()
        while time.monotonic() - started < seconds:
            with contextlib.suppress(OSError):
                if self.ask(query):
                    return time.monotonic() - started
            time.sleep(0.25)
        raise AssertionError(f"nothing within {seconds} s: {query}")

    def until_firing(self, alert: str, seconds: float) -> float:
        return self.until(f'ALERTS{{alertname="{alert}", alertstate="firing"}}', seconds)


@contextlib.contextmanager
def prometheus(folder: Path, targets: dict[str, int]) -> Iterator[Prometheus]:
    """`targets` are ports by job. The intervals are shorter than in production, the rules are the same."""
    folder.mkdir(parents=True)
    configuration = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(RULES / "*.yml")],
        "scrape_configs": [
            {"job_name": job, "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]} for job, port in targets.items()
        ],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration))
    port = free_port()
    command = ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
    try:
        yield Prometheus(f"http://127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait(30)


def targets_of(base: int) -> dict[str, int]:
    """The metrics' ports of an embedded house, by job."""
    return {
        "table": base + 10,
        "deck": base + 11,
        "wallet": base + 12,
        "history": base + 13,
        "history-worker": base + 19,
        "wallet-worker": base + 22,
        "console": base + 31,
    }
