"""A service as a process: it starts, says where it serves, and ends in order when told to."""

import json
import signal
import subprocess
import sys
import time

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

SERVICE = """
import sys
from services.runtime.server import run, serve
from services.runtime.settings import ServiceSettings

async def hook(word):
    print(word, flush=True)
    if word == sys.argv[1]:
        raise OSError("no store")

run(serve("test", ServiceSettings.load(), lambda server: [],
          on_start=lambda: hook("started"), on_stop=lambda: hook("closed")))
"""


@pytest.fixture
def start(tmp_path):
    processes = []

    def begin(fails_at: str = "never") -> subprocess.Popen:
        command = [sys.executable, "-c", SERVICE, fails_at]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        processes.append(process)
        return process

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_service_ends_in_order(start, sent):
    process = start()
    serving = json.loads(process.stderr.readline())
    assert serving["event"] == "serving"
    with grpc.insecure_channel(f"127.0.0.1:{serving['port']}") as channel:
        response = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=5)
        assert response.status == health_pb2.HealthCheckResponse.SERVING
    began = time.monotonic()
    process.send_signal(sent)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert output.split() == ["started", "closed"]
    assert [json.loads(line)["event"] for line in errors.splitlines()] == ["stopping", "stopped"]
    # It drained nothing, so it did not wait for the drain's ten seconds either.
    assert time.monotonic() - began < 10


def test_a_service_that_cannot_start_says_so_and_closes_what_it_opened(start):
    process = start("started")
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert output.split() == ["started", "closed"]
    assert "no store" in errors
