"""What takes two people: one prepares it, another approves it, and the service that acts sees both of their tokens."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Final

import grpc
from fivedraw.table.v1 import table_service_pb2 as table_pb
from fivedraw.wallet.v1 import wallet_service_pb2 as wallet_pb
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from services.console import words
from services.console.approvals import Prepared
from services.console.audit_log import Line
from services.console.deeds import action_of, carried_out
from services.console.pages import path_id
from services.console.peers import bearer
from services.console.sessions import Session
from services.console.web import Console, form_of, refused, shown
from services.runtime import money
from services.runtime.errors import Fault

VOID: Final = "void"
ADJUST: Final = "adjust"

# Who may stand behind what; the services hold to the same (services/runtime/access.py).
SECOND_ROLES: Final[dict[str, tuple[str, ...]]] = {VOID: ("operator",), ADJUST: ("operator", "finance")}

# A refusal for a while: nothing was done, or nobody knows, and the same id does it once at most. Others are for good.
_PASSING: Final = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.INTERNAL,
    }
)
# Not for this person to approve, or not at this moment.
_PASSING_REASONS: Final = frozenset({"SECOND_PERSON_REQUIRED", "HAND_WAITING"})

_HAND: Final = re.compile(r"[1-9][0-9]{0,14}")
_CURRENCY: Final = re.compile(r"[A-Z]{3,8}")
# What the target of a correction says beside the player: the currency, and the amount in minor units.
_CASH: Final = re.compile(r"(players/[^/]+)/cash/([A-Z]{3,8})/([+-][0-9]+)")


async def prepare_void(console: Console, session: Session, table: str, form: dict[str, str], reason: str) -> None:
    """Prepares to void the hand that a table plays. Raises `Fault` INVALID_REQUEST, HAND_NOT_OPEN, QUEUE_FULL."""
    asked = form.get("hand", "")
    if not _HAND.fullmatch(asked):
        raise Fault("INVALID_REQUEST", "a hand has a number", field="hand")
    request = table_pb.GetTableRequest(name=table)
    view = (await console.peers.table.GetTable(request, metadata=bearer(session.token))).view
    if int(asked) != view.hand or not words.in_hand(view):
        now = f"it plays hand {view.hand} now" if words.in_hand(view) else "it plays none now"
        raise Fault("HAND_NOT_OPEN", f"hand {asked} is not being played at {table}: {now}", hand=asked)
    await _prepare(console, session, VOID, f"{table}/hands/{asked}", reason)


async def prepare_adjust(console: Console, session: Session, player: str, form: dict[str, str], reason: str) -> None:
    """Prepares to correct a player's cash. Raises `Fault` INVALID_REQUEST, PLAYER_NOT_FOUND, QUEUE_FULL."""
    currency = form.get("currency", "")
    if not _CURRENCY.fullmatch(currency):
        raise Fault("INVALID_REQUEST", "a currency has 3 to 8 capital letters", field="currency")
    try:
        minor = money.parse(form.get("amount", ""), currency)
    except money.NoAmountError as error:
        raise Fault("INVALID_REQUEST", str(error), field="amount") from None
    if not minor:
        raise Fault("INVALID_REQUEST", "an amount of nothing corrects nothing", field="amount")
    await console.peers.wallet.GetPlayer(wallet_pb.GetPlayerRequest(name=player), metadata=bearer(session.token))
    await _prepare(console, session, ADJUST, f"{player}/cash/{currency}/{minor:+d}", reason)


async def approvals(console: Console, session: Session, request: Request) -> Response:
    """What waits for a second person."""
    return shown(
        console,
        session,
        request,
        "approvals.html",
        waiting=await console.approvals.waiting(),
        now_ms=console.clock.now_ms(),
        told=told,
        second_roles=SECOND_ROLES,
    )


async def decide(console: Console, session: Session, request: Request) -> Response:
    """The second person stands behind what the first one prepared, and it is done with both tokens; or it is withdrawn
    by either of them.
    """
    form = await form_of(request, session)
    action = action_of(form, ("approve", "withdraw"))
    pending = path_id(request, "pending")
    waiting = {each.id: each for each in await console.approvals.waiting()}
    # Before it is taken off the list: who may not decide on it leaves it there for somebody who may.
    if pending in waiting and not session.may(*SECOND_ROLES[waiting[pending].action]):
        raise Fault("PERMISSION_DENIED", f"this is for {' or '.join(SECOND_ROLES[waiting[pending].action])}")
    if action == "withdraw":
        return await _withdraw(console, session, pending)
    return await _approve(console, session, request, pending)


async def _withdraw(console: Console, session: Session, pending: str) -> Response:
    prepared = await console.approvals.withdraw(pending)
    await console.audit_log.add(_line(prepared, session, f"withdrawn by {session.identity.id}: nothing was done"))
    return RedirectResponse("/approvals", status_code=303)


async def _approve(console: Console, session: Session, request: Request, pending: str) -> Response:
    prepared, first_token = await console.approvals.take(pending, session.identity.id)
    metadata = bearer(first_token, session.token)
    call, way_back = (
        _void(console, prepared, metadata) if prepared.action == VOID else _adjust(console, prepared, metadata)
    )
    try:
        await carried_out(console, _line(prepared, session, ""), call, what_comes_of)
    except Fault as fault:
        if _passes(fault):
            await console.approvals.put_back(prepared, first_token)
        return refused(console, session, request, fault, what_now=what_comes_of(fault))
    return RedirectResponse(way_back, status_code=303)


def what_comes_of(fault: Fault) -> str:
    """What a refusal makes of an approval: it waits on, or it is over."""
    if _passes(fault):
        return "It still waits under Approvals and may be approved again; however often, it is done once."
    return "This approval is over and nothing was done. Who still wants it prepares it anew."


def _passes(fault: Fault) -> bool:
    return fault.status in _PASSING or fault.reason in _PASSING_REASONS


def told(prepared: Prepared) -> str:
    """What a prepared action would do, in words for who approves it."""
    cash = _CASH.fullmatch(prepared.target)
    if cash is None:
        return f"{prepared.action} {prepared.target}"
    amount = int(cash[3])
    return f"{'give' if amount > 0 else 'take'} {money.grouped(abs(amount), cash[2])} {cash[2]}: cash of {cash[1]}"


_Call = tuple[Callable[[], Awaitable[object]], str]
_Metadata = tuple[tuple[str, str], ...]


def _void(console: Console, prepared: Prepared, metadata: _Metadata) -> _Call:
    table, _, hand = prepared.target.rpartition("/hands/")
    # One id for one approval: whatever is repeated on the way, it is done once.
    asked = table_pb.VoidHandRequest(table=table, request_id=prepared.id, hand=int(hand), reason=prepared.reason)
    return lambda: console.peers.table.VoidHand(asked, metadata=metadata), f"/{table}"


def _adjust(console: Console, prepared: Prepared, metadata: _Metadata) -> _Call:
    cash = _CASH.fullmatch(prepared.target)
    if cash is None:
        raise Fault("INVALID_REQUEST", f"{prepared.target} is no player's cash", field="target")
    asked = wallet_pb.AdjustBalanceRequest(
        request_id=prepared.id,
        player=cash[1],
        currency=cash[2],
        amount_minor=int(cash[3]),
        reason=prepared.reason,
    )
    return lambda: console.peers.wallet.AdjustBalance(asked, metadata=metadata), f"/{cash[1]}"


async def _prepare(console: Console, session: Session, action: str, target: str, reason: str) -> None:
    # A session's token has an end (sessions.py); without one nothing would wait.
    token_ends_ms = session.identity.expires_at or 0
    person = session.identity.id
    await console.approvals.prepare(person, session.token, action, target, reason, token_ends_ms=token_ends_ms)
    line = Line(person, "", action, target, reason, "prepared: waits for a second person")
    await console.audit_log.add(line)


def _line(prepared: Prepared, session: Session, outcome: str) -> Line:
    second = "" if session.identity.id == prepared.person else session.identity.id
    return Line(prepared.person, second, prepared.action, prepared.target, prepared.reason, outcome)
