"""The search for hidden cards finds what was written, and is not alarmed by what sealed bytes look like."""

from __future__ import annotations

import json
import random

import msgspec
import pytest

from tests.card_search import Truth, cards_of, hidden_cards

HAND = ["9h", "Jc", "2d", "Ts", "Ah"]


@pytest.fixture
def truth() -> Truth:
    truth = Truth()
    truth.add(HAND, HAND, was_shown=False)
    return truth


@pytest.mark.parametrize(
    "content",
    [
        b"9h Jc",
        b"seat 2 holds 9h Jc\n",
        json.dumps({"cards": HAND[:2]}).encode(),
        msgspec.msgpack.encode({"cards": "9h Jc"}),
        msgspec.msgpack.encode(sorted(cards_of(HAND))),
        b"\xff\x0a\x059h Jc\x12\x80",
        b"\xff\x0a\x029h\x0a\x02Jc\x80",
        b"\x80\x91" + " ".join(HAND).encode() + b"\x9f\xf3",
        b"\x80" + "".join(HAND).encode() + b"\xf3",
    ],
)
def test_cards_are_found_however_they_are_written(truth: Truth, content: bytes):
    assert list(hidden_cards(content, truth))


def test_cards_that_were_shown_are_none():
    truth = Truth()
    truth.add(HAND, HAND, was_shown=True)
    assert list(hidden_cards(b"seat 2 shows 9h Jc", truth)) == []


def test_a_pair_amid_sealed_bytes_is_chance(truth: Truth):
    assert list(hidden_cards(b"\xdf\xc5\x13 \xb29h Jc\x8b\xf3\x04i\x80", truth)) == []
    sealed = random.Random(7).randbytes(1_000_000)
    assert list(hidden_cards(sealed, truth)) == []
