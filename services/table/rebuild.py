"""Making a table anew from what SQL knows of it, when the store has lost its state or fallen behind the ledger.

The registry gives a new epoch, behind which ledger and deck refuse everything older. The open hand is void and
refunded by the ledger (or, if its award was in, over); seats and stacks are those of registry and ledger.
"""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from fivedraw.deck.v1 import deck_service_pb2 as deck
from fivedraw.table.v1 import event_pb2
from fivedraw.wallet.v1 import wallet_service_pb2 as wallet

from services.rules.rulebook import RulebookInvalid, RulebookUnknown, load_rulebook
from services.runtime.errors import Fault
from services.table import debts, seating, waiting
from services.table.draft import Draft
from services.table.registry import Sitting, TableRecord
from services.table.state import Hand, Seat, SettleHand, TableState, TopUp, UndoHand, WriteHistory
from services.table.store import StoreUnavailableError, Unwritten
from services.table.wanted import fields_of, keep_newer

if TYPE_CHECKING:
    from services.table.parts import Parts

# A store that has lost more hands of a table than this has lost minutes; of the older ones nobody asks who paid.
LOST_HANDS_READ_MAX: Final = 20

LOST_HAND: Final = "the house lost the hand's last moments"


async def is_behind(parts: Parts, state: TableState) -> bool:
    """Whether registry or ledger know of things that this state does not."""
    record = await parts.registry.get_table(state.table_id)
    if record.epoch != state.epoch or record.last_hand > state.last_hand:
        return True
    answer = await parts.ledger.get_table_ledger(wallet.GetTableLedgerRequest(table=state.name))
    ledger = answer.ledger
    if ledger.epoch > state.epoch or ledger.last_hand > state.last_hand:
        return True
    hand = state.playing
    if hand is None or ledger.last_hand != hand.number:
        return False
    ending = any(isinstance(effect, SettleHand | UndoHand) for effect in state.effects)
    return ledger.last_hand_outcome != wallet.HAND_OUTCOME_OPEN and not ending


async def rebuild(parts: Parts, table_id: str, stale: TableState | None, reason: str, now_ms: int) -> Draft:
    """A draft of the table in a new epoch. `stale` is the state that is given up, if one could be read.

    With an empty reason the table is simply new, and keeps its epoch. Raises `Fault`.
    """
    record = await parts.registry.get_table(table_id)
    fresh = not reason and not record.last_hand and not await parts.registry.open_sittings(table_id)
    if fresh:
        return Draft(_empty(record), now_ms)
    epoch = await parts.registry.raise_epoch(table_id)
    table = f"tables/{table_id}"
    why = reason or "the table's state was lost"
    fenced = await parts.ledger.fence_table(wallet.FenceTableRequest(table=table, epoch=epoch, reason=why))
    fenced_deck = await parts.decks.fence_table(deck.FenceTableRequest(table=table, epoch=epoch))
    state = _empty(await parts.registry.get_table(table_id))
    state.epoch = epoch
    state.last_hand = max(state.last_hand, fenced.ledger.last_hand)
    state.carry = fenced.ledger.carry_minor
    state.commitment = fenced_deck.next_commitment
    paid = await _paid_blinds(parts, stale, fenced.ledger) if stale is not None else frozenset()
    state.seats = await _seats(parts, state, fenced.ledger, stale, paid)
    if stale is not None:
        keep_newer(state, stale)
        # Seats are offered anew below.
        state.waiting = tuple(msgspec.structs.replace(each, seat=0, until_ms=0) for each in stale.waiting)
        # What was answered stays answered; what was only taken in can be asked again, but for top-ups: see below.
        state.answers = {
            caller: tuple(each for each in answers if each.answer) for caller, answers in stale.answers.items()
        }
        state.debts = stale.debts
        state.button_stays = _button_stays(stale, state, fenced.voided_hand)
    draft = Draft(state, now_ms)
    if stale is not None:
        _carry_over(draft, stale, paid)
    draft.tell(table_rebuilt=event_pb2.TableRebuilt(reason=why, voided_hand=fenced.voided_hand))
    lost = fenced.voided_hand or (stale.playing.number if stale is not None and stale.playing is not None else 0)
    if lost:
        last = fenced.ledger.last_hand, fenced.ledger.last_hand_outcome
        await _close_lost_hand(parts, draft, stale, _LostHand(lost, last != (lost, wallet.HAND_OUTCOME_AWARDED), why))
    waiting.offer(draft)
    seating.between_hands(draft)
    return draft


def _empty(record: TableRecord) -> TableState:
    try:
        book = load_rulebook(record.rulebook).with_options(record.overrides)
    except (RulebookUnknown, RulebookInvalid) as error:
        raise Fault("RULEBOOK_INVALID", str(error), rulebook=record.rulebook) from None
    mode = fields_of(record.wanted) | ({"mode": "closed"} if record.closed_ms else {})
    return TableState(
        table_id=record.table_id,
        display_name=record.display_name,
        rulebook=book.without_texts(),
        currency=record.currency,
        created_ms=record.created_ms,
        settings=record.settings,
        template=record.template,
        epoch=record.epoch,
        overrides=record.overrides,
        last_hand=record.last_hand,
        button=record.button,
        **mode,
    )


async def _seats(
    parts: Parts, state: TableState, ledger: wallet.TableLedger, stale: TableState | None, paid: Set[str]
) -> dict[int, Seat]:
    """Who sits where with which stack, by registry and ledger; what those do not know is taken from the old state."""
    stacks = {stack.sitting: stack for stack in ledger.stacks if stack.open}
    seats: dict[int, Seat] = {}
    for sitting in await parts.registry.open_sittings(state.table_id):
        stack = stacks.pop(sitting.sitting, None)
        if stack is None:
            # The buy-in never reached the ledger, or the cash-out did: nobody sits there.
            await parts.registry.close_sitting(sitting.sitting, None, parts.clock.now_ms())
            continue
        old = _as_it_was(stale, sitting, paid) or Seat(
            sitting.seat, sitting.player, sitting.sitting, time_bank_ms=state.rulebook.time_bank_ms
        )
        if stale is None:
            # Whether its player asked to sit out is lost too: nobody is charged who may not want to play.
            old = msgspec.structs.replace(old, sitting_out=True, held=True, connected=False)
        seats[sitting.seat] = msgspec.structs.replace(
            old, display_name=sitting.display_name, stack=stack.stack_minor, joining=False
        )
    for orphan in stacks.values():
        # The registry had closed this sitting; the ledger's part of leaving was still to come.
        batch_id = f"{state.table_id}:{state.epoch}:orphan:{orphan.sitting}"
        await parts.ledger.cash_out(
            wallet.CashOutRequest(batch_id=batch_id, table=state.name, epoch=state.epoch, sitting=orphan.sitting)
        )
    return seats


def _as_it_was(stale: TableState | None, sitting: Sitting, paid: Set[str]) -> Seat | None:
    """The seat of this sitting with all that its player asked for or was promised, or owes; None if it is not known.

    What belongs to the hand or the deck that is given up is left out.
    """
    seat = stale.seats.get(sitting.seat) if stale is not None else None
    if stale is None or seat is None or seat.sitting != sitting.sitting:
        return None
    owes_blind, owes_dead = _owed(stale, seat, paid)
    return msgspec.structs.replace(
        seat, preselected="", preselected_hand=0, call_most=0, seed=b"", owes_blind=owes_blind, owes_dead=owes_dead
    )


def _owed(stale: TableState, seat: Seat, paid: Set[str]) -> tuple[bool, bool]:
    """Whether a seat of the old state owes a blind, and the dead one: as before the hand that is given up."""
    if seat.sitting in paid:
        return False, False
    hand = stale.playing
    return (hand.owed if hand is not None else {}).get(seat.sitting, (seat.owes_blind, seat.owes_dead))


async def _paid_blinds(parts: Parts, stale: TableState, ledger: wallet.TableLedger) -> Set[str]:
    """The sittings that paid a blind in hands of which the old state does not know that they were played out."""
    paid: set[str] = set()
    first = stale.playing.number if stale.playing is not None else stale.last_hand + 1
    for number in range(max(first, ledger.last_hand - LOST_HANDS_READ_MAX + 1), ledger.last_hand + 1):
        try:
            answer = await parts.ledger.get_hand(wallet.GetHandRequest(table=f"tables/{stale.table_id}", hand=number))
        except Fault as fault:
            if fault.reason != "HAND_NOT_FOUND":
                raise
            continue
        if answer.hand.outcome == wallet.HAND_OUTCOME_AWARDED:
            paid |= {each.sitting for each in answer.hand.sittings if each.blind_minor}
    return paid


def _button_stays(stale: TableState, state: TableState, voided_hand: int) -> bool:
    """Whether the deal that is given up, or the next one, is a repeat with the same button."""
    if stale.playing is not None:
        return stale.playing.repeated and stale.playing.number == state.last_hand
    return stale.button_stays and state.last_hand in (stale.last_hand, voided_hand and stale.last_hand + 1)


def _carry_over(draft: Draft, stale: TableState, paid: Set[str]) -> None:
    """What the old state had still to do for players, and what they owe who left or came in the moments lost."""
    state = draft.state
    for seat in stale.seats.values():
        if state.seat_of(seat.player) is None:
            owes_blind, owes_dead = _owed(stale, seat, paid)
            debts.note(draft, msgspec.structs.replace(seat, owes_blind=owes_blind, owes_dead=owes_dead))
    for seat in list(state.seats.values()):
        old = stale.seats.get(seat.number)
        if old is None or old.sitting != seat.sitting or old.joining:
            came = seating.as_newcomer(draft, seat.number)
            if came.sitting in paid:
                draft.change_seat(seat.number, owes_blind=False, owes_dead=False)
    for effect in stale.effects:
        if not isinstance(effect, TopUp) or not effect.promise:
            continue
        there = state.seats.get(effect.seat)
        if there is not None and there.sitting == effect.sitting:
            # It was under way. The ledger knows it by its promise, and does nothing twice.
            facts = {"seat": effect.seat, "sitting": effect.sitting, "amount": effect.amount}
            draft.add_effect(TopUp, hand=0, promise=effect.promise, request=effect.request, **facts)
            if effect.request is not None:
                draft.promise(effect.request)


class _LostHand(NamedTuple):
    """A hand whose state is given up; not `is_void` if the ledger had paid it out already."""

    number: int
    is_void: bool
    why: str


async def _close_lost_hand(parts: Parts, draft: Draft, stale: TableState | None, lost: _LostHand) -> None:
    """Tells the end of the lost hand and sees to its history; its first events are in the old epoch, if anywhere."""
    state = draft.state
    known = stale.hand if stale is not None and stale.hand is not None and stale.hand.number == lost.number else None
    first_epoch, first = (known.first_epoch, known.first) if known is not None else (state.epoch, state.sequence)
    state.hand = Hand(
        number=lost.number,
        seats=known.seats if known is not None else (),
        sittings=known.sittings if known is not None else {},
        players=known.players if known is not None else {},
        carry_in=0,
        first_epoch=first_epoch,
        first=first,
        button=state.button,
        void=lost.is_void,
    )
    if lost.is_void:
        why = f"{LOST_HAND}: {lost.why}"
        told = event_pb2.HandVoided(reason=why, by="house", carry_minor=state.carry, next_commitment=state.commitment)
        for seat in state.seats.values():
            told.stacks_minor[seat.number] = seat.stack
        draft.tell(hand_voided=told)
    try:
        await parts.store.mark_unwritten(Unwritten(state.table_id, first_epoch, lost.number, first_epoch, first))
    except StoreUnavailableError as error:
        raise Fault("SERVICE_UNAVAILABLE", "the tables' store is out of reach") from error
    state.hand = None
    draft.add_effect(WriteHistory, hand=lost.number, epoch=first_epoch)
