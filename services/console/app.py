"""The console's routes."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from services.console import actions, pages, replay, streams, two_people
from services.console.web import (
    HERE,
    SEE_APPROVALS,
    SEE_AUDIT_LOG,
    SEE_CARDS,
    SEE_PROCESSES,
    Console,
    Guard,
    Page,
    signed_in,
)


def make_app(console: Console) -> ASGIApp:
    """The console as an ASGI application."""

    def route(path: str, page: Page, *roles: str, method: str = "GET") -> Route:
        return Route(path, signed_in(console, page, *roles), methods=[method])

    async def sign_in(request: Request) -> Response:
        return await pages.sign_in(console, request)

    operator = ("operator",)
    app = Starlette(
        routes=[
            Route("/sign-in", sign_in, methods=["GET", "POST"]),
            route("/sign-out", pages.sign_out, method="POST"),
            route("/", pages.overview),
            route("/live", streams.overview),
            route("/tables", pages.lobby),
            route("/tables/{table}", pages.table),
            route("/tables/{table}/live", streams.table),
            route("/tables/{table}/act", actions.on_table, *operator, method="POST"),
            route("/tables/{table}/hands/{hand}", replay.hand, "operator", "auditor"),
            route("/find", pages.find),
            route("/players/{player}", pages.player, "operator", "finance", "auditor"),
            route("/players/{player}/act", actions.on_player, "operator", "finance", method="POST"),
            route("/ledger", pages.ledger),
            route("/ledger/audit", pages.audit_ledger, "finance", "auditor", method="POST"),
            route("/cards", pages.cards, *SEE_CARDS),
            route("/house/act", actions.on_house, *operator, method="POST"),
            route("/processes", pages.processes, *SEE_PROCESSES),
            route("/processes/{replica}/act", actions.on_process, *operator, method="POST"),
            route("/approvals", two_people.approvals, *SEE_APPROVALS),
            route("/approvals/{pending}", two_people.decide, "operator", "finance", method="POST"),
            route("/audit-log", pages.audit_log, *SEE_AUDIT_LOG),
            Mount("/static", StaticFiles(directory=HERE / "static")),
        ],
        exception_handlers={404: pages.not_found(console)},
    )
    return Guard(app)
