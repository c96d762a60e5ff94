"""Live pages: server-sent events with pieces of a page to put in place of the old ones. Nothing is kept for a slow
browser: each round sends how things are then.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from typing import Any, Final

import grpc
from fivedraw.deck.v1 import deck_service_pb2 as deck_pb
from fivedraw.table.v1 import table_service_pb2 as table_pb
from fivedraw.wallet.v1 import wallet_service_pb2 as wallet_pb
from starlette.requests import Request
from starlette.responses import StreamingResponse

from services.console import metrics, words
from services.console.pages import asked_for, is_found, path_id
from services.console.peers import bearer, refusal
from services.console.sessions import Session
from services.console.stillness import Still
from services.console.web import SEE_CARDS, Console
from services.runtime.errors import Fault

ROUND_SECONDS: Final = 1.0
FIGURES_EVERY_ROUNDS: Final = 3
KNOWN_SECONDS: Final = 10.0
# A live page of a session that was ended elsewhere goes on for so long at most.
SIGNED_OUT_SECONDS: Final = 5.0
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
            looked_at = console.clock.monotonic()
            async for piece in pieces:
                if console.clock.monotonic() - looked_at >= SIGNED_OUT_SECONDS:
                    looked_at = console.clock.monotonic()
                    if not await console.sessions.is_open(session):
                        yield 'data: {"end": "you have signed out"}\n\n'
                        return
                yield f"data: {json.dumps(piece)}\n\n"
    except TimeoutError:
        yield 'data: {"end": "your token has ended: sign in again"}\n\n'
    except grpc.aio.AioRpcError as error:
        yield f"data: {json.dumps({'lost': refusal(error).message})}\n\n"
    finally:
        _open -= 1
        metrics.STREAMS.set(_open)


async def overview(console: Console, session: Session, request: Request) -> StreamingResponse:
    """The tables that changed, once a second, and the figures of the house; for `rows=only` the tables alone, of which
    a search (`q`) may find some.
    """
    asked = asked_for(request)
    with_figures = request.query_params.get("rows") != "only"
    return answer(console, _house(console, session, asked=asked, with_figures=with_figures), session)


async def _house(
    console: Console, session: Session, *, asked: str = "", with_figures: bool = True
) -> AsyncIterator[dict[str, Any]]:
    lobby = Rows(console, asked)
    known = asyncio.Event()
    own = bearer(session.token)

    async def follow() -> None:
        async for message in console.peers.table.WatchLobby(table_pb.WatchLobbyRequest(), metadata=own):
            lobby.take(message.tables)
            if message.complete:
                known.set()

    async def look() -> None:
        while True:
            await console.stillness.look(console.peers.table, session.token)
            await console.clock.sleep(ROUND_SECONDS)

    following = asyncio.create_task(follow(), name="lobby of a live page")
    looking = asyncio.create_task(look(), name="looks at still tables")
    try:
        # A figure of half the tables would be a false one.
        async for piece in _until(known, following):
            yield piece
        number = 0
        while not following.done() and not looking.done():
            piece = lobby.changes()
            if with_figures and number % FIGURES_EVERY_ROUNDS == 0:
                piece |= {"parts": {"figures": await _figures(console, session, lobby)}}
                piece["points"] = lobby.points()
            elif not with_figures:
                count = console.templates.env.get_template("count.html")
                piece |= {"parts": {"count": count.render(tables=lobby.found())}}
            yield piece
            number += 1
            await asyncio.wait({following, looking}, timeout=ROUND_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        for task in (following, looking):
            if task.done():
                task.result()
    finally:
        following.cancel()
        looking.cancel()
        await asyncio.gather(following, looking, return_exceptions=True)


async def _until(known: asyncio.Event, following: asyncio.Task[None]) -> AsyncIterator[dict[str, Any]]:
    """Waits for all tables to be told; now and then it says that it still does."""
    while not known.is_set() and not following.done():
        waiting = asyncio.create_task(known.wait())
        await asyncio.wait({following, waiting}, timeout=KNOWN_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if not known.is_set() and not following.done():
            yield {"lost": "the tables are not all told yet"}


class Rows:
    """The rows of one live page: what the lobby told of the tables that a search finds, and what the page was sent."""

    def __init__(self, console: Console, asked: str) -> None:
        self._console = console
        self._asked = asked
        self._template = console.templates.env.get_template("row.html")
        self._tables: dict[str, Any] = {}
        self._changed: set[str] = set()
        self._sent: dict[str, tuple[str, bool]] = {}
        self._first: list[str] | None = None

    def take(self, tables: Iterable[Any]) -> None:
        """Takes rows of the lobby in."""
        tables = list(tables)
        self._console.stillness.told(tables)
        for table in tables:
            self._changed.add(table.name)
            if words.table_state(table.state) == "closed" or not is_found(table, self._asked):
                self._tables.pop(table.name, None)
            else:
                self._tables[table.name] = table

    def found(self) -> list[tuple[Any, Still]]:
        """All tables, those that stand still first."""
        return self._console.stillness.ordered(self._tables.values())

    def changes(self) -> dict[str, Any]:
        """What the page is to change: rows (an empty one goes), and which of them come first, where that changed."""
        found = self.found()
        rows: dict[str, str] = {}
        for table, still in found:
            if table.name in self._changed or self._sent.get(table.name) != still.shown:
                rows[words.id_of(table.name)] = self._template.render(table=table, words=words, still=still)
                self._sent[table.name] = still.shown
        for name in self._changed - self._tables.keys():
            if self._sent.pop(name, None) is not None:
                rows[words.id_of(name)] = ""
        self._changed.clear()
        piece: dict[str, Any] = {"rows": rows}
        first = [words.id_of(table.name) for table, still in found if still.is_stuck]
        if first != self._first:
            piece["first"] = self._first = first
        return piece

    def points(self) -> dict[str, float]:
        """What the charts show."""
        return {
            "seated": sum(table.seats_taken for table in self._tables.values()),
            "hands": sum(table.hands_per_hour for table in self._tables.values()),
        }

    def states(self) -> Counter[str]:
        """How many tables are in which state."""
        return Counter(words.table_state(table.state) for table in self._tables.values())


async def _figures(console: Console, session: Session, lobby: Rows) -> str:
    own = {"metadata": bearer(session.token)}
    sees_cards = session.may(*SEE_CARDS)
    summary = health = None
    # A figure that its service does not tell now is said not to be told.
    with contextlib.suppress(grpc.aio.AioRpcError):
        summary = await console.peers.wallet.GetLedgerSummary(wallet_pb.GetLedgerSummaryRequest(), **own)
    if sees_cards:
        with contextlib.suppress(grpc.aio.AioRpcError):
            health = await console.peers.deck.GetRngHealth(deck_pb.GetRngHealthRequest(), **own)
    return console.templates.env.get_template("figures.html").render(
        summary=summary,
        health=health,
        sees_cards=sees_cards,
        states=lobby.states(),
        points=lobby.points(),
        stuck=sum(still.is_stuck for _, still in lobby.found()),
    )


async def table(console: Console, session: Session, request: Request) -> StreamingResponse:
    """One table, drawn again after each commit (five times a second at most), and its events."""
    name = f"tables/{path_id(request, 'table')}"
    return answer(console, _table(console, session, name), session)


async def _table(console: Console, session: Session, name: str) -> AsyncIterator[dict[str, Any]]:
    own = bearer(session.token)
    template = console.templates.env.get_template("drawn.html")
    currency = ""
    lines: list[str] = []
    moved = asyncio.Event()
    moved.set()

    async def follow() -> None:
        nonlocal currency
        async for message in console.peers.table.WatchTable(table_pb.WatchTableRequest(table=name), metadata=own):
            # The first message is a snapshot.
            currency = message.snapshot.table.currency or currency
            told = (words.line(event, currency) for event in message.events)
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
                "playing": drawn.playing,
            }
            await asyncio.wait({following}, timeout=TABLE_ROUND_SECONDS)
        following.result()
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
