"""Which table and hand a piece of work is about: told to logs and traces, and read from the request at work."""

from __future__ import annotations

import re
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

from google.protobuf.message import Message

_NAME: Final = re.compile(r"tables/([a-z0-9_-]{1,64})(?:/hands/([0-9]{1,15}))?")

# The request itself, since most calls log nothing: what it is about is read only when somebody asks.
_request: ContextVar[Message | None] = ContextVar("request_at_work", default=None)


class Subject(NamedTuple):
    """A table (`tables/{table}`, or empty) and a hand's number (or 0)."""

    table: str = ""
    hand: int = 0

    @classmethod
    def of(cls, request: Any) -> Subject:
        """What a request is about, as far as its own fields name it in the form that names have."""
        if not isinstance(request, Message):
            return cls()
        about = getattr(request, "key", None)
        about = about if isinstance(about, Message) else request
        for field in ("table", "name"):
            found = _NAME.fullmatch(str(getattr(about, field, "")))
            if found:
                hand = getattr(about, "hand", 0) or int(found[2] or 0)
                return cls(f"tables/{found[1]}", hand if isinstance(hand, int) else 0)
        return cls()

    def attributes(self) -> dict[str, str | int]:
        """As a span or a log line carries it; what is not known is left out."""
        told: dict[str, str | int] = {}
        if self.table:
            told["table"] = self.table
        if self.hand:
            told["hand"] = self.hand
        return told


def at_work_on(request: Any) -> None:
    """Says which request this task is at work on; tasks that it starts are at work on it too."""
    if isinstance(request, Message):
        _request.set(request)


def present() -> Subject:
    """What the present task is about."""
    return Subject.of(_request.get())
