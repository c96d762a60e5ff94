"""A hand up to its deal: who is dealt in, whose button it is, deck and cut, forced bets. Pure steps on a `Draft`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from fivedraw.table.v1 import event_pb2
from fivedraw.wallet.v1 import wallet_service_pb2

from services.rules import hand as rules
from services.rules.awaits import AwaitDeal
from services.rules.commands import Begin
from services.rules.events import AnyEvent, ForcedBetPosted
from services.table import entropy, words
from services.table.draft import Draft
from services.table.narrate import BrokenHandError, engine_of, narrate
from services.table.play import is_away, start_turn
from services.table.state import DealHand, Hand, OpenHand, Seat, SeatChips, ShuffleDeck, TableState

CUT_CLOCK_MS: Final = 3_000


def ready_seats(state: TableState) -> list[Seat]:
    """Seats that will be dealt in, ascending."""
    return [
        state.seats[number]
        for number in sorted(state.seats)
        if not (state.seats[number].joining or state.seats[number].sitting_out or state.seats[number].leaving)
        and state.seats[number].stack > 0
    ]


def clockwise(seats: list[int], after: int) -> list[int]:
    """Seat numbers clockwise, beginning with the first one after `after`."""
    ascending = sorted(seats)
    return [seat for seat in ascending if seat > after] + [seat for seat in ascending if seat <= after]


class Lineup(NamedTuple):
    """Who is dealt into the next hand, ascending, and whose button it is: 0 where lots are still to be drawn."""

    seats: list[Seat]
    button: int


def lineup(state: TableState) -> Lineup:
    """The next hand's seats and its button; fewer than two seats where there can be no hand (RULES, section 6).

    Who owes a big blind gets neither the button nor the small one: these go round among the others, and between the
    button and the big blind it waits. In the big blind's place it pays that; behind it, it posts one, or waits if it
    asked to. Where fewer than two owe nothing, whoever does not ask to wait counts as one that does not owe.
    """
    ready = ready_seats(state)
    if len(ready) < 2:
        return Lineup(ready, 0)
    numbers = [seat.number for seat in ready]
    eager = [seat.number for seat in ready if not (seat.owes_blind and seat.wait_for_blind)]
    if len(eager) < 2:
        return _lined_up(state, _two_of(clockwise(numbers, state.button), eager))
    settled = [seat.number for seat in ready if not seat.owes_blind]
    regular = settled if len(settled) >= 2 else eager
    button = _next_button(state, regular)
    if not button:
        return _lined_up(state, regular)
    small, order = clockwise(regular, button)[0], clockwise(numbers, button)
    beyond = order[order.index(small) + 1 :]
    owing = [number for number in beyond if number == beyond[0] or number in eager]
    return _lined_up(state, regular, owing)


def _lined_up(state: TableState, regular: list[int], owing: Sequence[int] = ()) -> Lineup:
    numbers = sorted({*regular, *owing})
    return Lineup([state.seats[number] for number in numbers], _next_button(state, regular))


def _two_of(order: list[int], eager: list[int]) -> list[int]:
    """The two that play where at most one does not ask to wait, of all in the order in which the button comes to them.

    The one that waits is the next after the other, and so in the big blind; if there is none, it has the button.
    """
    first = order.index(eager[0]) if eager else 0
    return [order[first], order[first + 1]] if first + 1 < len(order) else [order[0], order[first]]


def must_post(state: TableState, lineup: Lineup, seat: Seat) -> bool:
    """Whether this seat would have to post something if these were dealt in."""
    if state.rulebook.ante > 0 or seat.owes_blind:
        return True
    if not lineup.button or not state.rulebook.big_blind:
        return False
    return seat.number in _blinds([each.number for each in lineup.seats], lineup.button)


def _next_button(state: TableState, numbers: list[int]) -> int:
    """The button's seat among these: it stays or moves on; 0 at a table's first hand, where lots are drawn."""
    if not state.button:
        return 0
    if state.button_stays and state.button in numbers:
        return state.button
    return clockwise(numbers, state.button)[0]


def _blinds(numbers: list[int], button: int) -> tuple[int, int]:
    """The seats of small and big blind among these; heads-up the button has the small one."""
    order = clockwise(numbers, button)
    return (order[1], order[0]) if len(order) == 2 else (order[0], order[1])


def begin_hand(draft: Draft, lineup: Lineup) -> None:
    """Asks for a new hand with these seats and this button."""
    state, (seats, button) = draft.state, lineup
    numbers = [seat.number for seat in seats]
    state.last_hand += 1
    state.hand = Hand(
        number=state.last_hand,
        seats=tuple(numbers),
        sittings={seat.number: seat.sitting for seat in seats},
        players={seat.number: seat.player for seat in seats},
        carry_in=state.carry,
        first_epoch=state.epoch,
        first=state.sequence + 1,
        button=button,
        repeated=state.button_stays and button == state.button,
        owed={seat.sitting: (seat.owes_blind, seat.owes_dead) for seat in state.seats.values() if not seat.joining},
    )
    draft.stop_clock()
    draft.add_effect(OpenHand, seats=tuple(numbers), button=button)


def hand_opened(draft: Draft, button: int, deck_number: int, commitment: bytes, chain: bytes) -> None:
    """The hand has its number, its button and a deck: asks for the cut, or goes on without."""
    hand = draft.change_hand(button=button)
    state = draft.state
    state.button = button
    state.button_stays = False
    draft.tell(
        hand_started=event_pb2.HandStarted(
            button=button,
            seats=[
                event_pb2.StartingSeat(
                    seat=number,
                    player=hand.players[number],
                    display_name=state.seats[number].display_name,
                    stack_minor=state.seats[number].stack,
                    sitting=hand.sittings[number],
                )
                for number in hand.seats
            ],
            carry_minor=hand.carry_in,
            deck_number=deck_number,
            commitment=commitment,
            chain=chain,
            options=words.options(state.rulebook, state.settings),
        )
    )
    entropy.committed(draft, commitment)
    cutter = clockwise(list(hand.seats), button)[0]
    if state.rulebook.cut and state.mode != "paused" and not is_away(state, hand, cutter):
        draft.change_hand(cut_seat=cutter)
        start_turn(draft, cutter, "cut", CUT_CLOCK_MS)
    else:
        entropy.ask_for_shuffle(draft, b"", 0)


def deck_shuffled(draft: Draft, root: bytes, shuffle: ShuffleDeck) -> None:
    """The deck's order is fixed: tells what went into it, posts the forced bets and asks for the deal."""
    seeds = [event_pb2.ShuffleSeed(seat=each.seat, seed=each.seed) for each in shuffle.seeds]
    draft.tell(
        deck_committed=event_pb2.DeckCommitted(root=root, cut_by=shuffle.cut_by, cut=shuffle.cut, player_seeds=seeds)
    )
    state = draft.state
    hand = draft.change_hand()
    posts, dead_posts = _posts(state, hand)
    engine = rules.start_hand(
        state.rulebook,
        {number: state.seats[number].stack for number in hand.seats},
        hand.button,
        hand.carry_in,
        posts,
        dead_posts,
        {number: state.seats[number].auto_muck for number in hand.seats},
    )
    events = rules.decide(engine, Begin())
    draft.change_hand(engine=engine)
    narrate(draft, events)
    _note_paid_blinds(draft, hand)
    _note_missed_blinds(draft, hand)
    engine = engine_of(draft)
    awaited = rules.awaits(engine)
    if not isinstance(awaited, AwaitDeal):
        raise BrokenHandError("no deal is due after the forced bets")
    draft.add_effect(
        DealHand,
        seats=awaited.seats,
        dealt_in=tuple(hand.sittings[number] for number in hand.seats),
        postings=_postings(hand, events),
        carry_in=hand.carry_in,
    )


def _posts(state: TableState, hand: Hand) -> tuple[dict[int, int], dict[int, int]]:
    """What newcomers and returners post: live big blinds, and dead small ones (RULES, section 6)."""
    book = state.rulebook
    if not book.big_blind:
        return {}, {}
    in_blinds = _blinds(list(hand.seats), hand.button)
    outside = [state.seats[number] for number in hand.seats if number not in in_blinds]
    posts = {seat.number: book.big_blind for seat in outside if seat.owes_blind}
    dead = {seat.number: book.small_blind for seat in outside if seat.owes_dead and book.small_blind}
    return posts, dead


def _note_paid_blinds(draft: Draft, hand: Hand) -> None:
    """Who is dealt in owes nothing more, but for one who is in for the small blind: it owes the big one still."""
    if not draft.state.rulebook.big_blind:
        return
    small, _ = _blinds(list(hand.seats), hand.button)
    for number in hand.seats:
        seat = draft.state.seats[number]
        draft.change_seat(number, owes_blind=seat.owes_blind and number == small, owes_dead=False)


def _note_missed_blinds(draft: Draft, hand: Hand) -> None:
    """A seat that a blind passes by while it sits out owes both of them (RULES, section 6).

    But for one that the house holds: it does not sit out by its own doing. And who owes the big blind is not dealt in
    for the small one, and misses none by it.
    """
    state = draft.state
    if not state.rulebook.big_blind:
        return
    for seat in list(state.seats.values()):
        if seat.number in hand.seats or seat.joining or not seat.sitting_out or seat.held:
            continue
        small, big = _blinds([*hand.seats, seat.number], hand.button)
        if seat.number == big or (seat.number == small and not seat.owes_blind):
            draft.change_seat(seat.number, owes_blind=True, owes_dead=True)


def _postings(hand: Hand, events: tuple[AnyEvent, ...]) -> tuple[SeatChips, ...]:
    postings = []
    for event in events:
        if isinstance(event, ForcedBetPosted) and event.amount:
            is_ante = event.kind == "ante"
            code = wallet_service_pb2.TRANSFER_CODE_ANTE if is_ante else wallet_service_pb2.TRANSFER_CODE_BLIND
            postings.append(SeatChips(hand.sittings[event.seat], event.amount, code))
    return tuple(postings)
