"""SQL for the services: SQLAlchemy Core on SQLite (embedded) and PostgreSQL, with one way to write and one to read.

`write(fn, ...)` runs `fn(conn, ...)` in one transaction and answers only when the disk has it. On SQLite one thread
owns the writing connection and lets the calls that are waiting share a commit, each in a savepoint of its own; on
PostgreSQL each call is a serializable transaction on a bounded pool, and the server groups the commits. In both worlds
a function may be run again after a conflict or a failed commit, so it touches nothing but its connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Concatenate, Final, Literal, ParamSpec, TypeVar

import psycopg
from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry

from services.runtime import migrations, sqlite, telemetry
from services.runtime.conflicts import ATTEMPTS_MAX, DatabaseBusyError, back_off, is_conflict

__all__ = ["Database", "DatabaseBusyError"]

P = ParamSpec("P")
T = TypeVar("T")

Isolation = Literal["SERIALIZABLE", "REPEATABLE READ", "READ COMMITTED"]

CONNECT_TIMEOUT_SECONDS: Final = 5
# A process that hangs, or a machine that is gone, loses its transactions and their locks after this time.
IDLE_IN_TRANSACTION_MS: Final = 30_000
KEEPALIVES: Final = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 4}

_SECONDS: Final = telemetry.histogram(
    "fivedraw_database_seconds", "Seconds from asking for a transaction to its durable end, by kind.", ("kind",)
)
_FAULTS: Final = telemetry.counter(
    "fivedraw_database_faults_total", "Transactions that the database did not carry out, by kind.", ("kind",)
)


class Database:
    """One service's connection to its SQL database.

    `url` is a SQLAlchemy URL (`sqlite:///file`, `sqlite://`, `postgresql://…`). `pool_size` bounds the concurrent
    transactions (PostgreSQL) or readers (SQLite). `inline=True` runs everything on the calling thread, for a
    simulation. `isolation` is that of writes on PostgreSQL; anything weaker than the default is for functions that
    take their own row locks.
    """

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 8,
        inline: bool = False,
        isolation: Isolation = "SERIALIZABLE",
        migrations_folder: Path | None = None,
    ) -> None:
        parsed = make_url(url)
        self._migrations_folder = migrations_folder
        self._inline = inline
        self._pool_size = pool_size
        self.is_sqlite: Final = parsed.get_backend_name() == "sqlite"
        self._executor: ThreadPoolExecutor | None = None
        self._writer: sqlite.WriterThread | None = None
        if self.is_sqlite:
            in_memory = parsed.database in (None, "", ":memory:")
            single = inline or in_memory
            self._write_engine = sqlite.engine(url, pool_size=1, read_only=False, shared=single)
            self._read_engine = (
                self._write_engine if single else sqlite.engine(url, pool_size=pool_size, read_only=True, shared=False)
            )
        else:
            if parsed.drivername == "postgresql":
                parsed = parsed.set(drivername="postgresql+psycopg")
            engine = create_engine(
                parsed,
                pool_size=pool_size,
                max_overflow=0,
                pool_pre_ping=True,
                connect_args={"connect_timeout": CONNECT_TIMEOUT_SECONDS, **KEEPALIVES},
            )
            _bound_idling(engine)
            self._write_engine = engine.execution_options(isolation_level=isolation)
            self._read_engine = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)

    async def write(self, fn: Callable[Concatenate[Connection, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs `fn(conn, ...)` in one transaction and returns its result after the commit is durable.

        What `fn` raises rolls its own work back and is raised here. A caller that is cancelled does not know the
        outcome: the transaction may still commit. Raises `DatabaseBusyError` when nothing could be written.
        """

        def run(conn: Connection) -> T:
            return fn(conn, *args, **kwargs)

        if self._inline:
            return self._transact(self._write_engine, run)
        with _measured("write"):
            if not self.is_sqlite:
                return await self._on_pool(self._write_engine, run)
            if self._writer is None:
                self._writer = sqlite.WriterThread(self._write_engine)
            result: T = await asyncio.wrap_future(self._writer.submit(run))
            return result

    async def read(self, fn: Callable[Concatenate[Connection, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs `fn(conn, ...)` in a read-only transaction on one snapshot and returns its result."""

        def run(conn: Connection) -> T:
            return fn(conn, *args, **kwargs)

        if self._inline:
            return self._transact(self._read_engine, run)
        if self._read_engine is self._write_engine:
            # An SQLite database in memory has one connection, and one thread that may use it.
            return await self.write(run)
        with _measured("read"):
            return await self._on_pool(self._read_engine, run)

    async def migrate(self, service: str) -> None:
        """Brings the service's tables to the newest revision and checks it; concurrent starts wait for each other."""
        if self._inline or self._read_engine is self._write_engine:
            self.migrate_now(service)
        else:
            await asyncio.to_thread(self.migrate_now, service)

    def migrate_now(self, service: str) -> None:
        """`migrate` for callers without an event loop."""
        migrations.upgrade(self._write_engine, service, self._migrations_folder)

    async def close(self) -> None:
        """Ends the threads after the work they hold, then closes all connections."""
        await asyncio.to_thread(self.close_now) if not self._inline else self.close_now()

    def close_now(self) -> None:
        """`close` for callers without an event loop."""
        if self._writer is not None:
            self._writer.stop()
        if self._executor is not None:
            self._executor.shutdown(wait=True)
        self._read_engine.dispose()
        self._write_engine.dispose()

    async def _on_pool(self, engine: Engine, run: Callable[[Connection], T]) -> T:
        if self._executor is None:
            self._executor = ThreadPoolExecutor(self._pool_size, thread_name_prefix="sql")
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._transact, engine, run)

    @staticmethod
    def _transact(engine: Engine, run: Callable[[Connection], T]) -> T:
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                with engine.begin() as conn:
                    return run(conn)
            except DBAPIError as error:
                if not is_conflict(error):
                    raise
                if attempt == ATTEMPTS_MAX:
                    raise DatabaseBusyError(f"gave up after {ATTEMPTS_MAX} attempts") from error
                back_off(attempt)
        raise DatabaseBusyError("no attempt was made")


@contextlib.contextmanager
def _measured(kind: str) -> Iterator[None]:
    """Times a transaction. A refusal raised by its function is an answer; only the database's own failures count."""
    started = time.monotonic()
    try:
        yield
    except (DBAPIError, DatabaseBusyError):
        _FAULTS.labels(kind).inc()
        raise
    finally:
        _SECONDS.labels(kind).observe(time.monotonic() - started)


def _bound_idling(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def bound(connection: psycopg.Connection, _: ConnectionPoolEntry) -> None:
        connection.autocommit = True
        connection.execute(f"SET idle_in_transaction_session_timeout = {IDLE_IN_TRANSACTION_MS}".encode())
        connection.autocommit = False
