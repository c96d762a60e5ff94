"""SQL for the services: SQLAlchemy Core on SQLite (embedded) and PostgreSQL, with one way to write and one to read.

`write(fn, ...)` runs `fn(conn, ...)` in one transaction and answers only when the disk has it. On SQLite one thread
owns the writing connection and lets the calls that are waiting share a commit, each in a savepoint of its own; on
PostgreSQL each call is a serializable transaction on a bounded pool, and the server groups the commits. In both worlds
a function may be run again after a conflict or a failed commit, so it touches nothing but its connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Concatenate, Final, Literal, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine, StaticPool, create_engine, event, make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry

from services.runtime import migrations, telemetry

P = ParamSpec("P")
T = TypeVar("T")

Isolation = Literal["SERIALIZABLE", "REPEATABLE READ", "READ COMMITTED"]

ATTEMPTS_MAX: Final = 12
BACKOFF_FIRST_SECONDS: Final = 0.002
BACKOFF_LAST_SECONDS: Final = 0.25
GROUP_COMMIT_MAX: Final = 64
WRITES_WAITING_MAX: Final = 4096
SQLITE_BUSY_TIMEOUT_MS: Final = 5_000
CONNECT_TIMEOUT_SECONDS: Final = 5

# PostgreSQL: serialization_failure, deadlock_detected, lock_not_available.
_RETRIED_SQLSTATES: Final = frozenset({"40001", "40P01", "55P03"})


_SECONDS: Final = telemetry.histogram(
    "fivedraw_database_seconds", "Seconds from asking for a transaction to its durable end, by kind.", ("kind",)
)
_FAULTS: Final = telemetry.counter(
    "fivedraw_database_faults_total", "Transactions that the database did not carry out, by kind.", ("kind",)
)


class DatabaseBusyError(RuntimeError):
    """The database was busy through all attempts, or too many writes are waiting. Nothing was written."""


@dataclass(slots=True)
class _Write:
    """One function waiting for the writing thread, and where its outcome goes."""

    run: Callable[[Connection], Any]
    outcome: Future[Any] = field(default_factory=Future)


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
        self._writer: _WriterThread | None = None
        if self.is_sqlite:
            in_memory = parsed.database in (None, "", ":memory:")
            single = inline or in_memory
            self._write_engine = _sqlite_engine(url, pool_size=1, read_only=False, shared=single)
            self._read_engine = (
                self._write_engine if single else _sqlite_engine(url, pool_size=pool_size, read_only=True, shared=False)
            )
        else:
            if parsed.drivername == "postgresql":
                parsed = parsed.set(drivername="postgresql+psycopg")
            engine = create_engine(
                parsed,
                pool_size=pool_size,
                max_overflow=0,
                pool_pre_ping=True,
                connect_args={"connect_timeout": CONNECT_TIMEOUT_SECONDS},
            )
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
                self._writer = _WriterThread(self._write_engine)
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
                if not _is_conflict(error):
                    raise
                if attempt == ATTEMPTS_MAX:
                    raise DatabaseBusyError(f"gave up after {ATTEMPTS_MAX} attempts") from error
                _back_off(attempt)
        raise DatabaseBusyError("no attempt was made")


class _WriterThread:
    """The one thread that writes to an SQLite file, and lets the waiting functions share a commit."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: queue.Queue[_Write | None] = queue.Queue(WRITES_WAITING_MAX)
        self._thread = threading.Thread(target=self._work, name="sql-writer", daemon=True)
        self._thread.start()

    def submit(self, run: Callable[[Connection], T]) -> Future[T]:
        write = _Write(run)
        try:
            self._waiting.put_nowait(write)
        except queue.Full:
            raise DatabaseBusyError(f"{WRITES_WAITING_MAX} writes are waiting") from None
        return write.outcome

    def stop(self) -> None:
        self._waiting.put(None)
        self._thread.join()

    def _work(self) -> None:
        while True:
            first = self._waiting.get()
            if first is None:
                return
            group = [first]
            stopping = False
            while len(group) < GROUP_COMMIT_MAX and not stopping:
                try:
                    write = self._waiting.get_nowait()
                except queue.Empty:
                    break
                if write is None:
                    stopping = True
                else:
                    group.append(write)
            self._commit(group)
            if stopping:
                return

    def _commit(self, group: list[_Write]) -> None:
        # A caller that was cancelled while waiting withdraws its write here, before anything ran.
        group = [write for write in group if write.outcome.set_running_or_notify_cancel()]
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                outcomes = self._run(group)
            except DBAPIError as error:
                if _is_conflict(error) and attempt < ATTEMPTS_MAX:
                    _back_off(attempt)
                    continue
                _fail(group, DatabaseBusyError(str(error)) if _is_conflict(error) else error)
                return
            except BaseException as error:  # noqa: BLE001 - every waiting caller raises it
                # Nothing of the group was committed; whoever waits must hear of it, or waits for ever.
                _fail(group, error)
                return
            for write, (result, fault) in zip(group, outcomes, strict=True):
                if fault is None:
                    write.outcome.set_result(result)
                else:
                    write.outcome.set_exception(fault)
            return

    def _run(self, group: list[_Write]) -> list[tuple[Any, BaseException | None]]:
        outcomes: list[tuple[Any, BaseException | None]] = []
        with self._engine.begin() as conn:
            for write in group:
                savepoint = conn.begin_nested()
                try:
                    result = write.run(conn)
                except BaseException as error:
                    if isinstance(error, DBAPIError) and _is_conflict(error):
                        raise
                    savepoint.rollback()
                    outcomes.append((None, error))
                else:
                    savepoint.commit()
                    outcomes.append((result, None))
        return outcomes


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


def _fail(group: list[_Write], error: BaseException) -> None:
    for write in group:
        write.outcome.set_exception(error)


def _is_conflict(error: DBAPIError) -> bool:
    original = error.orig
    if isinstance(original, sqlite3.OperationalError):
        return original.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    return getattr(original, "sqlstate", None) in _RETRIED_SQLSTATES


def _back_off(attempt: int) -> None:
    ceiling = min(BACKOFF_LAST_SECONDS, BACKOFF_FIRST_SECONDS * 2**attempt)
    time.sleep(random.uniform(ceiling / 2, ceiling))


def _sqlite_engine(url: str, *, pool_size: int, read_only: bool, shared: bool) -> Engine:
    connect_args: dict[str, Any] = {"check_same_thread": False, "timeout": SQLITE_BUSY_TIMEOUT_MS / 1000}
    if shared:
        engine = create_engine(url, connect_args=connect_args, poolclass=StaticPool)
    else:
        engine = create_engine(url, connect_args=connect_args, pool_size=pool_size, max_overflow=0)

    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _: ConnectionPoolEntry) -> None:
        # The driver's own transaction handling would start them late and as DEFERRED; `begin` below takes over.
        connection.isolation_level = None
        connection.execute(f"PRAGMA busy_timeout = {SQLITE_BUSY_TIMEOUT_MS}")
        _enter_wal(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        if read_only:
            connection.execute("PRAGMA query_only = ON")

    @event.listens_for(engine, "begin")
    def begin(conn: Connection) -> None:
        # A write that began as a read could not be retried by waiting: SQLite refuses the upgrade at once.
        conn.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")

    return engine


def _enter_wal(connection: sqlite3.Connection) -> None:
    """Switches the file to write-ahead logging; two first starts may collide here, outside the busy timeout."""
    for attempt in range(1, ATTEMPTS_MAX + 1):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if attempt == ATTEMPTS_MAX:
                raise
            _back_off(attempt)
        else:
            return
