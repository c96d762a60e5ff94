"""Requests of every RPC, made from the descriptors: plausible ones, and ones with garbage in each field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from fivedraw.deck.v1 import deck_service_pb2
from fivedraw.history.v1 import history_service_pb2
from fivedraw.table.v1 import table_service_pb2
from fivedraw.wallet.v1 import wallet_service_pb2
from google.protobuf import message_factory
from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message

from tests.integration.table.house import next_id

FILES = {
    "table": table_service_pb2,
    "wallet": wallet_service_pb2,
    "deck": deck_service_pb2,
    "history": history_service_pb2,
}
WELL_KNOWN = ("google.protobuf.Duration", "google.protobuf.Timestamp")

# What a careful client would send, by the field's name; fields that are not named here stay empty.
PLAUSIBLE: dict[str, Any] = {
    "table": "tables/oak",
    "player": "players/ann",
    "currency": "CHIPS",
    "rulebook": "rulebooks/house",
    "epoch": 1,
    "hand": 1,
    "seat": 1,
    "round": 1,
    "turn": 999,
    "buy_in_minor": 500,
    "amount_minor": 10,
    "reason": "because",
    "text": "hello",
    "sitting": "oak.1.1",
    "seats": [1, 2],
    "state": 1,
    "format": 1,
    "rule": 1,
    "kind": 1,
}
NAMES = {
    "GetTable": "tables/oak",
    "GetPlayer": "players/ann",
    "DeleteTemplate": "templates/none",
    "DrainReplica": "replicas/none",
}
IDS = ("request_id", "action_id", "batch_id", "step_id", "player_id", "display_name", "table_id", "template_id")

TEXTS = (
    "",
    "x" * 30_000,
    "a\0b",
    "two\nlines",
    "tables/no-such-table",
    "tables/oak/hands/\0",
    "players/\0",
    "rulebooks/\0",
    "x'; DROP TABLE hands; --",
    "\u202eevil\u2028",
)
NUMBERS = {
    FieldDescriptor.CPPTYPE_INT32: (-1, -(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (0, 2**53 + 1, -(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_ENUM: (-1, 99),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
    FieldDescriptor.CPPTYPE_BOOL: (True,),
}
SPANS = ({"seconds": 2**62}, {"seconds": -(2**62)}, {"seconds": 1, "nanos": 2**31 - 1})
MANY = 200


class Rpc(NamedTuple):
    """One method of one service."""

    service: str
    method: MethodDescriptor

    @property
    def path(self) -> str:
        return f"/{self.method.containing_service.full_name}/{self.method.name}"

    @property
    def request_type(self) -> type[Message]:
        return message_factory.GetMessageClass(self.method.input_type)

    @property
    def response_type(self) -> type[Message]:
        return message_factory.GetMessageClass(self.method.output_type)


def all_rpcs() -> list[Rpc]:
    """Every RPC of the house."""
    return [
        Rpc(name, method)
        for name, file in FILES.items()
        for service in file.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    ]


def plausible(rpc: Rpc) -> Message:
    """A request that is well formed, with ids of its own."""
    request = rpc.request_type()
    _fill(request, rpc.method.name)
    return request


def garbage(rpc: Rpc) -> Iterator[tuple[str, Message]]:
    """(what is wrong, request) with one field wrong at a time, and the empty request."""
    yield "nothing", rpc.request_type()
    for path in _paths(rpc.request_type(), ()):
        for value in _values(path[-1]):
            request = plausible(rpc)
            _set(request, path, value)
            yield f"{'.'.join(field.name for field in path)}={str(value)[:40]!r}", request


def _fill(message: Message, method: str) -> None:
    for field in message.DESCRIPTOR.fields:
        if field.name in IDS:
            setattr(message, field.name, next_id())
        elif field.name == "name" and method in NAMES:
            message.name = NAMES[method]
        elif field.name == "name" and "name" in message.DESCRIPTOR.fields_by_name and method.endswith("Hand"):
            message.name = "tables/oak/hands/1"
        elif field.message_type is not None:
            if not field.is_repeated and field.message_type.full_name not in WELL_KNOWN and not field.containing_oneof:
                getattr(message, field.name).SetInParent()
                _fill(getattr(message, field.name), method)
        elif field.name in PLAUSIBLE:
            value = PLAUSIBLE[field.name]
            if field.is_repeated:
                getattr(message, field.name).extend(value if isinstance(value, list) else [value])
            elif not isinstance(value, list) and (field.cpp_type == FieldDescriptor.CPPTYPE_STRING) == isinstance(
                value, str
            ):
                setattr(message, field.name, value)


def _paths(message: Message, above: tuple[FieldDescriptor, ...]) -> Iterator[tuple[FieldDescriptor, ...]]:
    for field in message.DESCRIPTOR.fields:
        path = (*above, field)
        if field.message_type is None or field.message_type.full_name in WELL_KNOWN:
            yield path
        elif field.message_type.GetOptions().map_entry:
            continue
        else:
            yield from _paths(message_factory.GetMessageClass(field.message_type)(), path)


def _values(field: FieldDescriptor) -> tuple[Any, ...]:
    if field.message_type is not None:
        return SPANS
    if field.type == FieldDescriptor.TYPE_BYTES:
        return (b"", bytes(65), bytes(50_000))
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return TEXTS
    return NUMBERS[field.cpp_type]


def _set(message: Message, path: tuple[FieldDescriptor, ...], value: Any) -> None:
    for field in path[:-1]:
        inner = getattr(message, field.name)
        message = inner.add() if field.is_repeated else inner
        if not field.is_repeated:
            message.SetInParent()
    field = path[-1]
    if field.message_type is not None:
        inner = getattr(message, field.name)
        inner = inner.add() if field.is_repeated else inner
        for name, number in value.items():
            setattr(inner, name, number)
    elif field.is_repeated:
        del getattr(message, field.name)[:]
        long = isinstance(value, str) and len(value) > 100
        getattr(message, field.name).extend([value] * (1 if long else MANY))
    else:
        setattr(message, field.name, value)
