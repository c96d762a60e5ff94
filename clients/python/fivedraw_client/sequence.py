"""The promise of a table's stream, checked: one sequence without gaps within an epoch."""

from __future__ import annotations

from dataclasses import dataclass

from fivedraw.table.v1 import event_pb2, table_pb2, table_service_pb2

from fivedraw_client.errors import StreamViolationError


@dataclass(frozen=True, slots=True)
class Position:
    """The last event that a viewer has."""

    epoch: int
    sequence: int


class SequenceKeeper:
    """Follows one viewer's stream over reconnections and says when it breaks its promise.

    The first message must be a snapshot. After it, every event is the next number of the same epoch; a further
    snapshot may only lead forward, and a new epoch comes only by one.
    """

    def __init__(self) -> None:
        self.position: Position | None = None
        self.events = 0
        self.snapshots = 0

    def accept(self, message: table_service_pb2.WatchTableResponse) -> None:
        """Takes one message in. Raises `StreamViolationError`, and then keeps the last good position."""
        if message.HasField("snapshot"):
            self._accept_snapshot(message.snapshot)
        for event in message.events:
            self._accept_event(event)
        if message.heartbeat_sequence:
            self._accept_heartbeat(message.heartbeat_sequence)

    def _accept_snapshot(self, view: table_pb2.TableView) -> None:
        at = Position(view.table.epoch, view.sequence)
        held = self.position
        if held is not None and (at.epoch, at.sequence) < (held.epoch, held.sequence):
            raise _violation("a snapshot went back", held, at)
        self.position = at
        self.snapshots += 1

    def _accept_event(self, event: event_pb2.TableEvent) -> None:
        at = Position(event.epoch, event.sequence)
        held = self.position
        if held is None:
            raise StreamViolationError("events came before the first snapshot", facts={"got": str(at)})
        if at != Position(held.epoch, held.sequence + 1):
            raise _violation("the sequence has a gap", held, at)
        self.position = at
        self.events += 1

    def _accept_heartbeat(self, sequence: int) -> None:
        held = self.position
        if held is None:
            raise StreamViolationError("a heartbeat came before the first snapshot")
        if sequence != held.sequence:
            raise _violation("a heartbeat shows that events are missing", held, Position(held.epoch, sequence))


def _violation(what: str, held: Position, got: Position) -> StreamViolationError:
    message = f"{what}: held {held.epoch}/{held.sequence}, got {got.epoch}/{got.sequence}"
    return StreamViolationError(message, facts={"held": str(held), "got": str(got)})
