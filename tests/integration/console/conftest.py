"""The table's house in process, with a console before it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx
import pytest
import pytest_asyncio

from services.console.app import make_app
from services.console.approvals import Approvals
from services.console.audit_log import AuditLog
from services.console.open_sessions import OpenSessions
from services.console.peers import Peers
from services.console.sessions import Sessions
from services.console.stillness import Stillness
from services.console.web import Console, make_templates
from services.runtime.auth import Authenticator
from services.runtime.clock import SystemClock
from services.runtime.database import Database
from services.runtime.sealing import Sealer
from tests.integration.table.conftest import house, migrated_folder, open_house, sqlite_urls, wires

__all__ = ["house", "migrated_folder", "open_house", "sqlite_urls", "wires"]


class Visitor(httpx.AsyncClient):
    """A browser of one person: its cookie, and the CSRF word of the page that it saw last. Keeps every byte it got."""

    def __init__(self, app) -> None:
        super().__init__(transport=httpx.ASGITransport(app=app), base_url="http://console")
        self.csrf = ""
        self.seen: list[str] = []

    async def see(self, path: str) -> httpx.Response:
        answer = await self.get(path, follow_redirects=True)
        self.seen.append(answer.text)
        found = re.search(r'name="csrf" value="([^"]+)"', answer.text)
        self.csrf = found[1] if found else ""
        return answer

    async def send_form(self, path: str, **fields: str) -> httpx.Response:
        answer = await self.post(path, data={"csrf": self.csrf, **fields})
        self.seen.append(answer.text)
        return answer


@pytest_asyncio.fixture
async def console(house, make_settings, tmp_path) -> AsyncIterator[Console]:
    clock = SystemClock()
    settings = make_settings(
        table_address=f"127.0.0.1:{house.processes[0].server.port}",
        wallet_address=f"127.0.0.1:{house.wallet_server.port}",
        deck_address=f"127.0.0.1:{house.deck_server.port}",
        history_address=f"127.0.0.1:{house.history_server.port}",
    )
    database = Database(f"sqlite:///{tmp_path / 'console.sqlite'}")
    await database.migrate("console")
    sealer = Sealer([("k", bytes(32))])
    peers = Peers(settings)
    yield Console(
        Sessions(Authenticator(settings, clock), sealer, OpenSessions(database, clock), secure=False),
        peers,
        AuditLog(database, clock),
        Approvals(database, sealer, clock, 60),
        clock,
        make_templates(),
        8,
        Stillness(clock),
    )
    await peers.close()
    await database.close()


@pytest.fixture
def visit(console, token) -> Callable[..., Awaitable[Visitor]]:
    """`await visit("olga", "operator")`: somebody who has signed in."""

    async def enter(name: str, *roles: str, **claims) -> Visitor:
        visitor = Visitor(make_app(console))
        answer = await visitor.post("/sign-in", data={"token": token(name, *roles, **claims)})
        assert answer.status_code == 303, answer.text
        return visitor

    return enter
