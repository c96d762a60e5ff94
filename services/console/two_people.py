"""What takes two people: one prepares it, another approves it, and the service that acts sees both of their tokens."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Final

from fivedraw.table.v1 import table_service_pb2 as table_pb
from fivedraw.wallet.v1 import wallet_service_pb2 as wallet_pb
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from services.console import words
from services.console.approvals import Prepared
from services.console.audit_log import Line
from services.console.deeds import carried_out
from services.console.pages import path_id
from services.console.peers import bearer
from services.console.sessions import Session
from services.console.web import Console, form_of, shown
from services.runtime.errors import Fault

VOID: Final = "void"
ADJUST: Final = "adjust"

# Who may stand behind what; the services hold to the same (services/runtime/access.py).
SECOND_ROLES: Final[dict[str, tuple[str, ...]]] = {VOID: ("operator",), ADJUST: ("operator", "finance")}

_HAND: Final = re.compile(r"[1-9][0-9]{0,14}")
_AMOUNT: Final = re.compile(r"([+-]?)([0-9]{1,15})(?:\.([0-9]{2}))?")
_CURRENCY: Final = re.compile(r"[A-Z]{3,8}")
# What the target of a correction says beside the player: the currency, and the amount in minor units.
_CASH: Final = re.compile(r"(players/[^/]+)/cash/([A-Z]{3,8})/([+-][0-9]+)")


async def prepare_void(console: Console, session: Session, table: str, form: dict[str, str], reason: str) -> None:
    """Prepares to void a hand. Raises `Fault` INVALID_REQUEST, QUEUE_FULL."""
    hand = form.get("hand", "")
    if not _HAND.fullmatch(hand):
        raise Fault("INVALID_REQUEST", "a hand has a number", field="hand")
    await _prepare(console, session, VOID, f"{table}/hands/{hand}", reason)


async def prepare_adjust(console: Console, session: Session, player: str, form: dict[str, str], reason: str) -> None:
    """Prepares to correct a player's cash. Raises `Fault` INVALID_REQUEST, QUEUE_FULL."""
    amount = _AMOUNT.fullmatch(form.get("amount", ""))
    if amount is None or not (minor := int(amount[2]) * 100 + int(amount[3] or 0)):
        raise Fault("INVALID_REQUEST", "an amount is like 12.50 to give, or -12.50 to take", field="amount")
    currency = form.get("currency", "")
    if not _CURRENCY.fullmatch(currency):
        raise Fault("INVALID_REQUEST", "a currency has 3 to 8 capital letters", field="currency")
    target = f"{player}/cash/{currency}/{amount[1] or '+'}{minor}"
    await _prepare(console, session, ADJUST, target, reason)


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


async def approve(console: Console, session: Session, request: Request) -> Response:
    """The second person stands behind what the first one prepared, and it is done with both tokens."""
    await form_of(request, session)
    pending = path_id(request, "pending")
    waiting = {each.id: each for each in await console.approvals.waiting()}
    # Before it is taken off the list: who may not approve it leaves it there for somebody who may.
    if pending in waiting and not session.may(*SECOND_ROLES[waiting[pending].action]):
        raise Fault("PERMISSION_DENIED", f"this is for {' or '.join(SECOND_ROLES[waiting[pending].action])}")
    prepared, first_token = await console.approvals.take(pending, session.identity.id)
    metadata = bearer(first_token, session.token)
    call, way_back = (
        _void(console, prepared, metadata) if prepared.action == VOID else _adjust(console, prepared, metadata)
    )
    line = Line(prepared.person, session.identity.id, prepared.action, prepared.target, prepared.reason, "")
    await carried_out(console, line, call)
    return RedirectResponse(way_back, status_code=303)


def told(prepared: Prepared) -> str:
    """What a prepared action would do, in words for who approves it."""
    cash = _CASH.fullmatch(prepared.target)
    if cash is None:
        return f"{prepared.action} {prepared.target}"
    amount = int(cash[3])
    return f"{'give' if amount > 0 else 'take'} {words.money(abs(amount))} {cash[2]}: cash of {cash[1]}"


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
    await console.approvals.prepare(session.identity.id, session.token, action, target, reason)
    line = Line(session.identity.id, "", action, target, reason, "prepared: waits for a second person")
    await console.audit_log.add(line)
