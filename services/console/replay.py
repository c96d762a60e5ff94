"""A finished hand, drawn step by step as the table was while it was played."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fivedraw.history.v1 import history_service_pb2 as history_pb
from fivedraw.table.v1 import table_service_pb2 as table_pb
from fivedraw_client.mirror import TableMirror
from starlette.requests import Request
from starlette.responses import Response

from services.console import words
from services.console.pages import path_id
from services.console.peers import bearer
from services.console.sessions import Session
from services.console.web import Console, shown

STEPS_MAX: Final = 500
REPLAY_SECONDS: Final = 10


@dataclass(frozen=True, slots=True)
class Step:
    """What one commit told (`at` is its time, or empty before the hand), and the table after it."""

    at: str
    lines: list[str]
    picture: words.TablePicture


async def hand(console: Console, session: Session, request: Request) -> Response:
    """A finished hand, step by step, as the signed-in person may see it; cards are those that everybody saw."""
    name = f"tables/{path_id(request, 'table')}/hands/{path_id(request, 'hand')}"
    asked = history_pb.ReplayHandRequest(name=name)
    steps: list[Step] = []
    mirror = TableMirror()
    replayed = console.peers.history.ReplayHand(asked, metadata=bearer(session.token), timeout=REPLAY_SECONDS)
    async for message in replayed:
        update = table_pb.WatchTableResponse(events=message.events)
        if message.HasField("snapshot"):
            update.snapshot.CopyFrom(message.snapshot)
        mirror.apply(update)
        currency = mirror.view.table.currency
        lines = [line for line in (words.line(event, currency) for event in message.events) if line]
        if message.HasField("snapshot"):
            steps.append(Step("", ["before the hand"], words.picture(mirror.view)))
        elif lines and len(steps) < STEPS_MAX:
            at = message.events[0].commit_time.ToDatetime().strftime("%H:%M:%S")
            steps.append(Step(at, lines, words.picture(mirror.view)))
    return shown(console, session, request, "hand.html", name=name, table=path_id(request, "table"), steps=steps)
