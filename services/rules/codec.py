"""States, events and commands as bytes: one byte of version, then MessagePack.

A reader of an older version is added here when a type changes; bytes of a version it does not know are refused.
"""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from services.rules.commands import AnyCommand
from services.rules.events import AnyEvent
from services.rules.state import HandState

T = TypeVar("T")

VERSION: Final = 1
_PREFIX: Final = bytes([VERSION])

_encoder = msgspec.msgpack.Encoder()
_state_decoder = msgspec.msgpack.Decoder(HandState)
_event_decoder: msgspec.msgpack.Decoder[AnyEvent] = msgspec.msgpack.Decoder(AnyEvent)
_command_decoder: msgspec.msgpack.Decoder[AnyCommand] = msgspec.msgpack.Decoder(AnyCommand)


class CodecRefused(ValueError):
    """Bytes that are not of a known version, or not what they should be."""


def dump_state(state: HandState) -> bytes:
    """A hand's state as bytes. It holds cards: seal it before it leaves the process."""
    return _PREFIX + _encoder.encode(state)


def load_state(packed: bytes) -> HandState:
    """The state that `dump_state` packed. Raises `CodecRefused`."""
    return _load(packed, _state_decoder)


def dump_event(event: AnyEvent) -> bytes:
    """An event as bytes, private part included unless it was redacted."""
    return _PREFIX + _encoder.encode(event)


def load_event(packed: bytes) -> AnyEvent:
    """The event that `dump_event` packed. Raises `CodecRefused`."""
    return _load(packed, _event_decoder)


def dump_command(command: AnyCommand) -> bytes:
    """A command as bytes."""
    return _PREFIX + _encoder.encode(command)


def load_command(packed: bytes) -> AnyCommand:
    """The command that `dump_command` packed. Raises `CodecRefused`."""
    return _load(packed, _command_decoder)


def _load(packed: bytes, decoder: msgspec.msgpack.Decoder[T]) -> T:
    if packed[:1] != _PREFIX:
        raise CodecRefused(f"version {packed[:1].hex() or 'missing'} is not {VERSION}")
    try:
        return decoder.decode(memoryview(packed)[1:])
    except msgspec.MsgspecError as error:
        raise CodecRefused(str(error)) from error
