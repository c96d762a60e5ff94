"""Decks a second over gRPC, each durable before it is answered, against a bare grpc.aio echo in the same run.

Echo and deck service are processes of their own, on the same event loop; the same client calls both with the same
number of calls in flight, in turn, so that whatever else the machine does meets both; the ratio is the median of the
turns. The deck writes an SQLite file in WAL mode, synchronous FULL. Nothing is prepared: every OpenDeck draws, commits,
seals and stores its own seed.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median

import grpc
from fivedraw.deck.v1 import deck_service_pb2 as pb
from fivedraw.deck.v1 import deck_service_pb2_grpc as pb_grpc

from services.runtime.channel import connect
from services.runtime.server import run as run_loop
from services.runtime.settings import ServiceSettings

CALLS_AT_ONCE = 128
TURNS = 5
ECHO_CALLS = 1_500
OPEN_CALLS = 800
CYCLES = 300
DEALS = 1_000
SEATS = (2, 3, 4, 5, 6, 1)
START_SECONDS_MAX = 30

ECHO_METHOD = "/bench.Echo/Echo"


def run() -> dict[str, float]:
    """Measures once; rates are per second, `decks_vs_echo` is OpenDeck's rate as a part of the echo's."""
    return run_loop(_measure())


async def _measure() -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="bench-deck-") as folder:
        env, settings = _environment(Path(folder))
        echo_command = [sys.executable, "-m", "bench.deck", "echo", str(_free_port())]
        env["FIVEDRAW_LISTEN"] = f"127.0.0.1:{_free_port()}"
        deck_command = [sys.executable, "-m", "services.deck"]
        async with (
            _process(echo_command, env) as echo_target,
            _process(deck_command, env, env["FIVEDRAW_LISTEN"]) as target,
            grpc.aio.insecure_channel(echo_target) as echo_channel,
            connect(target, settings, as_service="table", timeout=60) as channel,
        ):
            stub = pb_grpc.DeckServiceStub(channel)
            turns = [await _turn(echo_channel, stub, turn) for turn in range(TURNS)]
            await asyncio.gather(*(_shuffle(stub, f"tables/deal-{n}") for n in range(DEALS)))
            deals = await _rate(DEALS, lambda n: _deal(stub, f"tables/deal-{n}"))
            cycles = await _rate(CYCLES, lambda n: _cycle(stub, f"tables/cycle-{n}"))
    return {
        "echo_per_second": median(echo for echo, _ in turns),
        "decks_opened_per_second": median(opens for _, opens in turns),
        "deals_per_second": deals,
        "deck_cycles_per_second": cycles,
        "deck_cycle_calls_per_second": cycles * (4 + len(SEATS)),
        "decks_vs_echo": median(opens / echo for echo, opens in turns),
    }


async def _turn(echo_channel: grpc.aio.Channel, stub: pb_grpc.DeckServiceAsyncStub, turn: int) -> tuple[float, float]:
    """Rates of the echo and of OpenDeck, one right after the other."""
    echo = await _echo_rate(echo_channel)
    return echo, await _rate(OPEN_CALLS, lambda n: _open(stub, f"tables/open-{turn}-{n}"))


async def _echo_rate(channel: grpc.aio.Channel) -> float:
    call = channel.unary_unary(ECHO_METHOD)
    payload = pb.OpenDeckRequest(key=_key("tables/open-1234"), step_id="open").SerializeToString()
    return await _rate(ECHO_CALLS, lambda _: call(payload, timeout=60))


async def _rate(count: int, call: Callable[[int], Awaitable[object]]) -> float:
    """Runs `count` calls, `CALLS_AT_ONCE` in flight; a tenth more come first, as a warm-up of client and server."""
    await _drive(range(count, count + count // 10), call)
    begun = time.perf_counter()
    await _drive(range(count), call)
    return count / (time.perf_counter() - begun)


async def _drive(numbers: range, call: Callable[[int], Awaitable[object]]) -> None:
    waiting = iter(numbers)

    async def caller() -> None:
        for number in waiting:
            await call(number)

    await asyncio.gather(*(caller() for _ in range(CALLS_AT_ONCE)))


def _key(table: str) -> pb.HandKey:
    return pb.HandKey(table=table, epoch=1, hand=1)


async def _open(stub: pb_grpc.DeckServiceAsyncStub, table: str) -> None:
    await stub.OpenDeck(pb.OpenDeckRequest(key=_key(table), step_id="open"))


async def _shuffle(stub: pb_grpc.DeckServiceAsyncStub, table: str) -> None:
    await _open(stub, table)
    await stub.CutDeck(pb.CutDeckRequest(key=_key(table), step_id="cut"))


async def _deal(stub: pb_grpc.DeckServiceAsyncStub, table: str) -> pb.DealCardsResponse:
    if int(table.rpartition("-")[2]) >= DEALS:
        await _shuffle(stub, table)
    return await stub.DealCards(pb.DealCardsRequest(key=_key(table), step_id="deal", seats=SEATS))


async def _cycle(stub: pb_grpc.DeckServiceAsyncStub, table: str) -> None:
    """One whole hand: opened, cut, dealt to six, six exchanges of two cards, closed."""
    await _shuffle(stub, table)
    dealt = await stub.DealCards(pb.DealCardsRequest(key=_key(table), step_id="deal", seats=SEATS))
    for hand in dealt.hands:
        request = pb.ExchangeCardsRequest(
            key=_key(table),
            step_id=f"exchange-{hand.seat}",
            seat=hand.seat,
            discards=hand.cards[:2],
            draw_now=2,
            rule=pb.RESHUFFLE_RULE_STUB_FIRST,
        )
        await stub.ExchangeCards(request)
    await stub.CloseDeck(pb.CloseDeckRequest(key=_key(table), step_id="close"))


def _environment(folder: Path) -> tuple[dict[str, str], ServiceSettings]:
    jwks = folder / "jwks.json"
    jwks.write_text('{"keys": []}')
    given = {
        "jwks": str(jwks),
        "service_key": secrets.token_hex(32),
        "sealing_keys": f"bench:{secrets.token_hex(32)}",
        "database_url": f"sqlite:///{folder / 'deck.sqlite'}",
    }
    settings = ServiceSettings.load(**given)
    return {**os.environ, **{f"FIVEDRAW_{name.upper()}": value for name, value in given.items()}}, settings


@asynccontextmanager
async def _process(command: list[str], env: dict[str, str], target: str = "") -> AsyncIterator[str]:
    target = target or f"127.0.0.1:{command[-1]}"
    process = _spawn(command, env)
    try:
        async with grpc.aio.insecure_channel(target) as channel:
            await asyncio.wait_for(channel.channel_ready(), START_SECONDS_MAX)
        yield target
    finally:
        process.terminate()
        process.wait(START_SECONDS_MAX)


def _spawn(command: list[str], env: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def _serve_echo(port: int) -> None:
    async def echo(request: bytes, _: grpc.aio.ServicerContext) -> bytes:
        return request

    server = grpc.aio.server()
    service, method = ECHO_METHOD[1:].split("/")
    handlers = {method: grpc.unary_unary_rpc_method_handler(echo)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    if sys.argv[1:2] == ["echo"]:
        run_loop(_serve_echo(int(sys.argv[2])))
    else:
        print(json.dumps(run(), indent=1))
