"""The life of seats and of the table between hands (RULES, section 6). Pure steps on a `Draft`."""

from __future__ import annotations

import hashlib
from typing import Final

from fivedraw.table.v1 import event_pb2, table_service_pb2

from services.runtime.errors import Fault
from services.table import asks, debts, opening, play, waiting, words
from services.table.bus import CONNECTION
from services.table.draft import Draft
from services.table.narrate import BrokenHandError
from services.table.state import (
    BuyIn,
    CashOut,
    CloseRegistry,
    RefundCarry,
    Request,
    Seat,
    TableClock,
    TableState,
    TopUp,
    WriteHistory,
)

IDLE_CARRY_MS: Final = 600_000
LEAVE_REASON: Final = {
    "asked": event_pb2.LEAVE_REASON_ASKED,
    "table_closed": event_pb2.LEAVE_REASON_TABLE_CLOSED,
    "absent": event_pb2.LEAVE_REASON_ABSENT,
}


def own_seat(state: TableState, caller: str) -> Seat:
    """The caller's seat. Raises `NOT_SEATED`."""
    seat = state.seat_of(caller)
    if seat is None or seat.joining:
        raise Fault("NOT_SEATED", f"{caller} has no seat at {state.name}", table=state.name)
    return seat


def sit_down(draft: Draft, ask: asks.SitDown) -> None:
    """Reserves a seat and asks for the buy-in; the answer comes with its result."""
    state, caller = draft.state, ask.request.caller
    if state.mode in ("closing", "closed"):
        raise Fault("TABLE_CLOSED", f"{state.name} is closed", table=state.name)
    taken = state.seat_of(caller)
    if taken is not None:
        raise Fault("ALREADY_SEATED", f"{caller} sits in seat {taken.number}", seat=str(taken.number))
    book = state.rulebook
    number = _free_seat(state, caller, ask.seat)
    least = max(book.min_buy_in_minor, ask.left_with)
    most = max(book.max_buy_in_minor, ask.left_with)
    if ask.buy_in < ask.left_with:
        raise Fault(
            "REENTRY_BELOW_LEFT_STACK",
            f"{ask.buy_in} is less than the {ask.left_with} this player left with",
            tried=str(ask.buy_in),
            least=str(least),
            most=str(most),
        )
    if not least <= ask.buy_in <= most:
        facts = {"tried": str(ask.buy_in), "least": str(least), "most": str(most)}
        raise Fault("BUY_IN_OUT_OF_RANGE", f"a buy-in of {ask.buy_in} is not within {least} to {most}", **facts)
    sitting = f"{state.table_id}.{state.epoch}.{state.effects_made + 1}"
    state.seats[number] = Seat(number, caller, sitting, time_bank_ms=book.time_bank_ms)
    waiting.remove(draft, caller)
    draft.promise(ask.request)
    draft.add_effect(BuyIn, hand=0, seat=number, sitting=sitting, player=caller, amount=ask.buy_in, request=ask.request)


def _free_seat(state: TableState, caller: str, wanted: int) -> int:
    """The seat wanted, or any that is free; one kept for a player of the waiting list is free for them alone."""
    seats = state.rulebook.seats
    if wanted > seats:
        facts = {"tried": str(wanted), "most": str(seats)}
        raise Fault("SEAT_NOT_FOUND", f"seat {wanted} is not one of 1 to {seats}", **facts)
    free = waiting.free_seats(state, caller)
    if wanted and wanted not in free:
        raise Fault("SEAT_TAKEN", f"seat {wanted} is taken", seat=str(wanted))
    if not free:
        raise Fault("SEAT_TAKEN", f"all {seats} seats of {state.name} are taken", seat="0")
    offered = next((each.seat for each in state.waiting if each.player == caller and each.seat), 0)
    return wanted or offered or free[0]


def bought_in(draft: Draft, effect: BuyIn, stack: int, display_name: str) -> None:
    """The ledger has the buy-in: the seat is taken. Who is back lately owes what was owed on leaving."""
    state = draft.state
    draft.change_seat(effect.seat, joining=False, stack=stack, display_name=display_name)
    seat = as_newcomer(draft, effect.seat)
    told = words.seat_view(state, seat)
    draft.tell(seat_taken=event_pb2.SeatTaken(seat=told))
    if effect.request is not None:
        draft.answer(effect.request, table_service_pb2.SitDownResponse(seat=told))


def as_newcomer(draft: Draft, number: int) -> Seat:
    """Notes what a newcomer owes: a blind where the others play already, and what it left owing lately."""
    state = draft.state
    owed = debts.taken(draft, state.seats[number].player)
    others = [seat for seat in opening.ready_seats(state) if seat.number != number]
    joined_late = state.last_hand > 0 and len(others) >= 2
    return draft.change_seat(
        number,
        owes_blind=owed is not None or (joined_late and state.rulebook.big_blind > 0),
        owes_dead=owed is not None and owed.is_dead,
    )


def buy_in_refused(draft: Draft, effect: BuyIn) -> None:
    """The ledger refused the buy-in: the seat is free again. Nobody was told of it."""
    del draft.state.seats[effect.seat]
    waiting.offer(draft)


def top_up(draft: Draft, ask: asks.TopUp) -> None:
    """Adds chips now, or notes them for the end of the hand."""
    state = draft.state
    seat = own_seat(state, ask.request.caller)
    if seat.leaving:
        raise Fault("NOT_SEATED", f"{seat.player} is leaving {state.name}", table=state.name)
    mine = (effect for effect in state.effects if isinstance(effect, TopUp) and effect.sitting == seat.sitting)
    most = state.rulebook.max_buy_in_minor - seat.stack - seat.top_up - sum(effect.amount for effect in mine)
    if not 1 <= ask.amount <= most:
        facts = {"tried": str(ask.amount), "least": "1", "most": str(max(0, most))}
        raise Fault("BUY_IN_OUT_OF_RANGE", f"a top-up of {ask.amount} is not within 1 to {max(0, most)}", **facts)
    if _plays(state, seat):
        promise = seat.top_up_id or f"{state.epoch}.{state.sequence}"
        draft.change_seat(seat.number, top_up=seat.top_up + ask.amount, top_up_id=promise)
        told = table_service_pb2.TopUpResponse(stack_minor=seat.stack, after_hand=True)
        draft.answer(ask.request, told)
        return
    draft.promise(ask.request)
    draft.add_effect(
        TopUp,
        hand=0,
        seat=seat.number,
        sitting=seat.sitting,
        amount=ask.amount,
        request=ask.request,
        promise=_promise(ask.request),
    )


def topped_up(draft: Draft, effect: TopUp, stack: int) -> None:
    """The ledger has added the chips."""
    seat = draft.state.seats.get(effect.seat)
    if seat is None or seat.sitting != effect.sitting:
        raise BrokenHandError(f"the top-up of sitting {effect.sitting} has no seat")
    if stack == seat.stack:
        was_topped_up(draft, effect)
        return
    draft.change_seat(effect.seat, stack=stack)
    told = event_pb2.StackChanged(seat=effect.seat, stack_minor=stack, added_minor=effect.amount)
    draft.tell(stack_changed=told)
    if seat.out_of_chips:
        _change(draft, effect.seat, "sit_in", sitting_out=False, out_of_chips=False)
    if effect.request is not None:
        draft.answer(effect.request, table_service_pb2.TopUpResponse(stack_minor=stack))


def was_topped_up(draft: Draft, effect: TopUp) -> None:
    """The ledger had added the chips before: they are in the stack already."""
    seat = draft.state.seats.get(effect.seat)
    if seat is not None and effect.request is not None:
        draft.answer(effect.request, table_service_pb2.TopUpResponse(stack_minor=seat.stack))


def update_seat(draft: Draft, ask: asks.UpdateSeat) -> None:
    """Sits out or in, and sets how the seat is treated; only the first is told to others."""
    seat = own_seat(draft.state, ask.request.caller)
    most = draft.state.rulebook.max_buy_in_minor
    if ask.auto_rebuy is not None and not 0 <= ask.auto_rebuy <= most:
        facts = {"tried": str(ask.auto_rebuy), "least": "0", "most": str(most)}
        raise Fault("BUY_IN_OUT_OF_RANGE", f"a rebuy of {ask.auto_rebuy} is not within 0 to {most}", **facts)
    wishes = {
        "auto_muck": ask.auto_muck,
        "wait_for_blind": ask.wait_for_blind,
        "auto_post": ask.auto_post,
        "auto_rebuy": ask.auto_rebuy,
    }
    changes = {name: wish for name, wish in wishes.items() if wish is not None}
    if ask.sitting_out is not None:
        # Whatever it was before, it is the player's own wish now.
        changes["out_of_chips"] = changes["held"] = False
    seat = draft.change_seat(seat.number, **changes)
    if ask.sitting_out is not None and ask.sitting_out != seat.sitting_out:
        word = "sit_out" if ask.sitting_out else "sit_in"
        seat = _change(draft, seat.number, word, sitting_out=ask.sitting_out, missed_clocks=0)
    told = table_service_pb2.UpdateSeatResponse(
        seat=words.seat_view(draft.state, seat), settings=words.seat_settings(seat)
    )
    draft.answer(ask.request, told)


def connection(draft: Draft, player: str, connected: bool) -> bool:
    """Notes that a player's last stream ended, or that one is there again. False if that is known.

    A seat that was held for its player plays again.
    """
    seat = draft.state.seat_of(player)
    if seat is None or seat.joining or seat.connected == connected:
        return False
    if not (connected and seat.held):
        _change(draft, seat.number, CONNECTION, connected=connected)
        return True
    _change(draft, seat.number, CONNECTION, connected=True, sitting_out=False, held=False)
    wake(draft)
    between_hands(draft)
    return True


def leave(draft: Draft, ask: asks.Leave) -> None:
    """Leaves at once between hands; in a hand, folds when the turn comes and is cashed out after it."""
    state = draft.state
    seat = own_seat(state, ask.request.caller)
    if not seat.leaving:
        seat = _change(draft, seat.number, "leaving", leaving=True)
    if _plays(state, seat):
        told = table_service_pb2.LeaveTableResponse(after_hand=True)
        draft.answer(ask.request, told)
        play.leave_turn(draft, seat.number)
        return
    if any(isinstance(effect, CashOut) and effect.sitting == seat.sitting for effect in state.effects):
        told = table_service_pb2.LeaveTableResponse(after_hand=True)
        draft.answer(ask.request, told)
        return
    draft.promise(ask.request)
    draft.add_effect(CashOut, hand=0, seat=seat.number, sitting=seat.sitting, request=ask.request)


def cashed_out(draft: Draft, effect: CashOut, amount: int) -> None:
    """The ledger has moved the stack to the player's cash: the seat is free."""
    seat = draft.state.seats.get(effect.seat)
    if seat is not None and seat.sitting == effect.sitting:
        debts.note(draft, seat)
        del draft.state.seats[effect.seat]
        draft.tell(
            seat_left=event_pb2.SeatLeft(
                seat=seat.number, player=seat.player, amount_minor=amount, reason=LEAVE_REASON[seat.leave_why]
            )
        )
        waiting.offer(draft)
    if effect.request is not None:
        told = table_service_pb2.LeaveTableResponse(amount_minor=amount)
        draft.answer(effect.request, told)


def carry_refunded(draft: Draft, amount: int) -> None:
    """The ledger has given the carry back."""
    draft.state.carry = 0
    draft.tell(carry_refunded=event_pb2.CarryRefunded(amount_minor=amount))


def between_hands(draft: Draft) -> None:
    """Whatever is due while no hand is played: leavers, top-ups, the next hand's clock, the end of the table."""
    state = draft.state
    if state.playing is not None or state.mode == "closed":
        return
    if state.mode == "closing":
        _closing(draft)
        return
    if state.pause_after:
        pause(draft, state.pause_after)
    for seat in list(state.seats.values()):
        _settle_seat(draft, seat)
    if state.mode != "open" or state.effects or state.clock is not None:
        return
    if state.hand is not None or len(opening.ready_seats(state)) >= 2:
        draft.start_clock(TableClock("next_hand", state.settings.hand_interval_ms))
    elif state.carry:
        draft.start_clock(TableClock("idle_carry", IDLE_CARRY_MS))


def next_hand_due(draft: Draft) -> None:
    """The pause between hands is over: the last hand's history is due, and a new hand if two are ready."""
    _end_last_hand(draft)
    draft.stop_clock()
    if draft.state.mode != "open":
        return
    lineup = _lineup(draft)
    if len(lineup.seats) >= 2:
        opening.begin_hand(draft, lineup)


def _lineup(draft: Draft) -> opening.Lineup:
    """Who is dealt in; seats that would have to post and do not want to sit out first."""
    while True:
        state, lineup = draft.state, opening.lineup(draft.state)
        unwilling = [seat for seat in lineup.seats if not seat.auto_post and opening.must_post(state, lineup, seat)]
        if len(lineup.seats) < 2 or not unwilling:
            return lineup
        for seat in unwilling:
            sit_out(draft, seat.number, "would_not_post")


def idle_carry_due(draft: Draft) -> None:
    """Nobody has played for the carry for too long: it goes back to those who paid it (RULES, section 5)."""
    draft.stop_clock()
    draft.add_effect(RefundCarry, hand=0)


def wake(draft: Draft) -> None:
    """A seat was filled or came back: a clock that only waited for company makes way for the next hand's."""
    clock = draft.state.clock
    if clock is not None and clock.kind == "idle_carry" and len(opening.ready_seats(draft.state)) >= 2:
        draft.stop_clock()


def top_up_refused(draft: Draft, effect: TopUp) -> None:
    """The ledger refused a top-up. One that nobody waits for, noted in a hand or a rebuy, is told as an event.

    A rebuy that was made without asking is not tried again.
    """
    seat = draft.state.seats.get(effect.seat)
    if effect.request is not None or seat is None or seat.sitting != effect.sitting:
        return
    if seat.stack > 0:
        _change(draft, effect.seat, "top_up_refused")
    else:
        alone = seat.out_of_chips or not seat.sitting_out
        _change(draft, effect.seat, "cannot_rebuy", auto_rebuy=0, sitting_out=True, out_of_chips=alone)


def pause(draft: Draft, reason: str) -> None:
    """Stands the table still; a turn's clock keeps what it had left."""
    state = draft.state
    state.mode, state.mode_reason, state.pause_after = "paused", reason, ""
    if state.clock is not None and state.clock.kind in ("next_hand", "idle_carry"):
        draft.stop_clock()
    elif state.clock is not None:
        # Where the store lost the clock's end, nobody can say what was left.
        left_ms = draft.deadline_ms - draft.now_ms if draft.deadline_ms else state.clock.duration_ms
        draft.hold_clock(max(0, left_ms))
    draft.tell(table_paused=event_pb2.TablePaused(reason=reason))


def sit_out(draft: Draft, number: int, reason: str) -> None:
    """Sits a seat out from the next hand on."""
    _change(draft, number, reason, sitting_out=True)


def _end_last_hand(draft: Draft) -> None:
    hand = draft.state.hand
    if hand is None or not hand.settled:
        return
    draft.add_effect(WriteHistory, hand=hand.number, epoch=hand.first_epoch)
    draft.state.hand = None


def _settle_seat(draft: Draft, seat: Seat) -> None:
    state = draft.state
    busy = {effect.sitting for effect in state.effects if isinstance(effect, CashOut | TopUp | BuyIn)}
    if seat.joining or seat.sitting in busy:
        return
    if seat.leaving:
        draft.add_effect(CashOut, hand=0, seat=seat.number, sitting=seat.sitting)
        return
    if seat.top_up:
        amount = min(seat.top_up, state.rulebook.max_buy_in_minor - seat.stack)
        draft.change_seat(seat.number, top_up=0, top_up_id="")
        if amount > 0:
            facts = {"seat": seat.number, "sitting": seat.sitting, "amount": amount, "promise": seat.top_up_id}
            draft.add_effect(TopUp, hand=0, **facts)
            return
    if seat.stack == 0 and seat.auto_rebuy and not seat.sitting_out:
        amount = min(seat.auto_rebuy, state.rulebook.max_buy_in_minor)
        draft.add_effect(TopUp, hand=0, seat=seat.number, sitting=seat.sitting, amount=amount)
        return
    if seat.stack == 0 and not seat.sitting_out:
        _change(draft, seat.number, "no_chips", sitting_out=True, out_of_chips=True)


def _closing(draft: Draft) -> None:
    state = draft.state
    if state.effects:
        return
    _end_last_hand(draft)
    draft.stop_clock()
    if state.carry:
        draft.add_effect(RefundCarry, hand=0)
        return
    for seat in list(state.seats.values()):
        draft.change_seat(seat.number, leaving=True, leave_why="table_closed")
        draft.add_effect(CashOut, hand=0, seat=seat.number, sitting=seat.sitting)
    if not state.seats:
        state.mode = "closed"
        draft.tell(table_closed=event_pb2.TableClosed(reason=state.mode_reason))
        draft.add_effect(CloseRegistry, hand=0)


def _change(draft: Draft, number: int, reason: str, **changes: object) -> Seat:
    seat = draft.change_seat(number, **changes)
    told = event_pb2.SeatChanged(seat=words.seat_view(draft.state, seat), reason=reason)
    draft.tell(seat_changed=told)
    return seat


def _promise(request: Request) -> str:
    """Names a top-up to the ledger by who asked for it how: the same again, whatever the store forgot, is the same."""
    asked = f"{request.caller} {request.request_id} ".encode() + request.digest
    return f"r{hashlib.sha256(asked).hexdigest()[:32]}"


def _plays(state: TableState, seat: Seat) -> bool:
    hand = state.playing
    return hand is not None and hand.sittings.get(seat.number) == seat.sitting
