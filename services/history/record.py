"""The stored record of a finished hand: its log as it was, private parts still sealed.

A record is a `HandRecord` of the protos, compressed. It is judged when it is written, never when it is read: a log
without a beginning or an end is refused, so that whatever is stored can be told.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Final

from fivedraw.history.v1 import record_pb2
from fivedraw.table.v1 import event_pb2, table_pb2, table_service_pb2

import services

RECORD_VERSION: Final = 1
RECORD_BYTES_MAX: Final = 16 * 1024 * 1024
# Sealed bytes do not shrink and public ones shrink at the first level as well as at the ninth.
COMPRESSION_LEVEL: Final = 1


class RecordBrokenError(ValueError):
    """A log that is no finished hand; the message says what it lacks. Nothing is written."""


class LogCutError(RecordBrokenError):
    """A log whose beginning or end is missing: it was lost, and what the ledger knows must do."""


def record_of(table: table_pb2.Table, events: Iterable[table_service_pb2.LoggedEvent]) -> record_pb2.HandRecord:
    """The record of a hand's log, events in sequence. Nothing is judged here: see `summary.summarise`."""
    return record_pb2.HandRecord(version=RECORD_VERSION, written_by=services.__version__, table=table, events=events)


def record_of_ledger(table: table_pb2.Table, ledger: record_pb2.LedgerHand) -> record_pb2.HandRecord:
    """The incomplete record of a hand whose log was lost, from what the ledger knows."""
    return record_pb2.HandRecord(version=RECORD_VERSION, written_by=services.__version__, table=table, ledger=ledger)


def encode(record: record_pb2.HandRecord) -> bytes:
    """The record as a row holds it. Raises `RecordBrokenError` for one beyond `RECORD_BYTES_MAX`."""
    content = record.SerializeToString(deterministic=True)
    if len(content) > RECORD_BYTES_MAX:
        raise RecordBrokenError(f"the record has {len(content)} bytes, more than {RECORD_BYTES_MAX}")
    return zlib.compress(content, COMPRESSION_LEVEL)


def decode(stored: bytes) -> record_pb2.HandRecord:
    """The record in a row's bytes. Raises `RecordBrokenError` for bytes that `encode` did not make."""
    decompress = zlib.decompressobj()
    try:
        content = decompress.decompress(stored, RECORD_BYTES_MAX)
    except zlib.error as error:
        raise RecordBrokenError(f"the stored record cannot be unpacked: {error}") from None
    if not decompress.eof:
        raise RecordBrokenError("the stored record is cut short or too large")
    return record_pb2.HandRecord.FromString(content)


def public_events(record: record_pb2.HandRecord) -> Iterator[event_pb2.TableEvent]:
    """The record's events as everybody may see them, in sequence."""
    for logged in record.events:
        yield event_pb2.TableEvent.FromString(logged.public_event)


def to_ms(stamp: object) -> int:
    """A protobuf timestamp in milliseconds since the Unix epoch."""
    return int(stamp.ToMilliseconds())  # type: ignore[attr-defined]
