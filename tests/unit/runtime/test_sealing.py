"""Sealed bytes open only whole, with their key, for their purpose; their length tells nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.runtime.sealing import SealBrokenError, Sealer

OLD, NEW = ("old", bytes(32)), ("new", bytes(range(32)))


@given(st.binary(max_size=300), st.binary(max_size=40), st.sampled_from([0, 1, 16, 64, 256]))
def test_what_was_sealed_opens(content, purpose, pad_to):
    sealer = Sealer([NEW])
    assert sealer.open(sealer.seal(content, purpose, pad_to=pad_to), purpose) == content


@given(st.lists(st.binary(max_size=60), min_size=2, max_size=10))
def test_padding_hides_the_length(contents):
    sealer = Sealer([NEW])
    assert len({len(sealer.seal(content, b"", pad_to=64)) for content in contents}) == 1


def test_the_same_content_never_looks_the_same():
    sealer = Sealer([NEW])
    assert sealer.seal(b"x", b"") != sealer.seal(b"x", b"")


def test_an_old_key_still_opens_and_the_new_one_seals():
    sealed = Sealer([OLD]).seal(b"cards", b"t")
    rotated = Sealer([NEW, OLD])
    assert rotated.open(sealed, b"t") == b"cards"
    assert (rotated.key_id_of(sealed), rotated.key_id_of(rotated.seal(b"x", b""))) == ("old", "new")
    with pytest.raises(SealBrokenError):
        Sealer([NEW]).open(sealed, b"t")


def test_every_changed_bit_breaks_the_seal():
    sealer = Sealer([NEW])
    sealed = sealer.seal(b"cards", b"t")
    for place in range(len(sealed) * 8):
        changed = bytearray(sealed)
        changed[place // 8] ^= 1 << place % 8
        with pytest.raises(SealBrokenError):
            sealer.open(bytes(changed), b"t")


def test_another_purpose_or_a_shorter_text_does_not_open():
    sealer = Sealer([NEW])
    sealed = sealer.seal(b"cards", b"tables/a seat 1")
    with pytest.raises(SealBrokenError):
        sealer.open(sealed, b"tables/a seat 2")
    for length in range(len(sealed)):
        with pytest.raises(SealBrokenError):
            sealer.open(sealed[:length], b"tables/a seat 1")


@pytest.mark.parametrize("keys", [[], [("", bytes(32))], [("a", bytes(31))], [OLD, OLD], [("é" * 200, bytes(32))]])
def test_keys_are_checked(keys):
    with pytest.raises(ValueError, match="key"):
        Sealer(keys)
