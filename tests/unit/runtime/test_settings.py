"""Settings: read once, all faults at once, no plaintext where others could listen, no secret in a message."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from services.runtime.settings import ServiceSettings, SettingsError, is_loopback


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch):
    import os  # noqa: PLC0415 - the one place of these tests that touches it

    for name in list(os.environ):
        if name.startswith("FIVEDRAW_"):
            monkeypatch.delenv(name)


def test_the_defaults_are_an_embedded_house():
    settings = ServiceSettings.load()
    assert (settings.environment, settings.has_tls, settings.sealing_key_list()) == ("embedded", False, [])


def test_the_environment_and_secret_files_are_read(monkeypatch, tmp_path):
    (tmp_path / "fivedraw_service_key").write_text("ab" * 32 + "\n")
    monkeypatch.setenv("FIVEDRAW_SECRETS_DIR", str(tmp_path))
    monkeypatch.setenv("FIVEDRAW_ISSUER", "someone")
    monkeypatch.setenv("FIVEDRAW_SEALING_KEYS", f"new:{'01' * 32}, old:{'02' * 32}")
    settings = ServiceSettings.load()
    assert settings.issuer == "someone"
    assert settings.service_key_bytes() == b"\xab" * 32
    assert settings.sealing_key_list() == [("new", b"\x01" * 32), ("old", b"\x02" * 32)]


def test_all_faults_are_named_at_once():
    with pytest.raises(SettingsError) as caught:
        ServiceSettings.load(
            log_level="loud",
            database_pool_size=0,
            listen="0.0.0.0:7101",
            service_key="abcd",
            sealing_keys="a:12",
            tls_cert="/nowhere/cert.pem",
        )
    text = str(caught.value)
    for name in ("log_level", "database_pool_size", "service_key", "sealing_keys", "tls_key", "tls_cert: no such file"):
        assert name in text


def test_no_fault_quotes_a_secret(monkeypatch):
    monkeypatch.setenv("FIVEDRAW_SERVICE_KEY", "hunter2hunter2")
    monkeypatch.setenv("FIVEDRAW_ENVIRONMENT", "hunter2hunter2")
    with pytest.raises(SettingsError) as caught:
        ServiceSettings.load(sealing_keys="k:hunter2")
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(caught.value.__cause__)


@pytest.mark.parametrize("name", ["listen", "metrics_listen"])
def test_plaintext_is_for_loopback_only(name):
    for address in ("0.0.0.0:1", "[::]:1", "10.0.0.1:1", "table:1"):
        with pytest.raises(SettingsError, match=name):
            ServiceSettings.load(**{name: address})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("deck_address", "deck:7102"),
        ("redis_url", "redis://redis:6379/0"),
        ("broker_url", "redis://broker:6379/0"),
        ("database_url", "postgresql://u:p@postgres/fivedraw"),
        ("database_url", "postgresql://u:p@postgres/fivedraw?sslmode=require"),
        ("jwks", "http://issuer/keys"),
    ],
)
def test_production_calls_nobody_in_plaintext(name, value):
    with pytest.raises(SettingsError, match=name):
        ServiceSettings.load(environment="production", **{name: value})


def test_production_with_tls_everywhere(tmp_path):
    for name in ("cert", "key", "ca"):
        (tmp_path / name).write_text("x")
    settings = ServiceSettings.load(
        environment="production",
        listen="0.0.0.0:7101",
        metrics_listen="0.0.0.0:9100",
        deck_address="deck:7102",
        wallet_address="wallet:7103",
        redis_url="rediss://redis:6379/0",
        broker_url="rediss://broker:6379/0",
        database_url="postgresql://u:p@postgres/fivedraw?sslmode=verify-full",
        jwks="https://issuer/keys",
        **{f"tls_{name}": tmp_path / name for name in ("cert", "key", "ca")},
    )
    assert settings.has_tls


def test_settings_do_not_change():
    with pytest.raises(ValidationError):
        ServiceSettings.load().issuer = "another"


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1:1", True),
        ("127.9.9.9", True),
        ("localhost:1", True),
        ("[::1]:1", True),
        ("unix:/run/x.sock", True),
        ("dns:///localhost:1", True),
        ("0.0.0.0:1", False),
        ("[::]:1", False),
        ("", False),
        ("localhost.example.org:1", False),
        ("dns:///127.0.0.1.example.org:1", False),
    ],
)
def test_what_is_loopback(address, expected):
    assert is_loopback(address) is expected


def test_every_setting_is_on_the_operators_page():
    page = (Path(__file__).parents[3] / "docs" / "operators.md").read_text()
    assert [name for name in ServiceSettings.model_fields if f"`{name.upper()}`" not in page] == []
