"""The shuffle and the commitments of specification version 1, against a second reading of docs/fairness.md."""

from __future__ import annotations

import hashlib
import hmac
import json
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.deck import commitments, shuffling
from services.deck.cards import TEXTS, number_of, text_of
from services.deck.shuffling import PlayerSeed

VECTORS = json.loads((Path(__file__).parents[3] / "docs" / "fairness-vectors.json").read_text())


def plain_shuffle(seed: bytes, *, table: str, hand: int, cut: bytes, seeds, number: int, cards: list[int]) -> list[int]:
    """The specification word by word, a byte at a time."""

    def sized(content: bytes) -> bytes:
        return len(content).to_bytes(4, "big") + content

    message = sized(b"fivedraw.shuffle.v1") + sized(table.encode()) + hand.to_bytes(8, "big") + sized(cut)
    message += len(seeds).to_bytes(4, "big")
    for seat, entropy in seeds:
        message += seat.to_bytes(4, "big") + sized(entropy)
    key = hmac.new(seed, message + number.to_bytes(4, "big"), hashlib.sha256).digest()

    def stream():
        counter = 0
        while True:
            yield from hmac.new(key, counter.to_bytes(4, "big"), hashlib.sha256).digest()
            counter += 1

    octets = stream()
    order = list(cards)
    for last in reversed(range(1, len(order))):
        octet = next(octets)
        while octet >= 256 // (last + 1) * (last + 1):
            octet = next(octets)
        chosen = octet % (last + 1)
        order[last], order[chosen] = order[chosen], order[last]
    return order


@given(
    seed=st.binary(min_size=32, max_size=32),
    table=st.from_regex(r"tables/[a-z0-9-]{1,20}", fullmatch=True),
    hand=st.integers(1, 2**63 - 1),
    cut=st.binary(max_size=64),
    seeds=st.lists(st.tuples(st.integers(1, 9), st.binary(max_size=64)), max_size=9),
    number=st.integers(0, 9),
    cards=st.sets(st.integers(0, 51), min_size=1),
)
def test_the_shuffle_is_the_specified_one(*, seed, table, hand, cut, seeds, number, cards) -> None:
    ascending = sorted(cards)
    context = shuffling.context_of(table, hand, cut, [PlayerSeed(seat, entropy) for seat, entropy in seeds])
    order = shuffling.shuffled(seed, context, number, ascending)
    assert list(order) == plain_shuffle(
        seed, table=table, hand=hand, cut=cut, seeds=seeds, number=number, cards=ascending
    )
    assert sorted(order) == ascending


@pytest.mark.parametrize("vector", VECTORS["shuffles"], ids=lambda vector: vector["name"])
def test_published_vectors_of_the_shuffle(vector) -> None:
    seeds = [PlayerSeed(each["seat"], bytes.fromhex(each["seed"])) for each in vector["player_seeds"]]
    context = shuffling.context_of(vector["table"], vector["hand"], bytes.fromhex(vector["cut"]), seeds)
    seed = bytes.fromhex(vector["seed"])
    cards = [TEXTS.index(text) for text in vector["cards"]]
    order = shuffling.shuffled(seed, context, vector["shuffle"], cards)
    assert [text_of(card) for card in order] == vector["order"]
    salts = b"".join(bytes.fromhex(salt) for salt in vector["salts"])
    level = commitments.leaves(vector["shuffle"], order, salts)
    assert level[0].hex() == vector["first_leaf"]
    assert commitments.root_of(level).hex() == vector["root"]
    assert commitments.seed_commitment(seed).hex() == vector["commitment"]


@pytest.mark.parametrize("vector", VECTORS["chains"], ids=lambda vector: vector["name"])
def test_published_vectors_of_the_chain(vector) -> None:
    link = commitments.chain_link(
        bytes.fromhex(vector["previous_chain"]),
        vector["table"],
        vector["deck_number"],
        vector["hand"],
        bytes.fromhex(vector["commitment"]),
    )
    assert link.hex() == vector["chain"]


@pytest.mark.parametrize("size", range(1, 53))
def test_every_place_has_a_path_to_the_root_and_to_no_other_place(size: int) -> None:
    salts = bytes(range(256))[: 16 * 16] * 4
    level = commitments.leaves(3, list(range(size)), salts[: size * 16])
    root = commitments.root_of(level)
    for place in range(size):
        path = commitments.path_of(level, place)
        assert commitments.root_from(level[place], place, size, path) == root
        if size > 1:
            assert commitments.root_from(level[place], (place + 1) % size, size, path) != root
            assert commitments.root_from(level[place], place, size, path[:-1]) is None
        assert commitments.root_from(level[place], place, size, (*path, root)) is None


def test_cut_and_player_seeds_cannot_be_moved_into_each_other() -> None:
    contexts = {
        shuffling.context_of("tables/a", 1, b"xy", ()),
        shuffling.context_of("tables/a", 1, b"x", (PlayerSeed(1, b"y"),)),
        shuffling.context_of("tables/a", 1, b"", (PlayerSeed(1, b"xy"),)),
        shuffling.context_of("tables/a", 1, b"", (PlayerSeed(1, b"x"), PlayerSeed(2, b"y"))),
        shuffling.context_of("tables/a", 1, b"", (PlayerSeed(2, b"xy"),)),
    }
    assert len(contexts) == 5


def test_cards_have_one_number_and_one_text() -> None:
    assert [text_of(0), text_of(3), text_of(4), text_of(51)] == ["2c", "2s", "3c", "As"]
    assert [number_of(text) for text in TEXTS] == list(range(52))
    for text in ("", "1c", "2C", "tc", "10c", "As "):
        assert number_of(text) is None


def test_small_decks_come_out_in_every_order() -> None:
    found = {
        shuffling.shuffled(bytes([n] * 32), shuffling.context_of("tables/a", 1, b"", ()), 0, (4, 7, 9, 11))
        for n in range(256)
    }
    assert found == set(permutations((4, 7, 9, 11)))
