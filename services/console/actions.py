"""What operators do: each with a reason, written into the audit log before and after, some by two people."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from typing import Final

import grpc
from fivedraw.table.v1 import table_service_pb2 as table_pb
from fivedraw.wallet.v1 import wallet_service_pb2 as wallet_pb
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from services.console import metrics
from services.console.audit_log import OUTCOME_CHARACTERS_MAX, Line
from services.console.pages import path_id
from services.console.peers import bearer, refusal
from services.console.sessions import Session
from services.console.web import Console, form_of
from services.runtime.errors import Fault

REASON_CHARACTERS_MAX: Final = 200
OPERATOR: Final = ("operator",)


def reason_of(form: dict[str, str]) -> str:
    """The reason of an action. Raises `Fault` INVALID_REQUEST."""
    reason = form.get("reason", "")
    if not 1 <= len(reason) <= REASON_CHARACTERS_MAX:
        raise Fault("INVALID_REQUEST", f"a reason has 1 to {REASON_CHARACTERS_MAX} characters", field="reason")
    return reason


async def on_table(console: Console, session: Session, request: Request) -> Response:
    """Pauses, resumes or closes a table, or prepares to void its hand."""
    table = path_id(request, "table")
    name = f"tables/{table}"
    form = await form_of(request, session)
    reason = reason_of(form)
    action = form.get("action", "")
    stub, id_ = console.peers.table, uuid.uuid4().hex
    own = {"metadata": bearer(session.token)}
    if action == "void":
        await _prepare_void(console, session, f"{name}/hands/{_number(form)}", reason)
        return RedirectResponse("/approvals", status_code=303)
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "pause": lambda: stub.PauseTable(table_pb.PauseTableRequest(table=name, request_id=id_, reason=reason), **own),
        "resume": lambda: stub.ResumeTable(table_pb.ResumeTableRequest(table=name, request_id=id_), **own),
        "close": lambda: stub.CloseTable(table_pb.CloseTableRequest(table=name, request_id=id_, reason=reason), **own),
    }
    if action not in calls:
        raise Fault("INVALID_REQUEST", "there is no such action", field="action")
    await carried_out(console, Line(session.identity.id, "", action, name, reason, ""), calls[action])
    return RedirectResponse(f"/tables/{table}", status_code=303)


async def on_player(console: Console, session: Session, request: Request) -> Response:
    """Freezes a player, or lifts the freeze."""
    player = path_id(request, "player")
    form = await form_of(request, session)
    reason = reason_of(form)
    states = {"freeze": wallet_pb.PLAYER_STATE_FROZEN, "unfreeze": wallet_pb.PLAYER_STATE_ACTIVE}
    action = form.get("action", "")
    if action not in states:
        raise Fault("INVALID_REQUEST", "there is no such action", field="action")
    name = f"players/{player}"
    asked = wallet_pb.SetPlayerStateRequest(name=name, state=states[action], reason=reason)
    await carried_out(
        console,
        Line(session.identity.id, "", action, name, reason, ""),
        lambda: console.peers.wallet.SetPlayerState(asked, metadata=bearer(session.token)),
    )
    return RedirectResponse(f"/players/{player}", status_code=303)


async def on_house(console: Console, session: Session, request: Request) -> Response:
    """Pauses all tables after their hands, or lets them go on."""
    form = await form_of(request, session)
    reason = reason_of(form)
    resume = form.get("action") == "resume-house"
    asked = table_pb.PauseHouseRequest(request_id=uuid.uuid4().hex, reason=reason, resume=resume)
    await carried_out(
        console,
        Line(session.identity.id, "", "resume-house" if resume else "pause-house", "house", reason, ""),
        lambda: console.peers.table.PauseHouse(asked, metadata=bearer(session.token)),
    )
    return RedirectResponse("/", status_code=303)


async def approve(console: Console, session: Session, request: Request) -> Response:
    """The second person stands behind what the first one prepared, and it is done with both tokens."""
    await form_of(request, session)
    prepared, first_token = await console.approvals.take(path_id(request, "pending"), session.identity.id)
    table, _, hand = prepared.target.rpartition("/hands/")
    asked = table_pb.VoidHandRequest(
        # One id for one approval: whatever is repeated on the way, the hand is voided once.
        table=table,
        request_id=prepared.id,
        hand=int(hand),
        reason=prepared.reason,
    )
    await carried_out(
        console,
        Line(prepared.person, session.identity.id, prepared.action, prepared.target, prepared.reason, ""),
        lambda: console.peers.table.VoidHand(asked, metadata=bearer(first_token, session.token)),
    )
    return RedirectResponse(f"/{table}", status_code=303)


async def carried_out(console: Console, line: Line, call: Callable[[], Awaitable[object]]) -> None:
    """Writes down that it is asked, does it, and writes down how it ended. Raises `Fault` with the refusal.

    A process that ends in between leaves a line `asked` without an outcome, which says just that.
    """
    await console.audit_log.add(_with_outcome(line, "asked"))
    try:
        await call()
    except grpc.aio.AioRpcError as error:
        fault = refusal(error)
        metrics.ACTIONS.labels(line.action, fault.reason).inc()
        await console.audit_log.add(_with_outcome(line, str(fault)[:OUTCOME_CHARACTERS_MAX]))
        raise fault from error
    metrics.ACTIONS.labels(line.action, "done").inc()
    await console.audit_log.add(_with_outcome(line, "done"))


async def _prepare_void(console: Console, session: Session, hand: str, reason: str) -> None:
    await console.approvals.prepare(session.identity.id, session.token, "void", hand, reason)
    line = Line(session.identity.id, "", "void", hand, reason, "prepared: waits for a second operator")
    await console.audit_log.add(line)


def _with_outcome(line: Line, outcome: str) -> Line:
    return Line(line.person, line.second, line.action, line.target, line.reason, outcome)


def _number(form: dict[str, str]) -> int:
    digits = form.get("hand", "")
    if not digits.isascii() or not digits.isdecimal() or len(digits) > 15 or int(digits) < 1:
        raise Fault("INVALID_REQUEST", "a hand has a number", field="hand")
    return int(digits)
