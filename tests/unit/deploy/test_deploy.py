"""The production house on paper: what can be proved of its files without an engine."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.x509.oid import NameOID
from google.protobuf import json_format

from services.runtime import access
from services.runtime.auth import SERVICES, Authenticator
from services.runtime.clock import SystemClock
from services.runtime.errors import Fault
from services.runtime.settings import ServiceSettings
from tests.servers import RedisProcess

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
OURS = {name: each for name, each in COMPOSE["services"].items() if each["image"].startswith("fivedraw:")}


@pytest.fixture(scope="module")
def secrets(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("deploy")
    shutil.copy(DEPLOY / "make-secrets.sh", folder)
    for _ in range(2):
        subprocess.run(["sh", folder / "make-secrets.sh"], check=True, capture_output=True)
    return folder / "secrets"


def test_every_container_is_watched_bounded_and_started_again():
    for name, service in COMPOSE["services"].items():
        assert "healthcheck" in service or name in OURS, name
        assert service["restart"] == "unless-stopped", name
        assert service["deploy"]["resources"]["limits"].keys() == {"cpus", "memory", "pids"}, name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert service["logging"]["options"]["max-size"], name
        assert re.search(r":v?\d+\.\d+|\$\{FIVEDRAW_VERSION", service["image"]), name


def test_only_the_way_in_and_the_watch_are_published():
    published = {name for name, service in COMPOSE["services"].items() if "ports" in service}
    assert published == {"envoy", "prometheus", "grafana", "console"}
    assert COMPOSE["services"]["console"]["ports"] == ["${FIVEDRAW_CONSOLE_ADDRESS:-127.0.0.1:8444}:7100"]
    assert COMPOSE["networks"]["inner"] == {"internal": True}
    assert [name for name in OURS if OURS[name]["networks"] != ["inner"]] == ["console"]


def test_every_secret_that_is_mounted_is_made(secrets):
    for name, secret in COMPOSE["secrets"].items():
        assert secret == {"file": f"deploy/secrets/{name}"}
        assert (secrets / name).stat().st_size > 0, name
    for service in COMPOSE["services"].values():
        for mounted in service.get("secrets", ()):
            assert (mounted if isinstance(mounted, str) else mounted["source"]) in COMPOSE["secrets"]


def test_the_secrets_are_kept_from_others_and_from_git(secrets):
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o700
    assert stat.S_IMODE((secrets / "ca.key").stat().st_mode) == 0o400
    assert "ca.key" not in COMPOSE["secrets"]
    assert "signing.pem" not in COMPOSE["secrets"]
    assert "deploy/secrets/" in (ROOT / ".gitignore").read_text().splitlines()


def test_each_service_has_a_certificate_of_its_name(secrets):
    authority = x509.load_pem_x509_certificate((secrets / "ca.pem").read_bytes())
    for name in SERVICES | {"envoy", "prometheus", "redis", "broker", "postgres"}:
        certificate = x509.load_pem_x509_certificate((secrets / f"{name}.pem").read_bytes())
        certificate.verify_directly_issued_by(authority)
        (common_name,) = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        assert common_name.value == name
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert {name, "localhost"} <= set(names.get_values_for_type(x509.DNSName))


@pytest.mark.parametrize("name", sorted(OURS))
def test_production_accepts_the_settings_of_each_service(name, secrets, tmp_path, monkeypatch):
    """The very environment and files that the engine would give the container."""
    for secret in OURS[name]["secrets"]:
        shutil.copy(secrets / secret["source"], tmp_path / secret["target"])
    for variable, value in OURS[name]["environment"].items():
        default = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value)
        monkeypatch.setenv(variable, default.replace("/run/secrets/", f"{tmp_path}/"))
    monkeypatch.setenv("FIVEDRAW_SECRETS_DIR", str(tmp_path))
    settings = ServiceSettings.load()
    assert settings.environment == "production"
    assert settings.has_tls
    assert "sslmode=verify-full" in settings.database_url.get_secret_value()
    if name not in {"wallet", "wallet-worker", "console"}:
        assert len(settings.sealing_key_list()) == 1


async def test_the_key_set_that_is_made_holds_the_key_that_is_made(secrets, make_settings, monkeypatch):
    from services.runtime.tokens import SigningKey  # noqa: PLC0415 - only here

    key = SigningKey.load_or_create(secrets / "signing.pem")
    assert json.loads((secrets / "jwks.json").read_text())["keys"][0]["kid"] == key.key_id
    house = Authenticator(make_settings(jwks=str(secrets / "jwks.json")), SystemClock())
    identity = await house.identify_token(key.mint("alice", ["player"], now_ms=SystemClock().now_ms()))
    assert identity.id == "alice"
    with pytest.raises(Fault):
        await house.identify_token(SigningKey.generate().mint("alice", ["player"], now_ms=SystemClock().now_ms()))


def test_the_database_roles_own_what_the_services_are_told(secrets):
    roles = (secrets / "postgres_roles.sql").read_text()
    for name in ("table", "deck", "wallet", "history", "console"):
        url = (secrets / f"{name}_database_url").read_text()
        assert f"fivedraw_{name}:{(secrets / f'{name}_password').read_text()}@postgres:5432/fivedraw_{name}?" in url
        assert f"CREATE DATABASE fivedraw_{name} OWNER fivedraw_{name};" in roles


@pytest.fixture(scope="module")
def guarded_redis(secrets, tmp_path_factory):
    server = RedisProcess(tmp_path_factory.mktemp("redis"))
    server.options += ["--aclfile", str(secrets / "redis.acl")]
    server.login = ("health", "x")
    server.start()
    yield server
    server.stop()


def test_redis_lets_the_tables_do_their_work_and_nothing_else(secrets, guarded_redis):
    import redis  # noqa: PLC0415 - only here

    password = (secrets / "redis_password").read_text()
    table = redis.Redis(port=guarded_redis.port, username="table", password=password)
    assert table.eval("redis.call('set', KEYS[1], 1); return redis.call('time')", 1, "fd:{a}:state")
    table.xadd("fd:{a}:log", {"e": "1"})
    table.zadd("fd:due:0", {"a": 1})
    table.execute_command("SPUBLISH", "fd:{a}:events", "x")
    table.publish("fd:{a}:events", "x")
    table.script_load("return 1")
    table.hset("fd:{a}:hands", "1", "2")
    for command in (("FLUSHALL",), ("KEYS", "*"), ("CONFIG", "GET", "*"), ("ACL", "LIST"), ("SHUTDOWN",), ("MONITOR",)):
        with pytest.raises(redis.exceptions.NoPermissionError):
            table.execute_command(*command)
    with pytest.raises(redis.exceptions.NoPermissionError):
        table.get("other:key")
    with pytest.raises(redis.exceptions.AuthenticationError):
        redis.Redis(port=guarded_redis.port).ping()
    with pytest.raises(redis.exceptions.NoPermissionError):
        redis.Redis(port=guarded_redis.port, username="health", password="x").get("fd:{a}:state")


def test_the_broker_lets_both_sides_of_the_queue_work(secrets, tmp_path):
    import kombu  # noqa: PLC0415 - only here

    server = RedisProcess(tmp_path)
    server.options += ["--aclfile", str(secrets / "broker.acl")]
    server.login = ("health", "x")
    server.start()

    def connection(side: str) -> kombu.Connection:
        password = (secrets / f"broker_{side}_password").read_text()
        return kombu.Connection(f"redis://{side}:{password}@127.0.0.1:{server.port}/0")

    try:
        with connection("table") as sender, connection("history") as worker, connection("wallet") as auditor:
            sender.SimpleQueue("history.write").put({"hand": 7})
            message = worker.SimpleQueue("history.write").get(timeout=5)
            assert message.payload == {"hand": 7}
            message.ack()
            worker.SimpleQueue("wallet.audits").put({})
            auditor.SimpleQueue("wallet.audits").get(timeout=5).ack()
    finally:
        server.stop()


ENVOY_TYPES = [
    "envoy.extensions.filters.http.local_ratelimit.v3.local_rate_limit_pb2",
    "envoy.extensions.filters.http.router.v3.router_pb2",
    "envoy.extensions.filters.network.http_connection_manager.v3.http_connection_manager_pb2",
    "envoy.extensions.resource_monitors.downstream_connections.v3.downstream_connections_pb2",
    "envoy.extensions.transport_sockets.tls.v3.tls_pb2",
    "envoy.extensions.upstreams.http.v3.http_protocol_options_pb2",
]


@pytest.fixture(scope="module")
def envoy():
    """Envoy's own schema reads the file: an unknown field or a value of another type is a fault."""
    for name in ENVOY_TYPES:
        importlib.import_module(name)
    bootstrap = importlib.import_module("envoy.config.bootstrap.v3.bootstrap_pb2").Bootstrap()
    json_format.ParseDict(yaml.safe_load((DEPLOY / "envoy" / "envoy.yaml").read_text()), bootstrap)
    return json_format.MessageToDict(bootstrap, preserving_proto_field_name=True)


def test_envoy_lets_in_exactly_what_people_may_call(envoy):
    (clients,) = [each for each in envoy["static_resources"]["listeners"] if each["name"] == "clients"]
    manager = clients["filter_chains"][0]["filters"][0]["typed_config"]
    assert manager["route_config"]["request_headers_to_remove"] == ["x-fivedraw-service", "x-fivedraw-service-proof"]
    matches = [route["match"] for route in manager["route_config"]["virtual_hosts"][0]["routes"]]
    for method, principals in access.METHODS.items():
        is_routed = any(method == each.get("path") or method.startswith(each.get("prefix", "\0")) for each in matches)
        is_for_people = not all(each.startswith("service:") for each in principals)
        if method.startswith("/fivedraw."):
            assert is_routed == is_for_people, method


def test_envoy_knows_every_cluster_it_routes_to_and_checks_its_name(envoy):
    clusters = {each["name"]: each for each in envoy["static_resources"]["clusters"]}
    assert clusters["table"]["lb_policy"] == "RING_HASH"
    for name in ("table", "deck", "wallet", "history"):
        tls = clusters[name]["transport_socket"]["typed_config"]
        names = tls["common_tls_context"]["validation_context"]["match_typed_subject_alt_names"]
        assert [each["matcher"]["exact"] for each in names] == [name]
        assert tls["common_tls_context"]["tls_certificates"]


def metrics_of_the_source() -> set[str]:
    """Names that our own code registers."""
    names = set()
    for path in (ROOT / "services").rglob("*.py"):
        calls = re.findall(r"telemetry\.(counter|gauge|histogram)\(\s*\"(\w+)\"", path.read_text())
        for kind, name in calls:
            names |= {f"{name}_{part}" for part in ("bucket", "count", "sum")} if kind == "histogram" else {name}
    return names


ASKING = [*(DEPLOY / "prometheus" / "rules").glob("*.yml"), *(DEPLOY / "grafana" / "dashboards").glob("*.json")]


@pytest.mark.parametrize("path", ASKING, ids=lambda path: path.stem)
def test_rules_and_dashboards_ask_only_for_metrics_that_exist(path):
    asked = set(re.findall(r"(?<![:\w])fivedraw_[a-z_]+\b(?!:)", path.read_text()))
    # The promises ask for recorded series only.
    assert asked or path.stem == "slo"
    assert asked - metrics_of_the_source() == set()


def test_prometheus_scrapes_every_process_that_measures():
    jobs = {
        job["job_name"] for job in yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())["scrape_configs"]
    }
    services = {"table", "deck", "wallet", "wallet-worker", "history", "history-worker", "console"}
    assert {*services, "envoy", "prometheus"} == jobs
