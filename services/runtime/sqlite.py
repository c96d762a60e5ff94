"""SQLite as the services use it: write-ahead logging, full syncs, one writing thread, the log folded in beside it."""

from __future__ import annotations

import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Engine, StaticPool, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry

from services.runtime import telemetry
from services.runtime.conflicts import ATTEMPTS_MAX, DatabaseBusyError, back_off, is_conflict

T = TypeVar("T")

GROUP_COMMIT_MAX: Final = 64
WRITES_WAITING_MAX: Final = 4096
BUSY_TIMEOUT_MS: Final = 5_000

# The log is folded into the database this long after a write. From so many bytes on the writer does what is left of
# that itself, since only then can the log begin anew; at the last figure it does all of it, come what may.
FOLDING_SECONDS: Final = 3.0
LOG_BYTES_FOLDED: Final = 128 * 1024 * 1024
LOG_BYTES_MAX: Final = 256 * 1024 * 1024

# Of a new file; one that is there keeps its own. A commit of the ledger changes a row here and there on some hundred
# pages and writes each whole: with SQLite's own 4 KiB that was nearly twice as much to write and to sync.
PAGE_BYTES: Final = 2048

# The writer's pages in memory; SQLite's own 2 MiB do not hold the ends of the indexes that a busy ledger writes to.
CACHE_KIB: Final = 64 * 1024

_FOLD: Final = "PRAGMA wal_checkpoint(PASSIVE)"

_log = telemetry.logger("runtime.sqlite")


@dataclass(slots=True)
class _Write:
    """One function waiting for the writing thread, and where its outcome goes."""

    run: Callable[[Connection], Any]
    outcome: Future[Any] = field(default_factory=Future)


class WriterThread:
    """The one thread that writes to a database, and lets the waiting functions share a commit."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: queue.Queue[_Write | None] = queue.Queue(WRITES_WAITING_MAX)
        self._folder = _Folder(engine.url.database or "") if not isinstance(engine.pool, StaticPool) else None
        self._thread = threading.Thread(target=self._work, name="sql-writer", daemon=True)
        self._thread.start()

    def submit(self, run: Callable[[Connection], T]) -> Future[T]:
        """Takes a function in; raises `DatabaseBusyError` where too many are waiting."""
        write = _Write(run)
        try:
            self._waiting.put_nowait(write)
        except queue.Full:
            raise DatabaseBusyError(f"{WRITES_WAITING_MAX} writes are waiting") from None
        return write.outcome

    def stop(self) -> None:
        """Ends the thread after the work that it holds."""
        self._waiting.put(None)
        self._thread.join()
        if self._folder is not None:
            self._folder.stop()

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
            if self._folder is not None and self._folder.wrote():
                self._fold_the_rest()

    def _commit(self, group: list[_Write]) -> None:
        # A caller that was cancelled while waiting withdraws its write here, before anything ran.
        group = [write for write in group if write.outcome.set_running_or_notify_cancel()]
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                outcomes = self._run(group)
            except DBAPIError as error:
                if is_conflict(error) and attempt < ATTEMPTS_MAX:
                    back_off(attempt)
                    continue
                _fail(group, DatabaseBusyError(str(error)) if is_conflict(error) else error)
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
            if len(group) == 1:
                # Nobody shares its commit, so the transaction does what a savepoint would, for less.
                return [(group[0].run(conn), None)]
            for write in group:
                savepoint = conn.begin_nested()
                try:
                    result = write.run(conn)
                except BaseException as error:
                    if isinstance(error, DBAPIError) and is_conflict(error):
                        raise
                    savepoint.rollback()
                    outcomes.append((None, error))
                else:
                    savepoint.commit()
                    outcomes.append((result, None))
        return outcomes

    def _fold_the_rest(self) -> None:
        with self._engine.connect() as conn:
            raw: sqlite3.Connection = conn.connection.driver_connection  # type: ignore[assignment]
            try:
                raw.execute(_FOLD).fetchone()
            except sqlite3.Error as error:
                _log.warning("the log could not be folded in", error=str(error))


class _Folder:
    """Folds the log into the database on a thread and a connection of its own, so that commits need not wait for it.

    Left to itself SQLite does this within every commit that finds a thousand pages in the log: one in ten then took
    half as long again.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._written = threading.Event()
        self._stopping = threading.Event()
        self._writers_turn = threading.Event()
        self._thread = threading.Thread(target=self._work, name="sql-folder", daemon=True)
        self._thread.start()

    def wrote(self) -> bool:
        """Says that there is something to fold in; returns whether it is the writer's turn to fold what is left."""
        self._written.set()
        if not self._writers_turn.is_set():
            return False
        self._writers_turn.clear()
        return True

    def stop(self) -> None:
        """Ends the thread and closes its connection."""
        self._stopping.set()
        self._written.set()
        self._thread.join()

    def _work(self) -> None:
        connection = sqlite3.connect(self._path, timeout=BUSY_TIMEOUT_MS / 1000, isolation_level=None)
        try:
            connection.execute("PRAGMA synchronous = FULL")
            while self._written.wait() and not self._stopping.wait(FOLDING_SECONDS):
                self._written.clear()
                self._fold(connection)
        finally:
            connection.close()

    def _fold(self, connection: sqlite3.Connection) -> None:
        try:
            # A connection that saw the file before it had a log learns of the log by reading only.
            connection.execute("PRAGMA schema_version").fetchone()
            _, pages, _ = connection.execute(_FOLD).fetchone()
            log_bytes = pages * _page_bytes(connection)
        except sqlite3.Error as error:
            # The writer folds the log in by itself before long.
            _log.warning("the log could not be folded in", error=str(error))
            return
        if log_bytes > LOG_BYTES_FOLDED:
            self._writers_turn.set()


def engine(url: str, *, pool_size: int, read_only: bool, shared: bool) -> Engine:
    """An engine whose connections are set up as the house needs them; `shared` is one connection for all threads."""
    connect_args: dict[str, Any] = {"check_same_thread": False, "timeout": BUSY_TIMEOUT_MS / 1000}
    if shared:
        made = create_engine(url, connect_args=connect_args, poolclass=StaticPool)
    else:
        made = create_engine(url, connect_args=connect_args, pool_size=pool_size, max_overflow=0)

    @event.listens_for(made, "connect")
    def configure(connection: sqlite3.Connection, _: ConnectionPoolEntry) -> None:
        # The driver's own transaction handling would start them late and as DEFERRED; `begin` below takes over.
        connection.isolation_level = None
        connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
        connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        _enter_wal(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        # Where a savepoint keeps the pages as they were: on the disk that was a third of all that was written.
        connection.execute("PRAGMA temp_store = MEMORY")
        if read_only:
            connection.execute("PRAGMA query_only = ON")
        elif not shared:
            connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_BYTES_MAX // _page_bytes(connection)}")
            # A long reader keeps the log from beginning anew; when it does, its file shrinks to this again.
            connection.execute(f"PRAGMA journal_size_limit = {LOG_BYTES_MAX}")
            connection.execute(f"PRAGMA cache_size = {-CACHE_KIB}")

    @event.listens_for(made, "begin")
    def begin(conn: Connection) -> None:
        # A write that began as a read could not be retried by waiting: SQLite refuses the upgrade at once.
        conn.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")

    return made


def _fail(group: list[_Write], error: BaseException) -> None:
    for write in group:
        write.outcome.set_exception(error)


def _page_bytes(connection: sqlite3.Connection) -> int:
    (bytes_of_one,) = connection.execute("PRAGMA page_size").fetchone()
    return int(bytes_of_one)


def _enter_wal(connection: sqlite3.Connection) -> None:
    """Switches the file to write-ahead logging; two first starts may collide here, outside the busy timeout."""
    for attempt in range(1, ATTEMPTS_MAX + 1):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if attempt == ATTEMPTS_MAX:
                raise
            back_off(attempt)
        else:
            return
