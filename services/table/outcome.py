"""A hand from its last card to where its money belongs: settled or undone. Pure steps on a `Draft`."""

from __future__ import annotations

from typing import Final

from fivedraw.table.v1 import event_pb2
from fivedraw.wallet.v1 import wallet_service_pb2

from services.table import entropy
from services.table.draft import Draft
from services.table.narrate import BrokenHandError, chips, engine_of
from services.table.state import HAND_EFFECTS, RECENT_HANDS_MAX, Hand, Request, SettleHand, UndoHand

TIME_BANK_MAX_MS: Final = 60_000


def settle(draft: Draft, hand: Hand) -> None:
    """The rules have decided the payout: asks the ledger to make it so."""
    engine = hand.engine
    if engine is None:
        raise BrokenHandError("a hand without cards cannot be settled")
    won: dict[int, int] = {}
    for pot in engine.pots:
        for seat, amount in pot.winners.items():
            won[seat] = won.get(seat, 0) + amount
    due = hand.uncollected
    draft.add_effect(
        SettleHand,
        round=due.round if due else 0,
        bets=due.bets if due else (),
        returned=due.returned if due else (),
        wins=chips(hand, won, wallet_service_pb2.TRANSFER_CODE_WIN),
        rake=engine.rake,
        carry_out=engine.carry_out,
        first_epoch=hand.first_epoch,
        first=hand.first,
    )


def hand_settled(draft: Draft, stacks: dict[str, int], next_commitment: bytes) -> None:
    """The ledger has paid the hand out; `stacks` are its own figures, sitting -> chips.

    Raises `BrokenHandError` if they are not those of the rules.
    """
    state = draft.state
    hand = draft.change_hand()
    engine = engine_of(draft)
    for number in hand.seats:
        chips_left = engine.stacks[engine.position(number)]
        if stacks.get(hand.sittings[number]) != chips_left:
            raise BrokenHandError(
                f"hand {hand.number}: seat {number} has {chips_left} by the rules, "
                f"{stacks.get(hand.sittings[number])} in the ledger"
            )
        seat = state.seats.get(number)
        if seat is not None and seat.sitting == hand.sittings[number]:
            growth = state.rulebook.time_bank_growth_ms
            bank_ms = max(seat.time_bank_ms, min(TIME_BANK_MAX_MS, seat.time_bank_ms + growth))
            draft.change_seat(number, stack=chips_left, time_bank_ms=bank_ms)
    pot = sum(each.amount for each in engine.pots) or engine.carry_out
    state.recent_hands = (*state.recent_hands, (draft.now_ms, pot))[-RECENT_HANDS_MAX:]
    state.carry = engine.carry_out
    state.button_stays = engine.outcome == "passed_out" and engine.next_button == hand.button
    draft.tell(hand_settled=event_pb2.HandSettled(next_commitment=next_commitment))
    entropy.committed(draft, next_commitment)
    draft.change_hand(settled=True, uncollected=None)


def undo(draft: Draft, reason: str, by: str, request: Request | None = None) -> None:
    """Gives the hand up: drops what was still to be done for it and asks the ledger to undo it."""
    state = draft.state
    hand = draft.change_hand(void=True, turn=0, cut_seat=0, uncollected=None)
    state.effects = tuple(effect for effect in state.effects if not isinstance(effect, HAND_EFFECTS))
    draft.stop_clock()
    entropy.committed(draft, b"")
    draft.add_effect(UndoHand, reason=reason, by=by, request=request, first_epoch=hand.first_epoch, first=hand.first)


def hand_undone(draft: Draft, undone: UndoHand, stacks: dict[str, int], carry: int, next_commitment: bytes) -> None:
    """The ledger has undone the hand: every chip is back where it was, and so are debts of blinds and the button."""
    hand = draft.change_hand()
    draft.state.button_stays = hand.repeated
    for there in list(draft.state.seats.values()):
        if there.sitting in hand.owed:
            owes_blind, owes_dead = hand.owed[there.sitting]
            draft.change_seat(there.number, owes_blind=owes_blind, owes_dead=owes_dead)
    told = event_pb2.HandVoided(reason=undone.reason, by=undone.by, carry_minor=carry, next_commitment=next_commitment)
    for number in hand.seats:
        seat = draft.state.seats.get(number)
        if seat is None or seat.sitting != hand.sittings[number]:
            continue
        # A hand that never reached the ledger has no stacks there; they were not touched then.
        chips_left = stacks.get(seat.sitting, seat.stack)
        draft.change_seat(number, stack=chips_left)
        told.stacks_minor[number] = chips_left
    draft.state.carry = carry
    draft.tell(hand_voided=told)
    entropy.committed(draft, next_commitment)
    draft.change_hand(settled=True)
