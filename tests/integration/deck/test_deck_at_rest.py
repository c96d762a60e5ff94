"""What lies on the disk: nothing in the clear, nothing that opens under another key or in another place."""

from __future__ import annotations

import asyncio
import hashlib
import itertools

import pytest
import sqlalchemy as sa

from services.deck.cards import TEXTS
from services.deck.store import HANDS, TABLES
from services.deck.values import HandKey
from services.runtime.sealing import SealBrokenError, Sealer
from tests.conftest import SEALING_KEY

KEY = HandKey("tables/oak", 1, 1)
NEW_KEY = bytes(range(100, 132))


async def play(decks, key: HandKey = KEY, *, close: bool = True) -> dict[int, tuple[str, ...]]:
    await decks.open_deck(key, "open")
    await decks.cut_deck(key, "cut")
    hands = {hand.seat: hand.cards for hand in (await decks.deal_cards(key, "deal", seats=(1, 2, 3))).hands}
    await decks.exchange_cards(key, "x", seat=1, discards=hands[1][:3])
    if close:
        await decks.close_deck(key, "close")
    return hands


def all_bytes(conn) -> bytes:
    found = []
    for table in ("deck_tables", "deck_hands", "deck_lots"):
        for row in conn.execute(sa.text(f"SELECT * FROM {table}")):  # noqa: S608 - three names of ours
            found += [value if isinstance(value, bytes) else str(value).encode() for value in row]
    return b"|".join(found)


async def test_no_seed_order_salt_or_card_lies_in_the_clear(open_decks, database) -> None:
    decks = await open_decks(seed_delay_ms=0)
    hands = await play(decks)
    db = await database()
    stored = await db.read(all_bytes)
    proof = await decks.get_fairness_proof(KEY.table, 1, open_seed=True)
    numbers = bytes(TEXTS.index(place.card) for place in proof.places)
    secrets = [proof.seed, numbers[:8], *(place.salt for place in proof.places)]
    secrets += ["".join(cards).encode() for cards in hands.values()]
    secrets += [" ".join(pair).encode() for cards in hands.values() for pair in itertools.pairwise(cards)]
    assert len(stored) > 1_000
    assert [secret for secret in secrets if secret in stored] == []
    # The next seed is there, sealed: its commitment is public, the seed is not.
    closed = await decks.close_deck(KEY, "close")
    assert closed.next_commitment in stored


@pytest.mark.parametrize("column", ["sealed_key", "sealed_secret", "sealed_play"])
async def test_a_hand_whose_bytes_were_changed_is_not_played_on(decks, database, column: str) -> None:
    await play(decks, close=False)
    await play(decks, HandKey("tables/elm", 1, 1), close=False)
    db = await database()

    def exchange_rows(conn) -> None:
        other = sa.select(HANDS.c[column]).where(HANDS.c.table_name == "tables/elm").scalar_subquery()
        conn.execute(sa.update(HANDS).where(HANDS.c.table_name == "tables/oak").values({column: other}))

    await db.write(exchange_rows)
    with pytest.raises(SealBrokenError):
        await decks.exchange_cards(KEY, "y", seat=2, discards=())
    # Its neighbours in the same transaction are served.
    outcomes = await asyncio.gather(
        decks.exchange_cards(KEY, "z", seat=2, discards=()),
        decks.exchange_cards(HandKey("tables/elm", 1, 1), "z", seat=2, discards=()),
        return_exceptions=True,
    )
    assert isinstance(outcomes[0], SealBrokenError)
    assert outcomes[1].cards == ()


async def test_without_the_service_key_nothing_opens(open_decks) -> None:
    await play(await open_decks(), close=False)
    stranger = await open_decks(sealer=Sealer([("test", NEW_KEY)]))
    with pytest.raises(SealBrokenError):
        await stranger.exchange_cards(KEY, "y", seat=2, discards=())


async def test_after_a_change_of_keys_the_old_one_is_not_needed(open_decks, database) -> None:
    old = await open_decks()
    await play(old)
    await play(old, HandKey("tables/elm", 1, 1), close=False)
    both = await open_decks(sealer=Sealer([("new", NEW_KEY), ("test", SEALING_KEY)]))
    # Two hands' keys, and the seed that is committed to for the first table's next hand.
    assert await both.rotate_keys() == 3
    assert await both.rotate_keys() == 0
    new = await open_decks(sealer=Sealer([("new", NEW_KEY)]), seed_delay_ms=0)
    assert len((await new.exchange_cards(HandKey("tables/elm", 1, 1), "y", seat=2, discards=())).cards) == 0
    proof = await new.get_fairness_proof(KEY.table, 1, open_seed=True)
    assert hashlib.sha256(proof.seed).digest() == proof.commitment
    closed = await new.close_deck(KEY, "close")
    assert (await new.open_deck(HandKey(KEY.table, 1, 2), "open-2")).commitment == closed.next_commitment
    db = await database()
    kept = await db.read(lambda conn: {row.key_id for row in conn.execute(sa.select(HANDS.c.key_id))})
    assert kept == {"new"}
    assert await db.read(lambda conn: conn.execute(sa.select(sa.func.count()).select_from(TABLES)).scalar()) == 2
