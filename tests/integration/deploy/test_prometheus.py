"""A real Prometheus checks its rules, scrapes a service over mutual TLS, and can answer every panel's query."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.certificates import Authority
from tests.servers import free_port

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[3]
PROMETHEUS = ROOT / "deploy" / "prometheus"
DASHBOARDS = sorted((ROOT / "deploy" / "grafana" / "dashboards").glob("*.json"))


def promtool(*arguments: str) -> None:
    subprocess.run(["promtool", *arguments], cwd=PROMETHEUS, check=True)


def test_rules_and_configuration_are_valid():
    promtool("check", "rules", *[str(path) for path in (PROMETHEUS / "rules").glob("*.yml")])
    promtool("check", "config", "--syntax-only", "prometheus.yml")


@pytest.mark.parametrize("subject", ["house", "money", "tables", "histories", "slo"])
@pytest.mark.timeout(400)
def test_alerts_fire_when_they_should_and_not_otherwise(subject):
    promtool("test", "rules", f"tests/{subject}.test.yml")


def test_every_alert_is_tested_both_ways_and_has_a_page():
    for path in (PROMETHEUS / "rules").glob("*.yml"):
        for rule in (rule for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"]):
            if "alert" not in rule:
                continue
            cases = [
                case
                for tests in (PROMETHEUS / "tests").glob("*.yml")
                for test in yaml.safe_load(tests.read_text())["tests"]
                for case in test["alert_rule_test"]
                if case["alertname"] == rule["alert"]
            ]
            assert {bool(case["exp_alerts"]) for case in cases} == {True, False}, rule["alert"]
            assert (ROOT / rule["annotations"]["runbook"]).is_file(), rule["alert"]


def test_the_alertmanager_takes_its_configuration(tmp_path):
    text = (PROMETHEUS.parent / "alertmanager" / "alertmanager.yml").read_text()
    # Debian's release does not know addresses in files yet; all else is checked as it is.
    (tmp_path / "alertmanager.yml").write_text(text.replace("url_file: /run/secrets/", "url: http://127.0.0.1/"))
    subprocess.run(["amtool", "check-config", str(tmp_path / "alertmanager.yml")], check=True)


@contextlib.contextmanager
def prometheus(folder: Path, target: str, tls: dict[str, Path]) -> Iterator[str]:
    """Our own configuration with one job's target moved to this machine."""
    configuration = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())
    configuration["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    configuration["rule_files"] = [str(PROMETHEUS / "rules" / "*.yml")]
    (job,) = [each for each in configuration["scrape_configs"] if each["job_name"] == "wallet"]
    del job["dns_sd_configs"]
    job["static_configs"] = [{"targets": [target]}]
    job["tls_config"] |= {
        "ca_file": str(tls["tls_ca"]),
        "cert_file": str(tls["tls_cert"]),
        "key_file": str(tls["tls_key"]),
        "server_name": "localhost",
    }
    configuration["scrape_configs"] = [job]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration))
    port = free_port()
    command = ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def ask(url: str, query: str) -> dict:
    address = f"{url}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    with urllib.request.urlopen(address, timeout=5) as answer:  # noqa: S310 - our own server
        return json.load(answer)


async def until_scraped(url: str) -> None:
    for _ in range(150):
        with contextlib.suppress(OSError):
            answer = await asyncio.to_thread(ask, url, 'up{job="wallet"} == 1')
            if answer["data"]["result"]:
                return
        await asyncio.sleep(0.2)
    pytest.fail("not scraped within half a minute")


async def test_a_service_is_scraped_over_mutual_tls_and_every_panel_has_a_valid_query(serve, make_settings, tmp_path):
    authority = Authority(tmp_path)
    server = await serve(make_settings(**authority.issue("wallet")), lambda _: [], name="wallet", with_metrics=True)
    with prometheus(tmp_path, f"localhost:{server.metrics_port}", authority.issue("prometheus")) as url:
        await until_scraped(url)
        # Services of other tests of this process are known to its metrics as well.
        answer = await asyncio.to_thread(ask, url, 'fivedraw_service_up{service="wallet"}')
        assert [each["value"][1] for each in answer["data"]["result"]] == ["1"]
        queries = [
            target["expr"].replace("$__rate_interval", "1m")
            for path in DASHBOARDS
            for panel in json.loads(path.read_text())["panels"]
            for target in panel.get("targets", ())
        ]
        assert len(queries) > 20
        for query in queries:
            assert (await asyncio.to_thread(ask, url, query))["status"] == "success", query
