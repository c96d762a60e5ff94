"""Structured JSON, and the JSON Schema that describes it; both follow from the protos' own descriptors.

Amounts are numbers in minor units; ids beyond 53 bits are text; enums are words; times are RFC 3339; durations are
milliseconds; bytes are hex. An event is `{"sequence", "epoch", "hand", "commit_time", "type", "body"}`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
from fivedraw.history.v1 import history_service_pb2
from fivedraw.table.v1 import event_pb2
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

# The descriptors' types differ between protobuf's own implementations.
_Field = Any
_Enum = Any
_Descriptor = Any

SCHEMA_ID: Final = "https://fivedraw.example/schemas/hand-1.json"

_TIMESTAMP: Final = "google.protobuf.Timestamp"
_DURATION: Final = "google.protobuf.Duration"
# Numbers that a reader with doubles would round.
_AS_TEXT: Final = frozenset({"fivedraw.history.v1.Hand.hand_id"})
_CARD: Final = {"type": "string", "pattern": "^[2-9TJQKA][cdhs]$"}
_CARD_LISTS: Final = frozenset(
    {"dealt", "final_cards", "discarded", "drawn", "cards", "your_cards", "your_discards", "shown"}
)


def write(hand: history_service_pb2.Hand) -> str:
    """The hand as one JSON object, indented, ends with LF."""
    return msgspec.json.format(msgspec.json.encode(to_object(hand)), indent=1).decode() + "\n"


def write_line(hand: history_service_pb2.Hand) -> str:
    """The hand as one JSON object on one line, ends with LF."""
    return msgspec.json.encode(to_object(hand)).decode() + "\n"


def to_object(hand: history_service_pb2.Hand) -> dict[str, Any]:
    """The hand as what JSON encoders take."""
    return _message(hand)


def _message(message: Message) -> dict[str, Any]:
    if isinstance(message, event_pb2.TableEvent):
        return _event(message)
    found: dict[str, Any] = {}
    fields: list[_Field] = list(message.DESCRIPTOR.fields)
    for field in fields:
        if field.has_presence and not message.HasField(field.name):
            continue
        value = getattr(message, field.name)
        if _is_map(field):
            entry = field.message_type.fields_by_name["value"]
            found[field.name] = {str(key): _value(entry, value[key]) for key in sorted(value)}
        elif field.is_repeated:
            found[field.name] = [_value(field, item) for item in value]
        else:
            found[field.name] = _value(field, value)
    return found


def _event(event: event_pb2.TableEvent) -> dict[str, Any]:
    body = event.WhichOneof("body")
    return {
        "sequence": event.sequence,
        "epoch": event.epoch,
        "hand": event.hand,
        "commit_time": _rfc3339(event.commit_time.ToMilliseconds()),
        "type": body or "unknown",
        "body": _message(getattr(event, body)) if body else {},
    }


def _value(field: _Field, value: Any) -> Any:
    if field.message_type is not None:
        if field.message_type.full_name == _TIMESTAMP:
            return _rfc3339(value.ToMilliseconds())
        if field.message_type.full_name == _DURATION:
            return value.ToMilliseconds()
        return _message(value)
    if field.enum_type is not None:
        return _word(field.enum_type, value)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return value.hex()
    return str(value) if field.full_name in _AS_TEXT else value


def _word(enum: _Enum, number: int) -> str:
    """`HAND_OUTCOME_VOID` as `void`."""
    prefix = str(enum.values_by_number[0].name).removesuffix("UNSPECIFIED")
    found = enum.values_by_number.get(number)
    return str(found.name).removeprefix(prefix).lower() if found is not None else "unspecified"


def _is_map(field: _Field) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def _rfc3339(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of what `write` makes."""
    definitions: dict[str, Any] = {}
    root = _reference(history_service_pb2.Hand.DESCRIPTOR, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "A finished hand of five card draw as one viewer may see it",
        **root,
        "$defs": definitions,
    }


def _reference(descriptor: _Descriptor, definitions: dict[str, Any]) -> dict[str, Any]:
    name = descriptor.name
    if name not in definitions:
        definitions[name] = {}
        definitions[name] = (
            _event_schema(descriptor, definitions)
            if descriptor.full_name == event_pb2.TableEvent.DESCRIPTOR.full_name
            else _message_schema(descriptor, definitions)
        )
    return {"$ref": f"#/$defs/{name}"}


def _message_schema(descriptor: _Descriptor, definitions: dict[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for field in descriptor.fields:
        if _is_map(field):
            entry = _field_schema(field.message_type.fields_by_name["value"], definitions)
            properties[field.name] = {
                "type": "object",
                "propertyNames": {"pattern": "^[0-9]+$"},
                "additionalProperties": entry,
            }
        elif field.is_repeated:
            items = _CARD if field.name in _CARD_LISTS else _field_schema(field, definitions)
            properties[field.name] = {"type": "array", "items": items}
        else:
            properties[field.name] = _field_schema(field, definitions)
    return {
        "type": "object",
        "properties": properties,
        "required": [field.name for field in descriptor.fields if not field.has_presence],
        "additionalProperties": False,
    }


def _event_schema(descriptor: _Descriptor, definitions: dict[str, Any]) -> dict[str, Any]:
    kinds = [
        {
            "properties": {
                "type": {"const": field.name},
                "body": _reference(field.message_type, definitions),
            }
        }
        for field in descriptor.oneofs_by_name["body"].fields
    ]
    return {
        "type": "object",
        "properties": {
            "sequence": {"type": "integer", "minimum": 0},
            "epoch": {"type": "integer", "minimum": 0},
            "hand": {"type": "integer", "minimum": 0},
            "commit_time": {"type": "string", "format": "date-time"},
            "type": {"type": "string"},
            "body": {"type": "object"},
        },
        "required": ["sequence", "epoch", "hand", "commit_time", "type", "body"],
        "additionalProperties": False,
        "oneOf": kinds,
    }


def _field_schema(field: _Field, definitions: dict[str, Any]) -> dict[str, Any]:
    if field.message_type is not None:
        if field.message_type.full_name == _TIMESTAMP:
            return {"type": "string", "format": "date-time"}
        if field.message_type.full_name == _DURATION:
            return {"type": "integer", "description": "milliseconds"}
        return _reference(field.message_type, definitions)
    if field.enum_type is not None:
        return {"enum": [_word(field.enum_type, value.number) for value in field.enum_type.values]}
    if field.type == FieldDescriptor.TYPE_BYTES:
        return {"type": "string", "pattern": "^([0-9a-f]{2})*$"}
    if field.type == FieldDescriptor.TYPE_STRING:
        return {"type": "string"}
    if field.type == FieldDescriptor.TYPE_BOOL:
        return {"type": "boolean"}
    if field.full_name in _AS_TEXT:
        return {"type": "string", "pattern": "^[0-9]+$"}
    return {"type": "integer"}
