"""The deck's steps, on SQLite and PostgreSQL: each once, in order, in its epoch, and the same again when repeated."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable

import pytest

from services.deck.decks import Decks
from services.deck.shuffling import PlayerSeed
from services.deck.values import HandKey, ReshuffleRule
from services.runtime.errors import Fault

TABLE = "tables/oak"


def key(hand: int = 1, epoch: int = 1, table: str = TABLE) -> HandKey:
    return HandKey(table, epoch, hand)


async def deal(decks: Decks, at: HandKey, seats: tuple[int, ...] = (2, 3, 1)) -> dict[int, tuple[str, ...]]:
    """Opens, cuts and deals; the hands by seat."""
    await decks.open_deck(at, f"open-{at.hand}")
    await decks.cut_deck(at, f"cut-{at.hand}")
    dealt = await decks.deal_cards(at, f"deal-{at.hand}", seats=seats)
    return {hand.seat: hand.cards for hand in dealt.hands}


async def refusal(call: Awaitable[object]) -> Fault:
    with pytest.raises(Fault) as caught:
        await call
    return caught.value


async def test_a_whole_hand(decks: Decks) -> None:
    opened = await decks.open_deck(key(), "open")
    assert (opened.deck_number, len(opened.commitment), len(opened.chain)) == (1, 32, 32)
    frozen = await decks.cut_deck(key(), "cut", cut=b"mine", player_seeds=[PlayerSeed(1, b"a"), PlayerSeed(3, b"")])
    assert len(frozen.root) == 32
    hands = {hand.seat: hand.cards for hand in (await decks.deal_cards(key(), "deal", seats=(2, 3, 1))).hands}
    assert list(hands) == [2, 3, 1]
    assert len({card for cards in hands.values() for card in cards}) == 15
    exchanged = await decks.exchange_cards(key(), "x2", seat=2, discards=hands[2][:3])
    assert len(exchanged.cards) == 3
    assert exchanged.reshuffle is None
    assert not set(exchanged.cards) & {card for cards in hands.values() for card in cards}
    pat = await decks.exchange_cards(key(), "x3", seat=3, discards=())
    assert pat.cards == ()
    closed = await decks.close_deck(key(), "close")
    assert len(closed.next_commitment) == 32
    again = await decks.open_deck(key(2), "open-2")
    assert again.deck_number == 2
    assert again.commitment == closed.next_commitment


async def test_each_step_repeated_gives_the_same_cards(decks: Decks) -> None:
    hands = await deal(decks, key())
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: decks.open_deck(key(), "open-1"),
        lambda: decks.cut_deck(key(), "cut-1"),
        lambda: decks.deal_cards(key(), "deal-1", seats=(2, 3, 1)),
        lambda: decks.exchange_cards(key(), "x", seat=3, discards=hands[3][1:], draw_now=3),
        lambda: decks.deal_late_card(key(), "late", seat=3, burn=True),
        lambda: decks.close_deck(key(), "close"),
    ]
    first = [await call() for call in calls]
    assert [await call() for call in calls] == first


async def test_a_step_id_used_for_something_else_is_a_conflict(decks: Decks) -> None:
    hands = await deal(decks, key())
    await decks.exchange_cards(key(), "x", seat=2, discards=hands[2][:1])
    for call in (
        decks.cut_deck(key(), "cut-1", cut=b"other"),
        decks.deal_cards(key(), "deal-1", seats=(3, 2, 1)),
        decks.exchange_cards(key(), "x", seat=2, discards=hands[2][:2]),
        decks.exchange_cards(key(), "x", seat=3, discards=()),
        decks.close_deck(key(), "x"),
    ):
        assert (await refusal(call)).reason == "STEP_CONFLICT"


async def test_steps_out_of_order_are_refused(decks: Decks) -> None:
    assert (await refusal(decks.cut_deck(key(), "a"))).reason == "HAND_NOT_OPEN"
    await decks.open_deck(key(), "open")
    assert (await refusal(decks.deal_cards(key(), "a", seats=(1, 2)))).reason == "NOT_SHUFFLED"
    assert (await refusal(decks.exchange_cards(key(), "a", seat=1, discards=()))).reason == "NOT_SHUFFLED"
    await decks.cut_deck(key(), "cut")
    assert (await refusal(decks.cut_deck(key(), "a"))).reason == "ALREADY_SHUFFLED"
    assert (await refusal(decks.exchange_cards(key(), "a", seat=1, discards=()))).reason == "NOT_DEALT"
    hands = {h.seat: h.cards for h in (await decks.deal_cards(key(), "deal", seats=(1, 2))).hands}
    assert (await refusal(decks.deal_cards(key(), "a", seats=(1, 2)))).reason == "ALREADY_DEALT"
    await decks.exchange_cards(key(), "x", seat=1, discards=hands[1][:1])
    assert (await refusal(decks.exchange_cards(key(), "a", seat=1, discards=()))).reason == "ALREADY_DREW"
    assert (await refusal(decks.deal_late_card(key(), "a", seat=2))).reason == "INVALID_REQUEST"
    await decks.close_deck(key(), "close")
    assert (await refusal(decks.exchange_cards(key(), "a", seat=2, discards=()))).reason == "HAND_CLOSED"
    assert (await refusal(decks.open_deck(key(), "b"))).reason == "HAND_CLOSED"


async def test_only_cards_that_are_held_can_be_discarded(decks: Decks) -> None:
    hands = await deal(decks, key())
    assert (await refusal(decks.exchange_cards(key(), "a", seat=2, discards=hands[3][:1]))).reason == "CARD_NOT_HELD"
    twice = (hands[2][0], hands[2][0])
    assert (await refusal(decks.exchange_cards(key(), "a", seat=2, discards=twice))).reason == "DUPLICATE_CARD"
    assert (await refusal(decks.exchange_cards(key(), "a", seat=2, discards=("1x",)))).reason == "INVALID_REQUEST"
    assert (await refusal(decks.exchange_cards(key(), "a", seat=9, discards=()))).reason == "INVALID_REQUEST"
    # None of that counted as the seat's draw.
    assert len((await decks.exchange_cards(key(), "a", seat=2, discards=hands[2])).cards) == 5


async def test_one_open_hand_a_table_and_ascending_numbers(decks: Decks) -> None:
    await decks.open_deck(key(3), "open-3")
    fault = await refusal(decks.open_deck(key(4), "open-4"))
    assert (fault.reason, fault.metadata["hand"]) == ("OTHER_HAND_OPEN", "3")
    assert (await refusal(decks.open_deck(key(3), "other"))).reason == "STEP_CONFLICT"
    await decks.close_deck(key(3), "close")
    assert (await refusal(decks.open_deck(key(2), "open-2"))).reason == "HAND_CLOSED"
    assert (await decks.open_deck(key(7), "open-7")).deck_number == 2
    assert (await decks.open_deck(key(1, table="tables/elm"), "open-1")).deck_number == 1


async def test_a_closed_hand_closes_again_with_the_same_outcome_only(decks: Decks) -> None:
    await deal(decks, key())
    closed = await decks.close_deck(key(), "close")
    assert await decks.close_deck(key(), "close-again") == closed
    fault = await refusal(decks.close_deck(key(), "void", void=True))
    assert (fault.reason, fault.metadata["outcome"]) == ("HAND_CLOSED", "closed")


async def test_an_older_epoch_is_refused_and_a_fence_voids_its_open_deck(decks: Decks) -> None:
    hands = await deal(decks, key())
    fenced = await decks.fence_table(TABLE, 2)
    assert fenced.voided_hand == 1
    assert await decks.fence_table(TABLE, 2) == fenced
    assert (await refusal(decks.fence_table(TABLE, 1))).reason == "STALE_EPOCH"
    for call in (
        decks.exchange_cards(key(), "x", seat=2, discards=hands[2][:1]),
        decks.deal_cards(key(), "deal-1", seats=(2, 3, 1)),
        decks.open_deck(key(2), "open-2"),
        decks.close_deck(key(), "close"),
    ):
        fault = await refusal(call)
        assert (fault.reason, fault.metadata["epoch"]) == ("STALE_EPOCH", "2")
    closed = await decks.close_deck(key(epoch=2), "close", void=True)
    assert closed.next_commitment == fenced.next_commitment
    opened = await decks.open_deck(key(2, epoch=2), "open-2")
    assert (opened.deck_number, opened.commitment) == (2, fenced.next_commitment)
    # The fence of an epoch that has a deck of its own voids nothing more.
    assert (await decks.fence_table(TABLE, 2)).voided_hand == 1
    assert len((await decks.cut_deck(key(2, epoch=2), "cut")).root) == 32


async def test_a_newer_epoch_refuses_the_old_hand_but_may_close_it(decks: Decks) -> None:
    hands = await deal(decks, key())
    call = decks.exchange_cards(key(epoch=5), "x", seat=2, discards=hands[2][:1])
    assert (await refusal(call)).reason == "HAND_NOT_OPEN"
    await decks.close_deck(key(epoch=5), "close")
    assert (await refusal(decks.open_deck(key(2, epoch=4), "open-2"))).reason == "STALE_EPOCH"


async def test_two_racing_exchanges_one_wins_and_the_other_is_refused(open_decks) -> None:
    one, two = await open_decks(), await open_decks()
    hands = await deal(one, key())
    outcomes = await asyncio.gather(
        one.exchange_cards(key(), "from-one", seat=2, discards=hands[2][:1]),
        two.exchange_cards(key(), "from-two", seat=2, discards=hands[2][1:4]),
        return_exceptions=True,
    )
    faults = [each for each in outcomes if isinstance(each, Fault)]
    assert [fault.reason for fault in faults] == ["ALREADY_DREW"]


async def test_replicas_racing_for_one_step_give_the_same_cards(open_decks) -> None:
    replicas = [await open_decks() for _ in range(3)]
    for each in replicas:
        await each.fence_table("tables/warm", 1)
    opened = await asyncio.gather(*(each.open_deck(key(), "open") for each in replicas))
    assert opened[0] == opened[1] == opened[2]
    roots = await asyncio.gather(*(each.cut_deck(key(), "cut") for each in replicas))
    assert roots[0] == roots[1] == roots[2]
    hands = await asyncio.gather(*(each.deal_cards(key(), "deal", seats=(1, 2)) for each in replicas))
    assert hands[0] == hands[1] == hands[2]


async def test_many_tables_at_once_share_transactions(decks: Decks) -> None:
    async def play(number: int) -> set[str]:
        at = key(table=f"tables/t{number}")
        hands = await deal(decks, at, seats=(1, 2))
        drawn = await decks.exchange_cards(at, "x", seat=1, discards=hands[1])
        await decks.close_deck(at, "close")
        return {*hands[1], *hands[2], *drawn.cards}

    for seen in await asyncio.gather(*(play(number) for number in range(150))):
        assert len(seen) == 15


async def test_a_refused_step_does_not_touch_its_neighbours(decks: Decks) -> None:
    results = await asyncio.gather(
        decks.open_deck(key(1), "open-1"),
        decks.open_deck(key(2), "open-2"),
        decks.open_deck(key(1, table="tables/elm"), "open-1"),
        return_exceptions=True,
    )
    assert [isinstance(each, Fault) for each in results] == [False, True, False]


async def test_lots_are_idempotent_and_cover_all_seats(decks: Decks) -> None:
    first = await decks.draw_lots(TABLE, "lot", seats=(2, 4, 6))
    assert await decks.draw_lots(TABLE, "lot", seats=(2, 4, 6)) == first
    assert (await refusal(decks.draw_lots(TABLE, "lot", seats=(2, 4)))).reason == "STEP_CONFLICT"
    drawn = await asyncio.gather(*(decks.draw_lots(TABLE, f"lot-{n}", seats=(2, 4, 6)) for n in range(120)))
    assert set(drawn) == {2, 4, 6}


@pytest.mark.parametrize("rule", list(ReshuffleRule))
async def test_stub_short_nine_seats_all_draw_five(decks: Decks, rule: ReshuffleRule) -> None:
    seats = (2, 3, 4, 5, 6, 7, 8, 9, 1)
    hands = await deal(decks, key(), seats)
    reshuffles = []
    for seat in seats:
        drawn = await decks.exchange_cards(key(), f"x{seat}", seat=seat, discards=hands[seat], rule=rule)
        assert len(set(drawn.cards)) == 5
        assert not set(drawn.cards) & set(hands[seat])
        reshuffles += [drawn.reshuffle] if drawn.reshuffle else []
    assert reshuffles
    assert all(each.number == at + 1 and len(each.root) == 32 for at, each in enumerate(reshuffles))
    # Seven cards are left of 52 for the first drawer; the second takes two of them and then reshuffled ones.
    if rule is ReshuffleRule.STUB_FIRST:
        assert (reshuffles[0].dealt_before, reshuffles[0].cards) == (2, 5)
    else:
        assert (reshuffles[0].dealt_before, reshuffles[0].cards) == (0, 7)


async def test_proof_of_a_closed_hand_opens_only_what_was_seen(decks: Decks) -> None:
    hands = await deal(decks, key())
    assert (await refusal(decks.get_fairness_proof(TABLE, 1))).reason == "HAND_NOT_CLOSED"
    await decks.close_deck(key(), "close")
    assert (await refusal(decks.get_fairness_proof(TABLE, 2))).reason == "HAND_NOT_FOUND"
    proof = await decks.get_fairness_proof(TABLE, 1, seen=hands[2])
    assert sorted(place.card for place in proof.places) == sorted(hands[2])
    assert [place.place for place in proof.places] == [0, 3, 6, 9, 12]
    assert proof.seed == b""
    assert (await refusal(decks.get_fairness_proof(TABLE, 1, open_seed=True))).reason == "SEED_NOT_DUE"


async def test_the_seed_opens_to_auditors_after_the_delay(open_decks) -> None:
    decks = await open_decks(seed_delay_ms=0)
    await deal(decks, key())
    await decks.close_deck(key(), "close")
    proof = await decks.get_fairness_proof(TABLE, 1, open_seed=True)
    assert hashlib.sha256(proof.seed).digest() == proof.commitment
    assert len(proof.places) == 52


@pytest.mark.parametrize(
    ("discards", "draw_now"), [(0, 1), (1, 0), (2, 1), (3, 2), (4, 2), (5, 4), (5, 3), (1, 2), (3, -1)]
)
async def test_only_a_four_card_draw_may_get_less_than_it_gave_up(decks: Decks, discards: int, draw_now: int) -> None:
    hands = await deal(decks, key())
    fault = await refusal(decks.exchange_cards(key(), "x", seat=2, discards=hands[2][:discards], draw_now=draw_now))
    assert (fault.reason, fault.metadata["field"]) == ("INVALID_REQUEST", "draw_now")
    # Nothing changed: no late card is due, and the seat draws as many as it gives up.
    assert (await refusal(decks.deal_late_card(key(), "late", seat=2))).reason == "INVALID_REQUEST"
    assert len((await decks.exchange_cards(key(), "y", seat=2, discards=hands[2][:discards])).cards) == discards


async def test_a_fence_repeated_after_the_next_deck_tells_the_same_hand_and_no_commitment(decks: Decks) -> None:
    await deal(decks, key())
    fenced = await decks.fence_table(TABLE, 2)
    opened = await decks.open_deck(HandKey(TABLE, 2, 2), "open-2")
    assert opened.commitment == fenced.next_commitment
    again = await decks.fence_table(TABLE, 2)
    # The seed is in use: to tell its commitment as the next deck's would be wrong.
    assert (again.voided_hand, again.next_commitment) == (1, b"")
