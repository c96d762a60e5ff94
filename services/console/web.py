"""What every page shares: signing in, the security headers, forms, and how a refusal is shown."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs

import grpc
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.templating import Jinja2Templates
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.console import metrics, words
from services.console.approvals import Approvals
from services.console.audit_log import AuditLog
from services.console.peers import Peers, refusal
from services.console.sessions import Session, Sessions, check_csrf
from services.console.stillness import Stillness
from services.runtime import money, telemetry
from services.runtime.clock import Clock
from services.runtime.errors import Fault

HERE: Final = Path(__file__).parent
FORM_BYTES_MAX: Final = 16 * 1024
# Who may see what; the services hold to the same (services/runtime/access.py).
SEE_CARDS: Final = ("viewer", "operator", "auditor")
SEE_PROCESSES: Final = ("viewer", "operator", "auditor")
SEE_APPROVALS: Final = ("operator", "finance")
SEE_AUDIT_LOG: Final = ("operator", "finance", "auditor")
# The pages that a person finds in the head of each: address, title, roles (none is all).
NAV: Final[tuple[tuple[str, str, tuple[str, ...]], ...]] = (
    ("/", "House", ()),
    ("/tables", "Tables", ()),
    ("/ledger", "Ledger", ()),
    ("/cards", "Cards", SEE_CARDS),
    ("/processes", "Processes", SEE_PROCESSES),
    ("/approvals", "Approvals", SEE_APPROVALS),
    ("/audit-log", "Audit log", SEE_AUDIT_LOG),
)
STATUS_OF_REASON: Final = {"PERMISSION_DENIED": 403, "SECOND_PERSON_REQUIRED": 403, "UNAUTHENTICATED": 401}
STATUS_OF_CODE: Final = {
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.UNAVAILABLE: 503,
}

HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}

_log = telemetry.logger("console.web")


@dataclass(frozen=True, slots=True)
class Console:
    """What the pages work with."""

    sessions: Sessions
    peers: Peers
    audit_log: AuditLog
    approvals: Approvals
    clock: Clock
    templates: Jinja2Templates
    streams_max: int
    stillness: Stillness


def make_templates() -> Jinja2Templates:
    """The pages' templates; everything that they show is escaped."""
    templates = Jinja2Templates(directory=HERE / "templates")
    templates.env.filters["money"] = money.grouped
    templates.env.filters["id_of"] = words.id_of
    templates.env.filters["short"] = words.short
    return templates


Page = Callable[[Console, Session, Request], Awaitable[Response]]


def signed_in(console: Console, page: Page, *roles: str) -> Callable[[Request], Awaitable[Response]]:
    """A page for people who are signed in (with one of these roles, if given); others are shown the way."""

    async def answer(request: Request) -> Response:
        session = await console.sessions.of(request)
        if session is None:
            return RedirectResponse("/sign-in", status_code=303)
        try:
            if roles and not session.may(*roles):
                raise Fault("PERMISSION_DENIED", f"this is for {' and '.join(roles)}")
            return await page(console, session, request)
        except grpc.aio.AioRpcError as error:
            return refused(console, session, request, refusal(error))
        except Fault as fault:
            return refused(console, session, request, fault)

    return answer


def shown(console: Console, session: Session | None, request: Request, template: str, **facts: Any) -> Response:
    """A page."""
    status = facts.pop("status", 200)
    return console.templates.TemplateResponse(
        request, template, {"session": session, "path": request.url.path, "nav": NAV, **facts}, status_code=status
    )


def refused(
    console: Console, session: Session | None, request: Request, fault: Fault, *, what_now: str = ""
) -> Response:
    """A refusal as a page, which may say what comes of it."""
    status = STATUS_OF_REASON.get(fault.reason) or STATUS_OF_CODE.get(fault.status, 409)
    return shown(console, session, request, "refused.html", fault=fault, what_now=what_now, status=status)


async def form_of(request: Request, session: Session | None) -> dict[str, str]:
    """A form's fields, one value each. Raises `Fault`: INVALID_REQUEST, or PERMISSION_DENIED for a foreign form."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > FORM_BYTES_MAX:
            raise Fault("INVALID_REQUEST", f"a form has at most {FORM_BYTES_MAX} bytes", field="form")
    try:
        fields = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=20)
    except ValueError:
        raise Fault("INVALID_REQUEST", "the form cannot be read", field="form") from None
    form = {name: values[0].strip() for name, values in fields.items()}
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise Fault("PERMISSION_DENIED", "this form comes from another site")
    if session is not None:
        check_csrf(session, form.get("csrf", ""))
    return form


class Guard:
    """Adds the security headers, counts, and answers what nobody expected with a page that says nothing of it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI entry point."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = False

        async def guarded(message: Message) -> None:
            nonlocal began
            if message["type"] == "http.response.start":
                began = True
                metrics.REQUESTS.labels(str(message["status"])).inc()
                message["headers"] = [
                    *((name, value) for name, value in message["headers"] if name.decode() not in HEADERS),
                    *((name.encode(), value.encode()) for name, value in HEADERS.items()),
                ]
            await send(message)

        try:
            await self._app(scope, receive, guarded)
        except Exception as error:
            _log.error("unexpected exception", path=scope["path"], **telemetry.where(error))
            if began:
                raise
            await Response("something went wrong; the log says where", status_code=500)(scope, receive, guarded)
