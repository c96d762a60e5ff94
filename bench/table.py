"""Actions a second through everything real (gRPC, Redis, ledger, deck), against a bare echo in the same run; and what a
hundred observers and a slow one do to an action's latency.

The house is `fivedraw up` without bots, every service a process of its own; the players are this process. On a small
machine players and house share the same cores, and so do the echo's two sides. Observers are a process of their own
that gives way to the others, since theirs would be other machines; they come and go, and latencies with and without
them are compared over all rounds, at a pace that leaves the machine room.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc
from fivedraw.table.v1 import table_pb2 as table
from fivedraw.table.v1 import table_service_pb2 as pb
from fivedraw.table.v1 import table_service_pb2_grpc as rpc
from fivedraw.wallet.v1 import wallet_service_pb2 as wallet
from fivedraw.wallet.v1 import wallet_service_pb2_grpc as wallet_rpc

from services.runtime import server

TABLES = 16
SECONDS = 8.0
OBSERVERS = 100
# Streams of one caller are bounded, so the observers are several callers.
OBSERVING_CALLERS = 4
OBSERVER_NICE = 10
ROUNDS = 6
PACE_SECONDS = 0.5
PACED_SECONDS = 15.0
SETTLE_SECONDS = 2.0
ECHO = "/bench.Echo/Echo"
SLOW_READ_SECONDS = 0.5


def run() -> dict[str, object]:
    """Key `actions_vs_echo` of the bench, and `observers`: p99 of an action with observers against the calm run."""
    with _echo() as port:
        echo = server.run(_echo_rate(port))
    with tempfile.TemporaryDirectory() as folder, _house(folder) as (base, house):
        figures = server.run(_measure(Path(folder), base, house))
    calm, paced, watched = (figures[name] for name in ("calm", "paced", "watched"))
    return {
        "echo_calls_per_second": round(echo),
        "actions_per_second": calm["actions_per_second"],
        "actions_vs_echo": round(calm["actions_per_second"] / echo, 3),
        "action_p50_ms": calm["p50_ms"],
        "action_p99_ms": calm["p99_ms"],
        "hands_per_second": calm["hands_per_second"],
        # Where the time goes: processor milliseconds of each process for one hand, in the calm run.
        "cpu_ms_per_hand": calm["cpu_ms_per_hand"],
        "observers": {
            "observers": OBSERVERS,
            "actions_measured": [paced["actions"], watched["actions"]],
            "paced_p50_ms": paced["p50_ms"],
            "watched_p50_ms": watched["p50_ms"],
            "paced_p99_ms": paced["p99_ms"],
            "watched_p99_ms": watched["p99_ms"],
            "p99_ratio": round(watched["p99_ms"] / paced["p99_ms"], 2),
            # Of all ways to call half of the rounds watched, how many give so much: near 0 where observers matter.
            "p99_ratio_by_chance": round(_by_chance(figures["rounds_paced"], figures["rounds_watched"]), 2),
        },
    }


def _by_chance(calm: list[list[float]], watched: list[list[float]]) -> float:
    """The exact permutation test of the p99 of watched rounds over that of calm ones."""

    def ratio(chosen: tuple[int, ...]) -> float:
        rounds = list(enumerate(calm + watched))
        halves = [
            sorted(itertools.chain(*(each for at, each in rounds if (at in chosen) is is_chosen)))
            for is_chosen in (True, False)
        ]
        first, second = (each[len(each) * 99 // 100] for each in halves)
        return first / second

    observed = ratio(tuple(range(len(calm), len(calm) + len(watched))))
    others = [ratio(chosen) for chosen in itertools.combinations(range(len(calm) + len(watched)), len(watched))]
    return sum(each >= observed for each in others) / len(others)


class Driver:
    """Two players at each of some tables, who act as soon as they may."""

    def __init__(self, folder: Path, base: int, house: int) -> None:
        self.folder = folder
        self.house = house
        self.base = base
        self.ids = itertools.count(1)
        self.latencies: list[float] = []
        self.hands = 0
        self.pause = 0.0

    def token(self, subject: str, role: str) -> list[tuple[str, str]]:
        command = [sys.executable, "-m", "services.cli", "token", "--data", str(self.folder)]
        told = subprocess.run(
            [*command, "--subject", subject, "--role", role], check=True, stdout=subprocess.PIPE, text=True
        )
        return [("authorization", f"Bearer {told.stdout.strip()}")]

    def next_id(self) -> str:
        return f"bench-{next(self.ids)}"

    async def prepare(self, channel: grpc.aio.Channel, cash: grpc.aio.Channel) -> list[tuple[str, list[Any]]]:
        """Opens the tables and seats the players; returns the players' credentials by table."""
        tables, bank = rpc.TableServiceStub(channel), wallet_rpc.WalletServiceStub(cash)
        operator = self.token("bench-operator", "operator")
        options = table.GameOptions(small_blind_minor=5, big_blind_minor=10, cut=False)
        options.hand_interval.FromMilliseconds(0)
        seats = []
        for number in range(TABLES):
            name = f"bench-{number}"
            await tables.CreateTable(
                pb.CreateTableRequest(request_id=self.next_id(), table_id=name, currency="CHIPS", overrides=options),
                metadata=operator,
            )
            players = [await asyncio.to_thread(self.token, f"bench-{number}-{seat}", "player") for seat in range(2)]
            for seat, credentials in enumerate(players):
                player = f"bench-{number}-{seat}"
                create = wallet.CreatePlayerRequest(request_id=self.next_id(), player_id=player, display_name=player)
                await bank.CreatePlayer(create, metadata=operator)
                deposit = wallet.DepositRequest(
                    request_id=self.next_id(), player=f"players/{player}", currency="CHIPS", amount_minor=10**9
                )
                await bank.Deposit(deposit, metadata=operator)
                sit = pb.SitDownRequest(table=f"tables/{name}", request_id=self.next_id(), buy_in_minor=1_000)
                await tables.SitDown(sit, metadata=credentials)
            seats.append((f"tables/{name}", players))
        return seats

    async def play(self, stub: Any, name: str, credentials: Any) -> None:
        """Checks or calls whenever asked, and stands pat."""
        stream = stub.WatchTable(pb.WatchTableRequest(table=name), metadata=credentials)
        async for update in stream:
            if update.HasField("snapshot") and update.snapshot.HasField("your_actions"):
                view = update.snapshot
                await self.act(stub, name, credentials, (view.hand, view.turn.turn, view.your_actions))
            for event in update.events:
                body = event.WhichOneof("body")
                if body == "turn_started" and event.turn_started.HasField("your_actions"):
                    turn = event.turn_started
                    await self.act(stub, name, credentials, (event.hand, turn.turn.turn, turn.your_actions))
                elif body == "hand_settled":
                    self.hands += 1

    async def act(self, stub: Any, name: str, credentials: Any, asked: tuple[int, int, Any]) -> None:
        hand, turn, legal = asked
        kind = table.ACTION_KIND_FOLD
        if legal.discard:
            kind = table.ACTION_KIND_DISCARD
        elif legal.check:
            kind = table.ACTION_KIND_CHECK
        elif legal.call:
            kind = table.ACTION_KIND_CALL
        request = pb.SubmitActionRequest(
            table=name, hand=hand, turn=turn, action_id=self.next_id(), action=pb.Action(kind=kind)
        )
        if self.pause:
            await asyncio.sleep(self.pause)
        started = time.perf_counter()
        await stub.SubmitAction(request, metadata=credentials, timeout=10)
        self.latencies.append(time.perf_counter() - started)

    async def figures(self, seconds: float) -> dict[str, Any]:
        """Plays on for a while and measures."""
        self.latencies, self.hands = [], 0
        before = _cpu_ms(self.house)
        await asyncio.sleep(seconds)
        hands = self.hands / 2
        spent = {name: ms - before.get(name, 0) for name, ms in _cpu_ms(self.house).items()}
        return {
            "cpu_ms_per_hand": {name: round(ms / max(hands, 1), 1) for name, ms in sorted(spent.items())},
            "actions_per_second": round(len(self.latencies) / seconds),
            "hands_per_second": round(hands / seconds, 1),
            **_percentiles(self.latencies),
        }

    async def latencies_of(self, seconds: float) -> list[float]:
        """Plays on for a while; the latency of each action."""
        self.latencies = []
        await asyncio.sleep(seconds)
        return self.latencies


def _percentiles(latencies: list[float]) -> dict[str, float]:
    taken = sorted(latencies)
    return {
        "actions": len(taken),
        "p50_ms": round(taken[len(taken) // 2] * 1000, 2),
        "p99_ms": round(taken[len(taken) * 99 // 100] * 1000, 2),
    }


async def _measure(folder: Path, base: int, house: int) -> dict[str, Any]:
    driver = Driver(folder, base, house)
    target = f"127.0.0.1:{base}"
    async with grpc.aio.insecure_channel(target) as channel, grpc.aio.insecure_channel(f"127.0.0.1:{base + 2}") as cash:
        seats = await driver.prepare(channel, cash)
        stub = rpc.TableServiceStub(channel)
        tasks = [
            asyncio.create_task(driver.play(stub, name, credentials))
            for name, players in seats
            for credentials in players
        ]
        await asyncio.sleep(2)
        calm = await driver.figures(SECONDS)
        driver.pause = PACE_SECONDS
        callers = [driver.token(f"bench-observer-{number}", "auditor") for number in range(OBSERVING_CALLERS)]
        paced: list[list[float]] = []
        watched: list[list[float]] = []
        for _ in range(ROUNDS):
            await asyncio.sleep(SETTLE_SECONDS)
            paced.append(await driver.latencies_of(PACED_SECONDS))
            with _observers(target, callers, [name for name, _ in seats]):
                await asyncio.sleep(2 * SETTLE_SECONDS)
                watched.append(await driver.latencies_of(PACED_SECONDS))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return {
        "calm": calm,
        "paced": _percentiles([*itertools.chain(*paced)]),
        "watched": _percentiles([*itertools.chain(*watched)]),
        "rounds_paced": paced,
        "rounds_watched": watched,
    }


@contextmanager
def _observers(target: str, callers: list[list[tuple[str, str]]], tables: list[str]) -> Iterator[None]:
    """All observers, as a process that ends with the block."""
    process = subprocess.Popen([sys.executable, "-m", "bench.table", "observe", target], stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(json.dumps({"callers": callers, "tables": tables}).encode())
    process.stdin.close()
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=10)


async def _observe(target: str, callers: list[list[list[str]]], tables: list[str]) -> None:
    """Watches all tables evenly; the first observer reads too slowly."""
    os.nice(OBSERVER_NICE)
    async with AsyncExitStack() as stack:

        async def watch(place: int) -> None:
            number = place % len(callers)
            credentials = [(name, value) for name, value in callers[number]]
            request = pb.WatchTableRequest(table=tables[place % len(tables)])
            async for _ in stubs[number].WatchTable(request, metadata=credentials):
                if place == 0:
                    await asyncio.sleep(SLOW_READ_SECONDS)

        stubs = []
        for number in range(len(callers)):
            channel = grpc.aio.insecure_channel(target, options=[("bench.number", number)])
            stubs.append(rpc.TableServiceStub(await stack.enter_async_context(channel)))
        await asyncio.gather(*(watch(place) for place in range(OBSERVERS)), return_exceptions=True)


@contextmanager
def _house(folder: str) -> Iterator[tuple[int, int]]:
    """`fivedraw up` without bots; yields its port base and process id."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        base = 10_000 + taken.getsockname()[1] % 20_000
    command = [sys.executable, "-m", "services.cli", "up", "--data", folder, "--port-base", str(base), "--tables", "0"]
    house = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(base)
        yield base, house.pid
    finally:
        house.send_signal(signal.SIGINT)
        house.wait(timeout=60)


@contextmanager
def _echo() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-m", "bench.table", str(port)], env=os.environ)
    try:
        _wait_for(port)
        yield port
    finally:
        process.terminate()
        process.wait(timeout=10)


def _cpu_ms(house: int) -> dict[str, float]:
    """Processor time so far, by process of the house, and of the players here; empty where there is no /proc."""
    spent = {"players": sum(os.times()[:2]) * 1000}
    ticks = os.sysconf("SC_CLK_TCK")
    parents, programs, used = {}, {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            # After the name in brackets: state, parent, and from the 12th on the ticks in user and system mode.
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_text().split("\0")
        except OSError:
            continue
        process = int(folder.name)
        parents[process], programs[process] = int(fields[1]), _program(command)
        used[process] = (int(fields[11]) + int(fields[12])) * 1000 / ticks
    for process, ms in used.items():
        line = [process]
        while line[-1] != house and line[-1] in parents:
            line.append(parents[line[-1]])
        # A worker's children count as the worker.
        name = next((programs[each] for each in line if programs.get(each)), "supervisor")
        if house in line:
            spent[name] = spent.get(name, 0) + ms
    return spent


def _program(command: list[str]) -> str:
    """What a process of the house is called here: its module, or `redis`; empty for what only starts others."""
    if command[0].startswith("[celeryd"):
        return "history.worker"
    modules = [word for word in command if word.startswith("services.") and not word.startswith("services.cli")]
    if modules:
        return modules[-1].removeprefix("services.")
    return "redis" if any("valkey" in word for word in command) else ""


def _wait_for(port: int) -> None:
    until = time.monotonic() + 90
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)
        else:
            return


async def _echo_rate(port: int) -> float:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.unary_unary(ECHO)
        until = time.perf_counter() + 3

        async def caller() -> int:
            calls = 0
            while time.perf_counter() < until:
                await call(b"x" * 64)
                calls += 1
            return calls

        return sum(await asyncio.gather(*(caller() for _ in range(TABLES)))) / 3


async def _serve_echo(port: int) -> None:
    async def echo(request: bytes, _context: Any) -> bytes:
        return request

    handlers = {"Echo": grpc.unary_unary_rpc_method_handler(echo)}
    serving = grpc.aio.server()
    serving.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bench.Echo", handlers),))
    serving.add_insecure_port(f"127.0.0.1:{port}")
    await serving.start()
    await serving.wait_for_termination()


if __name__ == "__main__":
    if sys.argv[1] == "observe":
        server.run(_observe(sys.argv[2], **json.load(sys.stdin)))
    else:
        server.run(_serve_echo(int(sys.argv[1])))
