"""The search for hidden cards finds what is planted, and does not cry at what everybody may see."""

from __future__ import annotations

import json

import msgspec
import pytest
from fivedraw.table.v1 import event_pb2

from services.rules.cards import parse_cards
from tests.card_search import Truth, hidden_cards, single_cards, unescaped

DEALT = ["9c", "9d", "3h", "4s", "Kd"]
FINAL = ["9c", "9d", "As", "2h", "Td"]
SHOWN = ["Ah", "Ad", "Jc", "8s", "7d"]


@pytest.fixture
def truth() -> Truth:
    known = Truth()
    known.add(DEALT, FINAL, was_shown=False)
    known.add(SHOWN, SHOWN, was_shown=True)
    return known


PLANTED = {
    "text": b"seat 3 holds " + " ".join(DEALT).encode() + b".",
    "commas": ",".join(FINAL).encode(),
    "joined": b"hand=" + "".join(DEALT).encode(),
    "joined, upside down": b"hand=" + "".join(DEALT[::-1]).encode(),
    "json": json.dumps({"cards": DEALT}).encode(),
    "python": repr(DEALT[:2]).encode(),
    "protobuf": event_pb2.CardsDealt(seats=[1, 2], your_cards=DEALT).SerializeToString(),
    "protobuf of discards": event_pb2.CardsDiscarded(seat=2, count=3, your_discards=DEALT[2:]).SerializeToString(),
    "msgpack": msgspec.msgpack.encode({"hands": [list(parse_cards(DEALT))]}),
    "json of numbers": json.dumps({"final": parse_cards(FINAL)}).encode(),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_cards_are_found(name: str, truth: Truth):
    assert list(hidden_cards(PLANTED[name], truth))


@pytest.mark.parametrize("name", PLANTED)
def test_planted_cards_are_found_in_what_redis_tells_its_monitor(name: str, truth: Truth):
    plain = [byte for byte in range(32, 127) if byte not in b'"\\\\']
    escaped = b"".join(bytes([byte]) if byte in plain else b"\\x%02x" % byte for byte in PLANTED[name])
    assert list(hidden_cards(unescaped(escaped), truth))


def test_a_shown_hand_is_no_secret(truth: Truth):
    shown = event_pb2.HandShown(seat=2, cards=SHOWN, hand_name="pair of aces").SerializeToString()
    assert list(hidden_cards(shown + " ".join(SHOWN).encode(), truth)) == []


def test_amounts_of_a_map_of_stacks_are_no_cards():
    # 149 chips of one seat, then the entry of another: the bytes 0x95 0x01 0x22 0x05 0x08 0x01 or 0x03.
    known = Truth()
    for seat in (1, 3):
        known.hidden.add(frozenset({1, 0x22, 5, 8, seat}))
        voided = event_pb2.HandVoided(stacks_minor={2: 149}).SerializeToString()
        voided += event_pb2.HandVoided(stacks_minor={seat: 1625}).SerializeToString()
        returned = voided.replace(b"\x1a", b"\x22")
        assert bytes([0x95, 1, 0x22, 5, 8, seat]) in returned
        assert list(hidden_cards(returned, known)) == []
    assert list(hidden_cards(bytes([0x95, 1, 0x22, 5, 8, 3]), known)) == []
    assert list(hidden_cards(bytes([0x95, 1, 0x22, 8, 5, 3]), known))


def test_digests_keys_and_prose_are_no_cards(truth: Truth):
    prose = b'{"commit": "9c9d3h4c5d6c7d8c2d", "event": "As said, 2c and other words", "id": "b7c-9d"}'
    assert list(hidden_cards(prose.replace(b"9c9d3h", b"9c9dff"), truth)) == []


def test_a_card_alone_in_quotes_is_found():
    assert single_cards(b'{"card": "Kd", "as": "As it is"}')[0].startswith("b'\"Kd\"'")
    assert single_cards(b'{"event": "As it is", "seat": 3}') == []
