"""What the gate costs a call: the same method behind it (token, access, deadline, metrics) and bare, in the same run.

Each server is a process of its own on uvloop; the caller keeps 32 calls open. Rounds alternate, and the best counts.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
from fivedraw.history.v1 import history_service_pb2 as history
from fivedraw.history.v1 import history_service_pb2_grpc as history_grpc

from services.runtime import server
from services.runtime.channel import connect
from services.runtime.clock import SystemClock
from services.runtime.settings import ServiceSettings
from services.runtime.tokens import SigningKey

AT_ONCE = 32
ROUNDS = 3
SERVICE = "fivedraw.history.v1.HistoryService"


class Answering(history_grpc.HistoryServiceServicer):
    async def GetHand(self, request: Any, context: Any) -> Any:
        return history.GetHandResponse()


def run(seconds: float = 2.0) -> dict[str, object]:
    """Key `gate_vs_echo` of the bench: calls a second behind the gate and bare, and what the gate adds to one."""
    with tempfile.TemporaryDirectory() as folder:
        key = SigningKey.generate()
        (Path(folder) / "jwks.json").write_text(key.jwks())
        settings = ServiceSettings.load(jwks=f"{folder}/jwks.json")
        token = key.mint("alice", ["player"], now_ms=SystemClock().now_ms())
        with _process("bare", settings.jwks) as bare, _process("gate", settings.jwks) as gate:
            best = {"bare": 0.0, "gate": 0.0}
            for _ in range(ROUNDS):
                for name, port in (("bare", bare), ("gate", gate)):
                    best[name] = max(best[name], server.run(_rate(port, settings, token, seconds)))
    return {
        "bare_calls_per_second": round(best["bare"]),
        "gate_calls_per_second": round(best["gate"]),
        "of_the_bare_rate": round(best["gate"] / best["bare"], 2),
        "gate_adds_microseconds": round(1e6 / best["gate"] - 1e6 / best["bare"], 1),
    }


async def _rate(port: int, settings: ServiceSettings, token: str, seconds: float) -> float:
    request = history.GetHandRequest(name="tables/a/hands/1")
    async with connect(f"127.0.0.1:{port}", settings, metadata=[("authorization", f"Bearer {token}")]) as channel:
        stub = history_grpc.HistoryServiceStub(channel)
        await stub.GetHand(request, wait_for_ready=True, timeout=30)
        until = time.perf_counter() + seconds

        async def caller() -> int:
            calls = 0
            while time.perf_counter() < until:
                await stub.GetHand(request)
                calls += 1
            return calls

        return sum(await asyncio.gather(*[caller() for _ in range(AT_ONCE)])) / seconds


@contextmanager
def _process(kind: str, jwks: str) -> Iterator[int]:
    command = [sys.executable, "-m", "bench.gate", kind]
    environment = {**os.environ, "FIVEDRAW_JWKS": jwks}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.terminate()


async def _serve(kind: str) -> None:
    if kind == "gate":
        running = await server.start("bench", ServiceSettings.load(), _register, with_metrics=False)
        port = running.port
    else:
        bare = grpc.aio.server()
        _register(bare)
        port = bare.add_insecure_port("127.0.0.1:0")
        await bare.start()
    print(port, flush=True)
    await asyncio.Event().wait()


def _register(to: grpc.aio.Server) -> list[str]:
    history_grpc.add_HistoryServiceServicer_to_server(Answering(), to)
    return [SERVICE]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run(_serve(sys.argv[1]))
    else:
        print(json.dumps({"gate_vs_echo": run()}, indent=1))
