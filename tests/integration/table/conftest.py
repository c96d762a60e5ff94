"""A whole house in process for the table's tests; its databases are copies of ones migrated once a session."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from services.runtime.database import Database
from tests.integration.table.house import SERVICES, RunningHouse


@pytest.fixture(scope="session")
def migrated_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One migrated SQLite file of each service."""
    folder = tmp_path_factory.mktemp("migrated")
    for name in SERVICES:
        database = Database(f"sqlite:///{folder / name}.sqlite")
        database.migrate_now(name)
        database.close_now()
    return folder


@pytest.fixture
def sqlite_urls(migrated_folder: Path, tmp_path: Path) -> dict[str, str]:
    """A fresh migrated SQLite file for each service of one test."""
    shutil.copytree(migrated_folder, tmp_path / "sql")
    return {name: f"sqlite:///{tmp_path / 'sql' / name}.sqlite" for name in SERVICES}


@pytest.fixture
def wires(make_settings, serve, channel, token) -> dict[str, Any]:
    """How a house serves and is called, by the name of the fixture."""
    return {"make_settings": make_settings, "serve": serve, "channel": channel, "token": token}


@pytest_asyncio.fixture
async def open_house(
    sqlite_urls: dict[str, str], redis_url: str, wires: dict[str, Any]
) -> AsyncIterator[Callable[..., Awaitable[RunningHouse]]]:
    """`await open_house(processes=2)`: a started house, ended with the test."""
    async with AsyncExitStack() as stack:

        async def start(urls: dict[str, str] | None = None, **options) -> RunningHouse:
            house = RunningHouse(stack, urls or sqlite_urls, redis_url, wires)
            await house.start(**options)
            return house

        yield start


@pytest_asyncio.fixture
async def house(open_house) -> RunningHouse:
    """A house with one table process."""
    return await open_house()
