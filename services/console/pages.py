"""The pages that show: overview, lobby, table, player, ledger, cards, processes, audit log."""

from __future__ import annotations

import asyncio
import contextlib
import re
from typing import Any, Final

from fivedraw.deck.v1 import deck_service_pb2 as deck_pb
from fivedraw.history.v1 import history_service_pb2 as history_pb
from fivedraw.table.v1 import table_service_pb2 as table_pb
from fivedraw.wallet.v1 import wallet_service_pb2 as wallet_pb
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from services.console import words
from services.console.peers import bearer
from services.console.sessions import Session
from services.console.web import Console, form_of, refused, shown
from services.runtime import money
from services.runtime.errors import Fault

LOBBY_PAGE: Final = 200
LOBBY_PAGES_MAX: Final = 25
HANDS_PAGE: Final = 25
# What a page looks at before it is shown: a live page, once it runs, sees to the rest.
LOOK_ROUNDS_MAX: Final = 10
LOOK_SECONDS: Final = 2.0

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,62}")


def path_id(request: Request, name: str) -> str:
    """An id in the path. Raises `Fault` TABLE_NOT_FOUND for what can be no id."""
    value = str(request.path_params[name])
    if not _ID.fullmatch(value):
        raise Fault("TABLE_NOT_FOUND", "there is nothing of that name")
    return value


async def sign_in(console: Console, request: Request) -> Response:
    """The form to sign in with a token, and what it leads to."""
    if request.method == "GET":
        return shown(console, None, request, "sign_in.html", fault=None)
    try:
        form = await form_of(request, None)
        session = await console.sessions.begin(form.get("token", ""))
    except Fault as fault:
        return shown(console, None, request, "sign_in.html", fault=fault, status=401)
    response = RedirectResponse("/", status_code=303)
    console.sessions.keep(session, response)
    return response


async def sign_out(console: Console, session: Session, request: Request) -> Response:
    """Ends the session, for this browser and for whoever has a copy of its cookie."""
    await form_of(request, session)
    response = RedirectResponse("/sign-in", status_code=303)
    await console.sessions.end(session, response)
    return response


async def all_tables(console: Console, session: Session) -> list[Any]:
    """All tables that are not closed; what the console knows of their standing still is brought up to date.

    A browser may show a page without its live part, and then sees what stands still all the same.
    """
    tables: list[Any] = []
    token = ""
    for _ in range(LOBBY_PAGES_MAX):
        request = table_pb.ListTablesRequest(page_size=LOBBY_PAGE, page_token=token)
        page = await console.peers.table.ListTables(request, metadata=bearer(session.token))
        tables += page.tables
        token = page.next_page_token
        if not token:
            break
    console.stillness.told(tables)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LOOK_SECONDS):
            for _ in range(LOOK_ROUNDS_MAX):
                await console.stillness.look(console.peers.table, session.token)
    return tables


async def overview(console: Console, session: Session, request: Request) -> Response:
    """Is the house well?"""
    tables = console.stillness.ordered(await all_tables(console, session))
    return shown(console, session, request, "overview.html", tables=tables, words=words)


async def lobby(console: Console, session: Session, request: Request) -> Response:
    """All tables, with a search by name, rulebook or state."""
    asked = asked_for(request)
    tables = await all_tables(console, session)
    found = console.stillness.ordered(each for each in tables if is_found(each, asked))
    return shown(console, session, request, "lobby.html", tables=found, asked=asked, words=words)


def asked_for(request: Request) -> str:
    """What is searched for in the list of tables; empty finds all."""
    return request.query_params.get("q", "").strip().lower()[:60]


def is_found(table: Any, asked: str) -> bool:
    """Whether a search finds this table."""
    state = words.table_state(table.state)
    return asked in f"{table.name} {table.display_name} {table.rulebook} {state} {table.currency}".lower()


async def table(console: Console, session: Session, request: Request) -> Response:
    """One table, drawn."""
    name = f"tables/{path_id(request, 'table')}"
    answer = await console.peers.table.GetTable(table_pb.GetTableRequest(name=name), metadata=bearer(session.token))
    hands = await _hands(console, session, table=name)
    return shown(console, session, request, "table.html", picture=words.picture(answer.view), hands=hands)


async def player(console: Console, session: Session, request: Request) -> Response:
    """One player: profile, accounts, statement, hands."""
    name = f"players/{path_id(request, 'player')}"
    with_token = {"metadata": bearer(session.token)}
    wallet = console.peers.wallet
    profile = await wallet.GetPlayer(wallet_pb.GetPlayerRequest(name=name), **with_token)
    balances = await wallet.GetBalances(wallet_pb.GetBalancesRequest(player=name), **with_token)
    entries = await wallet.ListEntries(wallet_pb.ListEntriesRequest(player=name, page_size=50), **with_token)
    currency = balances.cash[0].currency if balances.cash else ""
    places = money.decimals(currency)
    return shown(
        console,
        session,
        request,
        "player.html",
        player=profile.player,
        is_frozen=profile.player.state == wallet_pb.PLAYER_STATE_FROZEN,
        balances=balances,
        currency=currency,
        example=money.number(12 * 10**places + 10**places // 2, currency) if currency else "12",
        entries=entries.entries,
        code_of=lambda code: wallet_pb.TransferCode.Name(code).removeprefix("TRANSFER_CODE_").lower(),
        hands=await _hands(console, session, player=name),
    )


async def _hands(console: Console, session: Session, *, table: str = "", player: str = "") -> list[Any]:
    if not session.may("operator", "auditor"):
        return []
    request = history_pb.ListHandsRequest(page_size=HANDS_PAGE, table=table, player=player)
    return list((await console.peers.history.ListHands(request, metadata=bearer(session.token))).hands)


async def find(console: Console, session: Session, request: Request) -> Response:
    """Goes to the player or table of that name."""
    player = request.query_params.get("player", "").strip()
    if _ID.fullmatch(player):
        return RedirectResponse(f"/players/{player}", status_code=303)
    raise Fault("PLAYER_NOT_FOUND", "there is no player of that name")


async def ledger(console: Console, session: Session, request: Request) -> Response:
    """The ledger's totals."""
    summary = await console.peers.wallet.GetLedgerSummary(
        wallet_pb.GetLedgerSummaryRequest(), metadata=bearer(session.token)
    )
    return shown(console, session, request, "ledger.html", summary=summary, kind_of=kind_of, report=None)


async def audit_ledger(console: Console, session: Session, request: Request) -> Response:
    """Audits the whole ledger and shows what was found."""
    await form_of(request, session)
    with_token = {"metadata": bearer(session.token)}
    report = await console.peers.wallet.AuditLedger(wallet_pb.AuditLedgerRequest(), **with_token, timeout=60)
    summary = await console.peers.wallet.GetLedgerSummary(wallet_pb.GetLedgerSummaryRequest(), **with_token)
    return shown(console, session, request, "ledger.html", summary=summary, kind_of=kind_of, report=report)


def kind_of(kind: int) -> str:
    """A kind of account in a word."""
    return wallet_pb.AccountKind.Name(kind).removeprefix("ACCOUNT_KIND_").lower()  # type: ignore[arg-type]


async def cards(console: Console, session: Session, request: Request) -> Response:
    """The health of the deck's randomness; never a card."""
    health = await console.peers.deck.GetRngHealth(deck_pb.GetRngHealthRequest(), metadata=bearer(session.token))
    return shown(console, session, request, "cards.html", health=health)


async def audit_log(console: Console, session: Session, request: Request) -> Response:
    """What operators did, whether the log is whole, and what waits for a second person."""
    before = request.query_params.get("before", "")
    lines = await console.audit_log.newest(int(before) if before.isdecimal() and len(before) < 18 else 0)
    verdict = await console.audit_log.verify()
    return shown(console, session, request, "audit_log.html", lines=lines, verdict=verdict, now=console.clock.now_ms)


async def processes(console: Console, session: Session, request: Request) -> Response:
    """The processes of the table service."""
    answer = await console.peers.replicas.ListReplicas(table_pb.ListReplicasRequest(), metadata=bearer(session.token))
    return shown(console, session, request, "processes.html", replicas=answer.replicas)


def not_found(console: Console) -> Any:
    """The answer to a path that there is not."""

    async def answer(request: Request, _: Exception) -> Response:
        session = await console.sessions.of(request)
        return refused(console, session, request, Fault("TABLE_NOT_FOUND", "there is no such page"))

    return answer
