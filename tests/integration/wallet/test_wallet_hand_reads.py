"""One hand read from the ledger: every chip in and out, for awarded, void and open hands; unknown ones refused."""

from __future__ import annotations

import pytest

from services.wallet.chart import HandOutcome, TransferCode
from services.wallet.hand_reads import HandInLedger, SittingInHand
from tests.integration.wallet.house import House, antes, bets, lines, refused, returned, wins


def timeless(hand: HandInLedger) -> HandInLedger:
    """Without its times, which are the clock's."""
    hand.opened_ms = hand.closed_ms = 0
    return hand


async def test_an_awarded_hand_tells_who_paid_what_and_who_won(house: House):
    await house.forced(1, "ann bob cid", antes(ann=2, bob=2, cid=2))
    await house.award(1, carry=6)
    posted = (*antes(ann=1, bob=1, cid=1), *lines(TransferCode.BLIND, bob=5, cid=10))
    await house.forced(2, "ann bob cid", posted, carry=6)
    await house.collect(2, 1, bets(ann=10, bob=5), returned(cid=3))
    await house.collect(2, 2, bets(ann=20, bob=20))
    await house.award(2, wins(ann=42, bob=20), rake=4, carry=10)
    hand = await house.ledger.get_hand("t1", 2)
    assert 0 < hand.opened_ms <= hand.closed_ms
    # 6 carried in, 3 antes, 15 blinds, 15 bets of which 3 matched nothing, 40 bets.
    assert hand.pot_minor == 76
    assert timeless(hand) == HandInLedger(
        table="t1",
        hand=2,
        epoch=1,
        outcome=HandOutcome.AWARDED,
        opened_ms=0,
        closed_ms=0,
        currency="EUR",
        reason="",
        sittings=(
            SittingInHand("ann", "ann", 1, ante_minor=1, bet_minor=30, won_minor=42),
            SittingInHand("bob", "bob", 2, ante_minor=1, blind_minor=5, bet_minor=25, won_minor=20),
            SittingInHand("cid", "cid", 3, ante_minor=1, blind_minor=10, returned_minor=3),
        ),
        rake_minor=4,
        carry_in_minor=6,
        carry_out_minor=10,
    )


async def test_a_void_hand_tells_what_each_got_back_and_why(house: House):
    await house.forced(1, "ann bob", antes(ann=2, bob=2))
    await house.award(1, carry=4)
    # Cid is dealt in and pays nothing.
    await house.forced(2, "ann bob cid", antes(ann=2, bob=2), carry=4)
    await house.collect(2, 1, bets(ann=7), returned(bob=1))
    await house.void(2)
    hand = await house.ledger.get_hand("t1", 2)
    assert (hand.outcome, hand.reason) == (HandOutcome.VOID, "an operator")
    assert hand.pot_minor == 4 + 4 + 7 - 1
    assert (hand.carry_in_minor, hand.carry_out_minor, hand.rake_minor) == (4, 0, 0)
    assert hand.sittings == (
        SittingInHand("ann", "ann", 1, ante_minor=2, bet_minor=7, refunded_minor=9),
        SittingInHand("bob", "bob", 2, ante_minor=2, returned_minor=1, refunded_minor=1),
        SittingInHand("cid", "cid", 3),
    )


async def test_an_open_hand_stands_as_it_does_and_a_fence_ends_it(house: House):
    await house.forced(1, "ann bob", antes(ann=2, bob=2))
    hand = await house.ledger.get_hand("t1", 1)
    assert (hand.outcome, hand.closed_ms, hand.pot_minor) == (HandOutcome.OPEN, 0, 4)
    await house.fence(5)
    hand = await house.ledger.get_hand("t1", 1)
    assert (hand.outcome, hand.epoch, [each.refunded_minor for each in hand.sittings]) == (HandOutcome.VOID, 1, [2, 2])


async def test_refused_batches_of_a_hand_are_not_part_of_it(house: House):
    await house.forced(1, "ann bob", antes(ann=2, bob=2))
    await refused(house.award(1, wins(ann=5)), "POT_MISMATCH")
    await house.award(1, wins(ann=4))
    await refused(house.collect(1, 1, bets(ann=5)), "HAND_CLOSED")
    hand = await house.ledger.get_hand("t1", 1)
    assert [each.won_minor for each in hand.sittings] == [4, 0]
    assert [each.bet_minor for each in hand.sittings] == [0, 0]


async def test_a_hand_that_was_void_before_it_was_opened_has_nobody_in_it(house: House):
    await house.void(3)
    hand = await house.ledger.get_hand("t1", 3)
    assert (hand.outcome, hand.sittings, hand.pot_minor) == (HandOutcome.VOID, (), 0)
    assert hand.opened_ms == hand.closed_ms > 0


@pytest.mark.parametrize(("table", "hand"), [("t1", 2), ("t2", 1), ("t1", 2**53)])
async def test_a_hand_that_the_ledger_never_saw_is_not_found(house: House, table: str, hand: int):
    await house.forced(1, "ann bob")
    await refused(house.ledger.get_hand(table, hand), "HAND_NOT_FOUND", table=f"tables/{table}", hand=str(hand))


@pytest.mark.parametrize(
    ("table", "hand", "field"), [("t1", 0, "hand"), ("t1", 2**53 + 1, "hand"), ("T'; --", 1, "table")]
)
async def test_what_cannot_be_a_hand_is_refused(house: House, table: str, hand: int, field: str):
    await refused(house.ledger.get_hand(table, hand), "INVALID_REQUEST", field=field)
