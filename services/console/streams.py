"""Live pages: server-sent events with pieces of a page to put in place of the old ones. Nothing is kept for a slow
browser: each round sends how things are then.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any, Final

import grpc
from fivedraw.deck.v1 import deck_service_pb2 as deck_pb
from fivedraw.table.v1 import table_service_pb2 as table_pb
from fivedraw.wallet.v1 import wallet_service_pb2 as wallet_pb
from starlette.requests import Request
from starlette.responses import StreamingResponse

from services.console import metrics, words
from services.console.pages import path_id
from services.console.peers import bearer, refusal
from services.console.sessions import Session
from services.console.web import Console
from services.runtime.errors import Fault

ROUND_SECONDS: Final = 1.0
FIGURES_EVERY_ROUNDS: Final = 3
TABLE_ROUND_SECONDS: Final = 0.2
LINES_MAX: Final = 200

_open = 0


def answer(console: Console, pieces: AsyncIterator[dict[str, Any]], session: Session) -> StreamingResponse:
    """A stream of pieces, until the token ends. Raises `Fault` TOO_MANY_STREAMS."""
    if _open >= console.streams_max:
        raise Fault("TOO_MANY_STREAMS", f"{_open} live pages are open")
    return StreamingResponse(_sent(console, pieces, session), media_type="text/event-stream")


async def _sent(console: Console, pieces: AsyncIterator[dict[str, Any]], session: Session) -> AsyncIterator[str]:
    global _open  # noqa: PLW0603 - one number for the process
    _open += 1
    metrics.STREAMS.set(_open)
    try:
        async with asyncio.timeout(session.identity.seconds_left(console.clock)), contextlib.aclosing(pieces):  # type: ignore[type-var]
            async for piece in pieces:
                yield f"data: {json.dumps(piece)}\n\n"
    except TimeoutError:
        yield 'data: {"end": "your token has ended: sign in again"}\n\n'
    except grpc.aio.AioRpcError as error:
        yield f"data: {json.dumps({'lost': refusal(error).message})}\n\n"
    finally:
        _open -= 1
        metrics.STREAMS.set(_open)


async def overview(console: Console, session: Session, request: Request) -> StreamingResponse:
    """The figures of the house, and the tables that changed, once a second."""
    return answer(console, _house(console, session), session)


async def _house(console: Console, session: Session) -> AsyncIterator[dict[str, Any]]:
    changed: dict[str, Any] = {}
    tables: dict[str, Any] = {}
    own = bearer(session.token)

    async def follow() -> None:
        async for message in console.peers.table.WatchLobby(table_pb.WatchLobbyRequest(), metadata=own):
            for table in message.tables:
                changed[table.name] = tables[table.name] = table

    following = asyncio.create_task(follow(), name="lobby of a live page")
    try:
        number = 0
        while not following.done():
            piece: dict[str, Any] = {"rows": _rows(console, changed)}
            changed.clear()
            if number % FIGURES_EVERY_ROUNDS == 0:
                piece |= {"parts": {"figures": await _figures(console, session, tables)}}
                piece["points"] = _points(tables)
            yield piece
            number += 1
            await asyncio.wait({following}, timeout=ROUND_SECONDS)
        following.result()
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


def _rows(console: Console, changed: dict[str, Any]) -> dict[str, str]:
    template = console.templates.env.get_template("row.html")
    rows = {}
    for name, table in changed.items():
        state = words.table_state(table.state)
        rows[words.id_of(name)] = "" if state == "closed" else template.render(table=table, words=words)
    return rows


def _points(tables: dict[str, Any]) -> dict[str, float]:
    return {
        "seated": sum(table.seats_taken for table in tables.values()),
        "hands": sum(table.hands_per_hour for table in tables.values()),
    }


async def _figures(console: Console, session: Session, tables: dict[str, Any]) -> str:
    own = {"metadata": bearer(session.token)}
    summary = health = None
    # A figure that this person may not see, or that its service does not tell now, is left out.
    with contextlib.suppress(grpc.aio.AioRpcError):
        summary = await console.peers.wallet.GetLedgerSummary(wallet_pb.GetLedgerSummaryRequest(), **own)
    with contextlib.suppress(grpc.aio.AioRpcError):
        health = await console.peers.deck.GetRngHealth(deck_pb.GetRngHealthRequest(), **own)
    states: dict[str, int] = {}
    for table in tables.values():
        state = words.table_state(table.state)
        states[state] = states.get(state, 0) + 1
    points = _points(tables)
    return console.templates.env.get_template("figures.html").render(
        summary=summary, health=health, states=states, points=points
    )


async def table(console: Console, session: Session, request: Request) -> StreamingResponse:
    """One table, drawn again after each commit (five times a second at most), and its events."""
    name = f"tables/{path_id(request, 'table')}"
    return answer(console, _table(console, session, name), session)


async def _table(console: Console, session: Session, name: str) -> AsyncIterator[dict[str, Any]]:
    own = bearer(session.token)
    template = console.templates.env.get_template("drawn.html")
    lines: list[str] = []
    moved = asyncio.Event()
    moved.set()

    async def follow() -> None:
        async for message in console.peers.table.WatchTable(table_pb.WatchTableRequest(table=name), metadata=own):
            told = (words.line(event) for event in message.events)
            lines.extend(line for line in told if line)
            del lines[:-LINES_MAX]
            moved.set()

    following = asyncio.create_task(follow(), name=f"{name} of a live page")
    try:
        while not following.done():
            waiting = asyncio.create_task(moved.wait())
            await asyncio.wait({following, waiting}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            moved.clear()
            view = await console.peers.table.GetTable(table_pb.GetTableRequest(name=name), metadata=own)
            drawn = words.picture(view.view)
            told, lines[:] = list(lines), []
            yield {
                "parts": {"drawn": template.render(picture=drawn)},
                "lines": told,
                "deadline": drawn.deadline_ms,
                "now": console.clock.now_ms(),
                "hand": drawn.hand,
            }
            await asyncio.wait({following}, timeout=TABLE_ROUND_SECONDS)
        following.result()
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
