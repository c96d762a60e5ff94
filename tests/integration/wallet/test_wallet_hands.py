"""What a hand does to the ledger: its steps, its two ends, its locks, its epochs."""

from __future__ import annotations

import asyncio

from services.wallet import commands as c
from services.wallet.chart import HandOutcome, PlayerState
from tests.integration.wallet.house import antes, bets, refused, returned, wins


async def test_a_hand_moves_chips_from_stacks_to_pot_to_winner_rake_and_carry(house):
    assert (await house.forced(1, "ann bob cid", antes(ann=5, bob=5, cid=5))).pot_minor == 15
    assert (await house.collect(1, 1, bets(ann=20, bob=20))).pot_minor == 55
    assert (await house.collect(1, 2, bets(ann=10, bob=10), returned(cid=1))).pot_minor == 74
    awarded = await house.award(1, wins(ann=70), rake=3, carry=1)
    assert {stack.sitting: stack.stack_minor for stack in awarded.stacks} == {"ann": 435, "bob": 365, "cid": 396}
    known = await house.ledger.get_table_ledger("t1")
    assert (known.last_hand, known.last_hand_outcome, known.last_hand_steps) == (1, HandOutcome.AWARDED, 4)
    assert known.carry_minor == 1
    summary = await house.ledger.get_ledger_summary()
    assert {(total.kind.name, total.amount_minor) for total in summary.totals} == {
        ("PLAYER", 1800), ("STACK", 1196), ("CARRY", 1), ("RAKE", 3), ("CASHIER", -3000)
    }  # fmt: skip
    assert summary.imbalance == (c.Balance("EUR", 0),)


async def test_a_hand_without_forced_bets_is_opened_by_an_empty_list(house):
    assert (await house.forced(1, "ann bob")).pot_minor == 0
    assert (await house.collect(1, 1)).pot_minor == 0
    await house.award(1)


async def test_an_award_pays_the_pot_to_the_unit(house):
    await house.forced(1, "ann bob", antes(ann=5, bob=5))
    await refused(house.award(1, wins(ann=9)), "POT_MISMATCH", pot_minor="10")
    await refused(house.award(1, wins(ann=10), rake=1), "POT_MISMATCH", pot_minor="10")
    await house.award(1, wins(ann=6, bob=4))


async def test_a_void_puts_every_chip_back_the_carry_too(house):
    await house.forced(1, "ann bob", antes(ann=5, bob=5))
    await house.award(1, carry=10)
    await house.forced(2, "ann bob cid", antes(ann=5, bob=5, cid=5), carry=10)
    await house.collect(2, 1, bets(ann=7, cid=7), returned(bob=2))
    voided = await house.void(2)
    assert {stack.sitting: stack.stack_minor for stack in voided.stacks} == {"ann": 395, "bob": 395, "cid": 400}
    assert voided.carry_minor == 10
    await refused(house.collect(2, 2), "HAND_CLOSED", outcome="void")
    await refused(house.award(2), "HAND_CLOSED", outcome="void")
    assert (await house.void(2)).stacks == ()


async def test_once_the_award_is_in_a_hand_cannot_be_void(house):
    await house.forced(1, "ann bob", antes(ann=5, bob=5))
    await house.award(1, wins(ann=10))
    await refused(house.void(1), "HAND_CLOSED", outcome="awarded")
    await refused(house.forced(1, "ann bob"), "HAND_CLOSED", outcome="awarded")
    assert (await house.stacks())["ann"] == 405


async def test_a_void_that_comes_first_keeps_its_hand_from_ever_opening(house):
    await house.void(1)
    await refused(house.forced(1, "ann bob", antes(ann=5, bob=5)), "HAND_CLOSED", outcome="void")
    assert (await house.stacks()) == {"ann": 400, "bob": 400, "cid": 400}
    await house.forced(2, "ann bob", antes(ann=5, bob=5))


async def test_one_open_hand_a_table_and_its_numbers_ascend(house):
    await house.forced(5, "ann bob")
    await refused(house.forced(6, "ann bob"), "OTHER_HAND_OPEN", hand="5")
    await refused(house.forced(5, "ann bob"), "STEP_OUT_OF_ORDER", hand="5")
    await refused(house.collect(6, 1), "HAND_NOT_OPEN", open_hand="5")
    await house.award(5)
    await refused(house.forced(4, "ann bob"), "HAND_CLOSED", outcome="void", last_hand="5")
    await house.forced(7, "ann bob")


async def test_a_round_is_collected_once_and_in_order(house):
    await house.forced(1, "ann bob")
    await house.collect(1, 2, bets(ann=1))
    await refused(house.collect(1, 2, bets(ann=1)), "STEP_OUT_OF_ORDER", round="2")
    await refused(house.collect(1, 1, bets(ann=1)), "STEP_OUT_OF_ORDER", round="2")


async def test_stacks_dealt_in_are_locked_until_the_hand_is_closed(house):
    await house.forced(1, "ann bob")
    await refused(house.top_up("ann", 5), "STACK_LOCKED", hand="1")
    await refused(house.cash_out("bob"), "STACK_LOCKED", hand="1")
    await house.cash_out("cid")
    await house.void(1)
    await house.top_up("ann", 5)
    assert (await house.cash_out("bob")).amount_minor == 400


async def test_only_sittings_dealt_in_move_chips(house):
    await refused(house.forced(1, "ann bob", antes(cid=5)), "SITTING_NOT_DEALT_IN", sitting="cid")
    await house.forced(1, "ann bob", antes(ann=5))
    await refused(house.collect(1, 1, bets(cid=5)), "SITTING_NOT_DEALT_IN", sitting="cid")
    await refused(house.award(1, wins(cid=5)), "SITTING_NOT_DEALT_IN", sitting="cid")


async def test_a_sitting_of_another_table_is_not_found(house):
    house.table = "t2"
    await refused(house.forced(1, "ann"), "SITTING_NOT_FOUND")
    await refused(house.top_up("ann", 5), "SITTING_NOT_FOUND")
    await refused(house.cash_out("ann"), "SITTING_NOT_FOUND")
    house.table = "t1"
    assert (await house.cash_out("ann")).amount_minor == 400


async def test_an_older_epoch_is_refused_and_a_newer_one_noted(house):
    house.epoch = 3
    await house.forced(1, "ann bob", antes(ann=5))
    house.epoch = 2
    await refused(house.collect(1, 1), "STALE_EPOCH", epoch="3")
    await refused(house.void(1), "STALE_EPOCH", epoch="3")
    assert (await house.ledger.get_table_ledger("t1")).epoch == 3


async def test_a_fence_voids_what_an_older_epoch_left_open(house):
    await house.forced(1, "ann bob", antes(ann=5, bob=5))
    fenced = await house.fence(2)
    assert fenced.voided_hand == 1
    assert {stack.sitting: stack.stack_minor for stack in fenced.ledger.stacks} == {"ann": 400, "bob": 400, "cid": 400}
    assert (fenced.ledger.epoch, fenced.ledger.last_hand_outcome) == (2, HandOutcome.VOID)
    assert await house.fence(2) == fenced
    house.epoch = 1
    await refused(house.collect(1, 1), "STALE_EPOCH")
    await refused(house.ledger.fence_table(c.FenceTable("t1", 1)), "STALE_EPOCH")


async def test_a_repeated_fence_leaves_its_own_hand_open(house):
    await house.fence(2)
    await house.forced(1, "ann bob", antes(ann=5))
    assert (await house.fence(2)).voided_hand == 0
    await house.collect(1, 1)
    assert (await house.fence(3)).voided_hand == 1
    # Where the epoch was first seen in a call, its fence still ends what is older.
    await house.forced(2, "ann bob", antes(ann=5))
    house.epoch = 4
    await house.top_up("cid", 1)
    assert (await house.fence(4)).voided_hand == 2


async def test_a_fence_leaves_an_awarded_hand_awarded(house):
    await house.forced(1, "ann bob", antes(ann=5))
    await house.award(1, wins(bob=5))
    fenced = await house.fence(2)
    assert (fenced.voided_hand, fenced.ledger.last_hand_outcome) == (0, HandOutcome.AWARDED)
    assert (await house.stacks())["bob"] == 405


async def test_a_freeze_acts_from_the_next_hand_and_stops_only_new_risk(house):
    await house.forced(1, "ann bob", antes(ann=5, bob=5))
    await house.freeze("ann")
    await house.collect(1, 1, bets(ann=5, bob=5))
    await house.award(1, wins(ann=20))
    await refused(house.forced(2, "ann bob"), "PLAYER_FROZEN", player="ann")
    await refused(house.top_up("ann", 1), "PLAYER_FROZEN")
    await refused(house.withdraw("ann", 1), "PLAYER_FROZEN")
    await refused(house.buy_in("ann", 10, sitting="ann2"), "PLAYER_FROZEN")
    await house.deposit("ann", 1)
    assert (await house.cash_out("ann")).amount_minor == 410
    await house.freeze("ann", PlayerState.ACTIVE)
    await house.withdraw("ann", 1)


async def test_a_void_refunds_a_frozen_player(house):
    await house.forced(1, "ann bob", antes(ann=5, bob=5))
    await house.freeze("ann")
    await house.void(1)
    assert (await house.stacks())["ann"] == 400


async def test_a_carry_joins_the_next_pot_whole(house):
    await house.forced(1, "ann bob", antes(ann=5, bob=5))
    await house.award(1, carry=10)
    await refused(house.forced(2, "ann bob"), "CARRY_MISMATCH", carry_minor="10")
    await refused(house.forced(3, "ann bob", carry=11), "CARRY_MISMATCH", carry_minor="10")
    assert (await house.forced(4, "ann bob cid", antes(cid=5), carry=10)).pot_minor == 15
    await refused(house.refund_carry(), "OTHER_HAND_OPEN", hand="4")


async def test_a_refunded_carry_goes_to_all_who_paid_it_odd_chips_to_the_lowest_seat(house):
    """Two passed-out deals: 10 from each of three, then 10 from ann and bob; cid has left since. Carry 50 less 3."""
    await house.forced(1, "ann bob cid", antes(ann=10, bob=10, cid=10))
    await house.award(1, carry=30)
    await house.cash_out("cid")
    await house.forced(2, "ann bob", antes(ann=10, bob=10), carry=30)
    await house.award(2, wins(bob=3), carry=47)
    assert (await house.refund_carry()).amount_minor == 47
    # 20, 20 and 10 of 50: 18.8, 18.8 and 9.4 of 47; the two odd chips to seats 1 and 2.
    assert [await house.cash(player) for player in ("ann", "bob", "cid")] == [619, 619, 999]
    assert (await house.refund_carry()).amount_minor == 0
    await house.forced(3, "ann bob")


async def test_only_hands_since_the_carry_was_last_empty_count(house):
    await house.forced(1, "ann bob cid", antes(cid=90, ann=10))
    await house.award(1, carry=100)
    await house.forced(2, "ann bob cid", carry=100)
    await house.award(2, wins(bob=100))
    await house.forced(3, "ann bob", antes(ann=6, bob=3))
    await house.award(3, wins(ann=3), carry=6)
    await house.forced(4, "ann bob", antes(ann=50), carry=6)
    await house.void(4)
    await house.refund_carry()
    assert [await house.cash(player) for player in ("ann", "bob", "cid")] == [604, 602, 600]


async def test_the_same_id_and_content_is_the_stored_answer(house):
    first = await house.forced(1, "ann bob", antes(ann=5), id="f")
    await house.collect(1, 1, bets(bob=6), id="c")
    assert await house.forced(1, "ann bob", antes(ann=5), id="f") == first
    await house.award(1, wins(bob=11), id="a")
    assert (await house.collect(1, 1, bets(bob=6), id="c")).pot_minor == 11
    refusal = await refused(house.forced(2, "ann bob", antes(ann=10_000), id="g"), "INSUFFICIENT_FUNDS")
    await house.top_up("ann", 500)
    again = await refused(house.forced(2, "ann bob", antes(ann=10_000), id="g"), "INSUFFICIENT_FUNDS")
    assert (again.message, again.metadata) == (refusal.message, refusal.metadata)
    assert (await house.stacks()) == {"ann": 895, "bob": 405, "cid": 400}


async def test_the_same_id_with_other_content_names_what_differs(house):
    await house.forced(1, "ann bob", antes(ann=5), id="f")
    await refused(house.forced(1, "ann bob", antes(ann=6), id="f"), "BATCH_CONFLICT", field="postings")
    await refused(house.forced(2, "ann bob", antes(ann=5), id="f"), "BATCH_CONFLICT", field="hand")
    await refused(house.void(1, id="f"), "BATCH_CONFLICT", field="operation")
    house.epoch = 2
    await refused(house.forced(1, "ann bob", antes(ann=5), id="f"), "BATCH_CONFLICT", field="epoch")


async def test_ids_of_one_caller_are_nothing_to_another(house):
    command = c.Deposit("x", "ann", "EUR", 5)
    await house.ledger.deposit(command, caller="person/op")
    balance = await house.ledger.deposit(command, caller="person/other")
    assert balance.amount_minor == 610


async def test_a_sitting_closes_once_and_says_what_it_took_home(house):
    assert (await house.cash_out("ann")).amount_minor == 400
    assert (await house.cash_out("ann")).amount_minor == 400
    assert await house.cash("ann") == 1000
    await refused(house.top_up("ann", 5), "SITTING_CLOSED")
    await refused(house.buy_in("ann", 5), "SITTING_CLOSED")
    await refused(house.buy_in("ann", 5, sitting="bob"), "SITTING_EXISTS")


async def test_a_cash_out_that_comes_first_keeps_its_sitting_from_opening(house):
    await refused(house.cash_out("late"), "SITTING_NOT_FOUND", sitting="late")
    await refused(house.buy_in("ann", 100, sitting="late"), "SITTING_CLOSED")
    await refused(house.cash_out("late"), "SITTING_NOT_FOUND")
    assert await house.cash("ann") == 600


async def test_a_table_plays_in_one_currency(house):
    house.currency = "USD"
    await house.deposit("ann", 50)
    await refused(house.buy_in("ann", 50, sitting="usd"), "CURRENCY_MISMATCH", currency="EUR")
    await refused(house.forced(1, "ann bob"), "CURRENCY_MISMATCH", currency="EUR")
    balances = await house.ledger.get_balances("ann")
    assert balances == c.Balances((c.Balance("EUR", 600), c.Balance("USD", 50)), (c.Balance("EUR", 400),))


async def test_batches_that_wait_together_are_decided_in_order_and_one_refusal_spoils_no_other(house):
    outcomes = await asyncio.gather(
        house.forced(1, "ann bob", antes(ann=5, bob=5)),
        house.collect(1, 1, bets(ann=10_000)),
        house.collect(1, 1, bets(ann=5, bob=5)),
        house.award(1, wins(ann=19)),
        house.void(1),
        house.award(1, wins(ann=20)),
        house.forced(2, "ann bob", antes(ann=1)),
        return_exceptions=True,
    )
    assert [getattr(outcome, "reason", "OK") for outcome in outcomes] == [
        "OK", "INSUFFICIENT_FUNDS", "OK", "POT_MISMATCH", "OK", "HAND_CLOSED", "OK"
    ]  # fmt: skip
    assert (await house.stacks()) == {"ann": 399, "bob": 400, "cid": 400}
