"""What all tests may ask for: real stores, identities, settings, and servers in process."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import grpc
import pytest
import pytest_asyncio
from sqlalchemy import URL

from services.runtime.channel import connect
from services.runtime.clock import Clock, SystemClock
from services.runtime.database import Database
from services.runtime.redis import connect as connect_redis
from services.runtime.server import RunningServer, start
from services.runtime.settings import ServiceSettings
from services.runtime.tokens import SigningKey
from tests import servers
from tests.servers import SEALING_KEY, SERVICE_KEY


@pytest.fixture(scope="session")
def worker_number() -> int:
    """0, or the number of this xdist worker."""
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


@pytest.fixture(scope="session")
def redis_server_url(worker_number: int) -> Iterator[str]:
    """This process's Redis; tests take `redis_url`, which begins empty."""
    with servers.redis_server(worker_number) as url:
        yield url


@pytest_asyncio.fixture
async def redis_url(redis_server_url: str) -> str:
    """An empty Redis."""
    client = connect_redis(redis_server_url, pool_size=1)
    await client.flushdb()
    await client.aclose()
    return redis_server_url


@pytest.fixture(scope="session")
def postgres_server_url() -> Iterator[URL]:
    """This process's PostgreSQL; tests take `postgres_url` or `database_url`."""
    with servers.postgres_server() as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server_url: URL) -> Iterator[str]:
    """A fresh PostgreSQL database."""
    with servers.postgres_database(postgres_server_url) as url:
        yield url


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """A fresh SQLite file."""
    return f"sqlite:///{tmp_path / 'test.sqlite'}"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """A fresh database of each kind: what takes this fixture runs twice."""
    name = {"sqlite": "sqlite_url", "postgresql": "postgres_url"}[request.param]
    url: str = request.getfixturevalue(name)
    return url


@pytest_asyncio.fixture
async def database(database_url: str) -> AsyncIterator[Callable[..., Awaitable[Database]]]:
    """`await database("wallet")`: a migrated `Database` of each kind; closed at the end."""
    async with AsyncExitStack() as stack:

        async def open_for(service: str | None = None, **options) -> Database:
            opened = Database(database_url, **options)
            stack.push_async_callback(opened.close)
            if service is not None:
                await opened.migrate(service)
            return opened

        yield open_for


@pytest.fixture(scope="session")
def signing_key() -> SigningKey:
    """The key that signs this session's tokens."""
    return SigningKey.generate()


@pytest.fixture(scope="session")
def jwks_file(signing_key: SigningKey, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The public half of `signing_key`, as services read it."""
    path = tmp_path_factory.mktemp("jwks") / "jwks.json"
    path.write_text(signing_key.jwks())
    return path


@pytest.fixture(scope="session")
def token(signing_key: SigningKey) -> Callable[..., str]:
    """`token("alice", "player", "operator", lifetime_seconds=60)`: a bearer token."""

    def mint(subject: str, *roles: str, clock: Clock | None = None, **claims) -> str:
        return signing_key.mint(subject, roles, now_ms=(clock or SystemClock()).now_ms(), **claims)

    return mint


@pytest.fixture
def make_settings(jwks_file: Path) -> Callable[..., ServiceSettings]:
    """`make_settings(database_url=…)`: the settings of a service of an embedded house."""

    def make(**overrides) -> ServiceSettings:
        given = {
            "jwks": str(jwks_file),
            "service_key": SERVICE_KEY.hex(),
            "sealing_keys": f"test:{SEALING_KEY.hex()}",
            "drain_ms": 1_000,
        }
        return ServiceSettings.load(**(given | overrides))

    return make


@pytest_asyncio.fixture
async def serve() -> AsyncIterator[Callable[..., Awaitable[RunningServer]]]:
    """`await serve(settings, register)`: a server in process behind the house's gate, on a free port.

    `register` adds servicers to the server and returns their full names.
    """
    async with AsyncExitStack() as stack:

        async def run(
            settings: ServiceSettings,
            register: Callable[[grpc.aio.Server], Sequence[str]],
            *,
            name: str = "test",
            clock: Clock | None = None,
            with_metrics: bool = False,
        ) -> RunningServer:
            server = await start(name, settings, register, clock=clock, with_metrics=with_metrics)
            stack.push_async_callback(server.stop)
            return server

        yield run


@pytest_asyncio.fixture
async def channel(make_settings) -> AsyncIterator[Callable[..., grpc.aio.Channel]]:
    """`channel(server, token="…")` or `channel(server, as_service="table")`: a channel to a server in process."""
    async with AsyncExitStack() as stack:

        def open_to(
            server: RunningServer | str, *, token: str | None = None, as_service: str | None = None, **options
        ) -> grpc.aio.Channel:
            target = server if isinstance(server, str) else f"127.0.0.1:{server.port}"
            metadata = [("authorization", f"Bearer {token}")] if token is not None else []
            metadata += options.pop("metadata", ())
            opened = connect(target, make_settings(), as_service=as_service, metadata=metadata, **options)
            stack.push_async_callback(opened.close)
            return opened

        yield open_to
