"""What operators do: each with a reason, written into the audit log before and after, some by two people."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable

from fivedraw.table.v1 import table_service_pb2 as table_pb
from fivedraw.wallet.v1 import wallet_service_pb2 as wallet_pb
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from services.console import two_people
from services.console.audit_log import Line
from services.console.deeds import action_of, carried_out, reason_of
from services.console.pages import path_id
from services.console.peers import bearer
from services.console.sessions import Session
from services.console.web import Console, form_of


async def on_table(console: Console, session: Session, request: Request) -> Response:
    """Pauses, resumes or closes a table, or prepares to void its hand."""
    table = path_id(request, "table")
    name = f"tables/{table}"
    form = await form_of(request, session)
    reason = reason_of(form)
    stub, id_ = console.peers.table, uuid.uuid4().hex
    own = {"metadata": bearer(session.token)}
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "pause": lambda: stub.PauseTable(table_pb.PauseTableRequest(table=name, request_id=id_, reason=reason), **own),
        "resume": lambda: stub.ResumeTable(table_pb.ResumeTableRequest(table=name, request_id=id_), **own),
        "close": lambda: stub.CloseTable(table_pb.CloseTableRequest(table=name, request_id=id_, reason=reason), **own),
    }
    action = action_of(form, {two_people.VOID, *calls})
    if action == two_people.VOID:
        await two_people.prepare_void(console, session, name, form, reason)
        return RedirectResponse("/approvals", status_code=303)
    await carried_out(console, Line(session.identity.id, "", action, name, reason, ""), calls[action])
    return RedirectResponse(f"/tables/{table}", status_code=303)


async def on_player(console: Console, session: Session, request: Request) -> Response:
    """Freezes a player, lifts the freeze, or prepares to correct the player's cash."""
    player = path_id(request, "player")
    form = await form_of(request, session)
    reason = reason_of(form)
    states = {"freeze": wallet_pb.PLAYER_STATE_FROZEN, "unfreeze": wallet_pb.PLAYER_STATE_ACTIVE}
    action = action_of(form, {two_people.ADJUST, *states})
    name = f"players/{player}"
    if action == two_people.ADJUST:
        await two_people.prepare_adjust(console, session, name, form, reason)
        return RedirectResponse("/approvals", status_code=303)
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
    action = action_of(form, ("pause-house", "resume-house"))
    resume = action == "resume-house"
    asked = table_pb.PauseHouseRequest(request_id=uuid.uuid4().hex, reason=reason, resume=resume)
    await carried_out(
        console,
        Line(session.identity.id, "", action, "house", reason, ""),
        lambda: console.peers.table.PauseHouse(asked, metadata=bearer(session.token)),
    )
    return RedirectResponse("/", status_code=303)


async def on_process(console: Console, session: Session, request: Request) -> Response:
    """Tells one process of the table service to end in order."""
    name = f"replicas/{path_id(request, 'replica')}"
    form = await form_of(request, session)
    reason = reason_of(form)
    action = action_of(form, ("drain",))
    asked = table_pb.DrainReplicaRequest(name=name, reason=reason)
    await carried_out(
        console,
        Line(session.identity.id, "", action, name, reason, ""),
        lambda: console.peers.replicas.DrainReplica(asked, metadata=bearer(session.token)),
    )
    # The process may be the one that would have answered for the list of processes.
    return RedirectResponse("/audit-log", status_code=303)
