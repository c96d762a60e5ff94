"""Looks at everything that a viewer is told for a card that it may not see."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from fivedraw.table.v1 import event_pb2, table_service_pb2
from google.protobuf.message import Message

CARD: Final = re.compile(r"^[2-9TJQKA][cdhs]$")
LEAKS_KEPT: Final = 100


class CardGuard:
    """Follows one viewer's stream. `leaks` names every card that came too early or to the wrong viewer.

    A viewer may be told its own cards (those dealt, drawn or listed to its own seat) and cards that were shown.
    Whatever else in a message looks like a card, in whichever field, is a leak.
    """

    def __init__(self) -> None:
        self.seat = 0
        self.leaks: list[str] = []
        self._known: set[str] = set()

    def look(self, update: table_service_pb2.WatchTableResponse, seat: int) -> None:
        """Checks one message; `seat` is the viewer's seat after it, 0 for a mere watcher."""
        self.seat = seat or self.seat
        if update.HasField("snapshot"):
            view = update.snapshot
            self.seat = view.your_seat
            self._known = set(view.your_cards) if view.your_seat else set()
            for shown in view.seats:
                self._known.update(shown.shown)
            self._search(view, f"snapshot {view.sequence}")
        for event in update.events:
            self._learn(event)
            self._search(event, f"event {event.sequence} ({event.WhichOneof('body')})")
        if not seat:
            self.seat = 0

    def _learn(self, event: event_pb2.TableEvent) -> None:
        body = event.WhichOneof("body")
        if body == "hand_started":
            self._known = set()
        elif body == "cards_dealt" and self.seat and self.seat in event.cards_dealt.seats:
            if len(event.cards_dealt.your_cards) == 5:
                self._known.update(event.cards_dealt.your_cards)
        elif body == "cards_drawn" and self.seat and event.cards_drawn.seat == self.seat:
            self._known.update(event.cards_drawn.your_cards)
        elif body == "hand_shown":
            self._known.update(event.hand_shown.cards)
        elif body == "turn_started":
            started = event.turn_started
            if started.HasField("your_actions") and started.turn.seat != self.seat:
                self._tell(f"event {event.sequence}: legal actions of seat {started.turn.seat}")

    def _search(self, message: Message, where: str) -> None:
        for text in texts(message):
            if CARD.match(text) and text not in self._known:
                self._tell(f"{where}: {text} told to seat {self.seat}")

    def _tell(self, leak: str) -> None:
        if len(self.leaks) < LEAKS_KEPT:
            self.leaks.append(leak)


def texts(message: Message) -> Iterator[str]:
    """All strings in a message, however deep."""
    for field, value in message.ListFields():
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            yield from _map_texts(value)
        elif field.type == field.TYPE_MESSAGE:
            for part in value if field.is_repeated else (value,):
                yield from texts(part)
        elif field.type == field.TYPE_STRING:
            yield from value if field.is_repeated else (value,)


def _map_texts(entries: Any) -> Iterator[str]:
    for key, value in entries.items():
        for part in (key, value):
            if isinstance(part, str):
                yield part
            elif isinstance(part, Message):
                yield from texts(part)
