"""The container's health check agrees with the service, in plaintext and over mutual TLS."""

import asyncio

import pytest

from services.runtime import healthcheck
from tests.certificates import Authority


@pytest.fixture(params=["plaintext", "tls"])
def tls(request, tmp_path):
    return Authority(tmp_path).issue("wallet") if request.param == "tls" else {}


@pytest.mark.parametrize("arguments", [[], ["--metrics"]])
async def test_a_serving_service_is_well_and_a_stopped_one_is_not(serve, make_settings, tls, arguments, monkeypatch):
    server = await serve(make_settings(**tls), lambda _: [], with_metrics=True)
    monkeypatch.setenv("FIVEDRAW_LISTEN", f"127.0.0.1:{server.port}")
    monkeypatch.setenv("FIVEDRAW_METRICS_LISTEN", f"127.0.0.1:{server.metrics_port}")
    for name, path in tls.items():
        monkeypatch.setenv(f"FIVEDRAW_{name.upper()}", str(path))
    assert await asyncio.to_thread(healthcheck.main, arguments) == 0
    await server.stop()
    assert await asyncio.to_thread(healthcheck.main, arguments) == 1
