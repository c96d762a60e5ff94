"""The waiting list: who waits, for whom a free seat is kept, and until when. Pure steps on a `Draft`."""

from __future__ import annotations

from typing import Final

import msgspec
from fivedraw.table.v1 import event_pb2, table_pb2, table_service_pb2

from services.runtime.errors import Fault
from services.table import asks
from services.table.draft import Draft
from services.table.state import WAITING_MAX, TableState, Waiting

OFFER_MS: Final = 30_000


def kept_seats(state: TableState, player: str = "") -> set[int]:
    """Seats kept for others than `player`."""
    return {each.seat for each in state.waiting if each.seat and each.player != player}


def free_seats(state: TableState, player: str = "") -> list[int]:
    """Seats that `player` may take, ascending."""
    kept = kept_seats(state, player)
    return [seat for seat in range(1, state.rulebook.seats + 1) if seat not in state.seats and seat not in kept]


def next_expiry_ms(state: TableState) -> int:
    """When the first offer ends, in the store's time; 0 if there is none."""
    return min((each.until_ms for each in state.waiting if each.seat), default=0)


def join(draft: Draft, ask: asks.JoinWaiting) -> None:
    """Puts a player at the end of the list."""
    state, caller = draft.state, ask.request.caller
    if state.mode in ("closing", "closed"):
        raise Fault("TABLE_CLOSED", f"{state.name} is closed", table=state.name)
    if state.seat_of(caller) is not None:
        raise Fault("ALREADY_SEATED", f"{caller} has a seat at {state.name}", table=state.name)
    place = place_of(state, caller)
    if not place:
        free = free_seats(state)
        if free:
            raise Fault("SEATS_FREE", f"seat {free[0]} of {state.name} is free", seat=str(free[0]))
        if len(state.waiting) >= WAITING_MAX:
            raise Fault("WAITING_LIST_FULL", f"{WAITING_MAX} players wait already", most=str(WAITING_MAX))
        state.waiting = (*state.waiting, Waiting(caller))
        place = len(state.waiting)
        _tell(draft)
    draft.answer(ask.request, table_service_pb2.JoinWaitingListResponse(place=place))


def leave(draft: Draft, ask: asks.LeaveWaiting) -> None:
    """Takes a player off the list; a seat kept for them goes to the next."""
    if not place_of(draft.state, ask.request.caller):
        raise Fault("NOT_WAITING", f"{ask.request.caller} does not wait at {draft.state.name}")
    remove(draft, ask.request.caller)
    draft.answer(ask.request, table_service_pb2.LeaveWaitingListResponse())


def remove(draft: Draft, player: str) -> None:
    """Takes a player off the list, who sat down or gave up; nothing if they are not on it."""
    state = draft.state
    if place_of(state, player):
        state.waiting = tuple(each for each in state.waiting if each.player != player)
        _tell(draft)


def place_of(state: TableState, player: str) -> int:
    """The player's place on the list, from 1; 0 if not on it."""
    return next((place for place, each in enumerate(state.waiting, 1) if each.player == player), 0)


def offer(draft: Draft) -> None:
    """Keeps each free seat for the first who has no offer yet."""
    state = draft.state
    if state.mode in ("closing", "closed"):
        return
    for each in state.waiting:
        free = free_seats(state)
        if not free:
            return
        if each.seat:
            continue
        kept = msgspec.structs.replace(each, seat=free[0], until_ms=draft.now_ms + OFFER_MS)
        state.waiting = tuple(kept if other.player == each.player else other for other in state.waiting)
        _tell(draft, kept)


def expire(draft: Draft) -> bool:
    """Takes those off the list who let their offer pass. False if nobody did."""
    state = draft.state
    late = [each for each in state.waiting if each.seat and each.until_ms <= draft.now_ms]
    if not late:
        return False
    state.waiting = tuple(each for each in state.waiting if each not in late)
    _tell(draft)
    offer(draft)
    return True


def offer_of(state: TableState, player: str) -> table_pb2.SeatOffer | None:
    """The seat kept for this player, or None."""
    for each in state.waiting:
        if each.player == player and each.seat:
            told = table_pb2.SeatOffer(seat=each.seat)
            told.expire_time.FromMilliseconds(each.until_ms)
            return told
    return None


def _tell(draft: Draft, offered: Waiting | None = None) -> None:
    length = len(draft.state.waiting)
    public = event_pb2.WaitingListChanged(waiting=length)
    if offered is None:
        draft.tell(waiting_list_changed=public)
        return
    kept = offer_of(draft.state, offered.player)
    own = {"waiting_list_changed": event_pb2.WaitingListChanged(waiting=length, your_offer=kept)}
    draft.tell({0: own}, player=offered.player, waiting_list_changed=public)
