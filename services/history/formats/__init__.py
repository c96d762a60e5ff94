"""Formats of a hand: each a pure function from the hand as one viewer sees it to text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fivedraw.history.v1 import history_service_pb2

from services.history.formats import phh, scenario, structured, text, tracker

Hand = history_service_pb2.Hand

WRITERS: Final[dict[int, Callable[[Hand], str]]] = {
    history_service_pb2.HAND_FORMAT_TEXT: text.write,
    history_service_pb2.HAND_FORMAT_TRACKER: tracker.write,
    history_service_pb2.HAND_FORMAT_JSON: structured.write,
    history_service_pb2.HAND_FORMAT_SCENARIO: scenario.write,
    history_service_pb2.HAND_FORMAT_PHH: phh.write,
}

# These hold every card, so they are an auditor's right.
WHOLE_HAND_FORMATS: Final = frozenset({history_service_pb2.HAND_FORMAT_SCENARIO})
