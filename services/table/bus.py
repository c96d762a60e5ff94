"""What travels between table processes, and what the log of a table holds: one `Batch` for each commit.

These are the only types on the bus. A public event is a serialized `TableEvent`; times in it are relative to the
commit (milliseconds since the Unix epoch stand for milliseconds since the commit), since only the store knows when
the commit happened. `told` turns them into absolute ones.
"""

from __future__ import annotations

from typing import Final

import msgspec
from fivedraw.table.v1 import event_pb2
from google.protobuf import timestamp_pb2

BATCH_EVENTS_MAX: Final = 256
# Why a seat changed, where its player's streams are what changed.
CONNECTION: Final = "connection"
_CONNECTION: Final = CONNECTION.encode()


class Private(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One event as one player sees it: a sealed, serialized `TableEvent`."""

    seat: int
    player: str
    sealed: bytes


class Entry(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One event of a table: `public` for everybody, and for those who may see more, their own form of it."""

    public: bytes
    private: tuple[Private, ...] = ()


class Batch(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """All events of one commit; sequences run from `first` without a gap. `at_ms` is the store's time of the commit."""

    epoch: int
    first: int
    entries: tuple[Entry, ...]
    at_ms: int = 0

    @property
    def last(self) -> int:
        """Sequence of the last event."""
        return self.first + len(self.entries) - 1


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Batch)


def dump(batch: Batch) -> bytes:
    """The batch as bytes; its time is left out, since the store adds it."""
    return _ENCODER.encode(batch)


def load(packed: bytes, at_ms: int) -> Batch:
    """The batch that `dump` wrote, with the store's time of the commit."""
    return msgspec.structs.replace(_DECODER.decode(packed), at_ms=at_ms)


def stamp(event: event_pb2.TableEvent, at_ms: int) -> event_pb2.TableEvent:
    """Puts the commit's time into an event that was read from a batch: its own time, and deadlines within it."""
    event.commit_time.FromMilliseconds(at_ms)
    body = event.WhichOneof("body")
    if body == "turn_started":
        _shift(event.turn_started.turn.deadline, at_ms)
    elif body == "table_resumed" and event.table_resumed.HasField("turn"):
        _shift(event.table_resumed.turn.deadline, at_ms)
    elif body == "hand_waiting" and event.hand_waiting.HasField("deadline"):
        _shift(event.hand_waiting.deadline, at_ms)
    return event


def public_event(entry: Entry, at_ms: int) -> event_pb2.TableEvent:
    """An event as everybody sees it."""
    return stamp(event_pb2.TableEvent.FromString(entry.public), at_ms)


def told_absent(batch: Batch) -> list[str]:
    """The players whom a batch tells as disconnected."""
    absent = []
    for entry in batch.entries:
        # Nearly no event is one of these, and a look at the bytes costs less than reading the event.
        if _CONNECTION in entry.public:
            changed = event_pb2.TableEvent.FromString(entry.public).seat_changed
            if changed.reason == CONNECTION and changed.seat.disconnected:
                absent.append(changed.seat.player)
    return absent


def _shift(moment: timestamp_pb2.Timestamp, at_ms: int) -> None:
    moment.FromMilliseconds(moment.ToMilliseconds() + at_ms)
