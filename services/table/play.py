"""The life of a hand: from the number to the settled money. Pure steps on a `Draft`; effects are left as intents.

A hand goes: OpenHand, (cut), ShuffleDeck, DealHand, then turns, with CollectBets after a round, ExchangeCards after a
discard, and SettleHand when the rules have decided the payout. While one of these effects is pending nobody is to act.
"""

from __future__ import annotations

from typing import Final

import msgspec
from fivedraw.table.v1 import event_pb2
from fivedraw.wallet.v1 import wallet_service_pb2

from services.rules import hand as rules
from services.rules.awaits import (
    AwaitAction,
    AwaitDeal,
    AwaitDiscard,
    AwaitExchange,
    AwaitLateCard,
    AwaitNothing,
)
from services.rules.commands import AnyCommand, Begin, ClockRanOut, DeliverDeal, DeliverExchange, DeliverLateCard
from services.rules.events import AnyEvent, ForcedBetPosted
from services.rules.state import HandState
from services.table import preselection, words
from services.table.draft import Draft
from services.table.narrate import BrokenHandError, Reshuffled, chips, narrate
from services.table.state import (
    HAND_EFFECTS,
    RECENT_HANDS_MAX,
    CollectBets,
    DealHand,
    DealLateCard,
    ExchangeCards,
    Hand,
    OpenHand,
    Request,
    Seat,
    SeatChips,
    SettleHand,
    ShuffleDeck,
    TableClock,
    TableState,
    UndoHand,
)

CUT_CLOCK_MS: Final = 3_000
TIME_BANK_MAX_MS: Final = 60_000
MISSED_CLOCKS_MAX: Final = 2


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


def blinds_of(state: TableState, seats: list[Seat]) -> tuple[int, int]:
    """The seats that would post small and big blind if these were dealt in; zeros where lots are still to be drawn."""
    numbers = [seat.number for seat in seats]
    button = _next_button(state, numbers)
    if not button or not state.rulebook.big_blind:
        return 0, 0
    order = clockwise(numbers, button)
    return (order[1], order[0]) if len(order) == 2 else (order[0], order[1])


def must_post(state: TableState, seats: list[Seat], seat: Seat) -> bool:
    """Whether this seat would have to post something if these were dealt in."""
    return state.rulebook.ante > 0 or seat.owes_blind or seat.number in blinds_of(state, seats)


def begin_hand(draft: Draft, seats: list[Seat]) -> None:
    """Asks for a new hand with these seats."""
    state = draft.state
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
        button=_next_button(state, numbers),
    )
    draft.stop_clock()
    draft.add_effect(OpenHand, seats=tuple(numbers), button=state.hand.button)


def _next_button(state: TableState, numbers: list[int]) -> int:
    """The button's seat: it stays or moves on; 0 at a table's first hand, where lots are drawn."""
    if not state.button:
        return 0
    if state.button_stays and state.button in numbers:
        return state.button
    return clockwise(numbers, state.button)[0]


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
    cutter = clockwise(list(hand.seats), button)[0]
    if state.rulebook.cut and state.mode != "paused" and not _is_away(state, hand, cutter):
        draft.change_hand(cut_seat=cutter)
        _start_turn(draft, cutter, "cut", CUT_CLOCK_MS)
    else:
        draft.add_effect(ShuffleDeck, cut=b"", cut_by=0)


def cut_deck(draft: Draft, entropy: bytes, cut_by: int) -> int:
    """Takes the cut (or its absence) and asks for the shuffle; returns the sequence of the last event so far."""
    draft.change_hand(turn=0, cut_seat=0)
    draft.stop_clock()
    draft.add_effect(ShuffleDeck, cut=entropy, cut_by=cut_by)
    return draft.state.sequence


def deck_shuffled(draft: Draft, root: bytes, cut_by: int) -> None:
    """The deck's order is fixed: posts the forced bets and asks for the deal."""
    draft.tell(deck_committed=event_pb2.DeckCommitted(root=root, cut_by=cut_by))
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
    for number in hand.seats:
        draft.change_seat(number, owes_blind=False, owes_dead=False)
    _note_missed_blinds(draft, hand)
    engine = _engine(draft)
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
    in_blinds = set(clockwise(list(hand.seats), hand.button)[:2])
    owing = [number for number in hand.seats if state.seats[number].owes_blind and number not in in_blinds]
    posts = dict.fromkeys(owing, book.big_blind)
    dead = {number: book.small_blind for number in owing if state.seats[number].owes_dead and book.small_blind}
    return posts, dead


def _note_missed_blinds(draft: Draft, hand: Hand) -> None:
    """A seat that was passed over while it sat out owes its blinds when it comes back."""
    if not draft.state.rulebook.big_blind:
        return
    for seat in list(draft.state.seats.values()):
        if seat.number not in hand.seats and not seat.joining and seat.sitting_out:
            draft.change_seat(seat.number, owes_blind=True, owes_dead=True)


def _postings(hand: Hand, events: tuple[AnyEvent, ...]) -> tuple[SeatChips, ...]:
    postings = []
    for event in events:
        if isinstance(event, ForcedBetPosted) and event.amount:
            is_ante = event.kind == "ante"
            code = wallet_service_pb2.TRANSFER_CODE_ANTE if is_ante else wallet_service_pb2.TRANSFER_CODE_BLIND
            postings.append(SeatChips(hand.sittings[event.seat], event.amount, code))
    return tuple(postings)


def cards_dealt(draft: Draft, hands: dict[int, tuple[int, ...]]) -> None:
    """The deck has dealt."""
    command(draft, DeliverDeal(hands))
    advance(draft)


def cards_exchanged(draft: Draft, seat: int, cards: tuple[int, ...], shuffle: Reshuffled | None) -> None:
    """The deck has given a seat its new cards."""
    command(draft, DeliverExchange(seat, cards, shuffle is not None), shuffle=shuffle)
    advance(draft)


def late_card_dealt(draft: Draft, seat: int, card: int, burned: bool, shuffle: Reshuffled | None) -> None:
    """The deck has given a seat its fourth card."""
    command(draft, DeliverLateCard(seat, card, burned, shuffle is not None), shuffle=shuffle)
    advance(draft)


def bets_collected(draft: Draft) -> None:
    """The ledger has the round's bets."""
    draft.change_hand(uncollected=None)
    advance(draft)


def act(draft: Draft, player_command: AnyCommand, turn: int) -> int:
    """A player's action in turn; returns the sequence of its event. Raises the rules' `Refusal`."""
    clock = draft.state.clock
    sequence = command(draft, player_command, turn=turn)
    if clock is not None and clock.seat in draft.state.seats:
        draft.change_seat(clock.seat, missed_clocks=0)
    _end_turn(draft)
    advance(draft)
    return sequence


def command(draft: Draft, told: AnyCommand, turn: int = 0, shuffle: Reshuffled | None = None) -> int:
    """Decides on a command and tells its events; returns the sequence of the first."""
    return narrate(draft, rules.decide(_engine(draft), told), turn, shuffle)


def clock_ran_out(draft: Draft) -> None:
    """The clock of the turn is over: first the seat's time bank runs, then the clock acts for it."""
    clock, hand = draft.state.clock, draft.state.hand
    if clock is None or hand is None:
        return
    seat = draft.state.seats.get(clock.seat)
    if clock.kind == "cut":
        cut_deck(draft, b"", 0)
        return
    if clock.kind == "act" and not clock.on_bank and seat is not None and seat.time_bank_ms > 0:
        bank = TableClock(clock.kind, seat.time_bank_ms, clock.seat, clock.turn, on_bank=True)
        _tell_turn(draft, clock.seat, clock.turn, seat.time_bank_ms)
        draft.start_clock(bank)
        return
    grace_ms = draft.state.settings.disconnect_ms
    if seat is not None and not seat.connected and not clock.extended and grace_ms:
        # A lost connection gets some time once a turn; the time bank, if it ran, is used up.
        if clock.on_bank:
            draft.change_seat(seat.number, time_bank_ms=0)
        _tell_turn(draft, clock.seat, clock.turn, grace_ms)
        draft.start_clock(TableClock(clock.kind, grace_ms, clock.seat, clock.turn, extended=True))
        return
    command(draft, ClockRanOut(clock.seat), turn=clock.turn)
    if seat is not None:
        missed = seat.missed_clocks + 1
        away = missed >= MISSED_CLOCKS_MAX and not seat.sitting_out
        bank_ms = 0 if clock.on_bank else seat.time_bank_ms
        seat = draft.change_seat(
            seat.number, missed_clocks=missed, time_bank_ms=bank_ms, sitting_out=seat.sitting_out or away
        )
        if away:
            told = event_pb2.SeatChanged(seat=words.seat_view(draft.state, seat), reason="missed_clocks")
            draft.tell(seat_changed=told)
    _end_turn(draft)
    advance(draft)


def advance(draft: Draft) -> None:
    """Goes on to whatever the hand waits for: an effect, or somebody's turn. Absent seats act at once."""
    while True:
        hand = draft.state.playing
        if hand is None or hand.engine is None or draft.state.hand_is_waiting or hand.turn or hand.void:
            return
        awaited = rules.awaits(hand.engine)
        if isinstance(awaited, AwaitNothing):
            _settle(draft, hand)
            return
        if hand.uncollected is not None:
            due = hand.uncollected
            draft.add_effect(CollectBets, round=due.round, bets=due.bets, returned=due.returned)
            return
        match awaited:
            case AwaitAction(seat=seat):
                kind, clock_ms = "act", draft.state.rulebook.action_clock_ms
            case AwaitDiscard(seat=seat):
                kind, clock_ms = "draw", draft.state.rulebook.draw_clock_ms
            case AwaitExchange():
                draft.add_effect(
                    ExchangeCards,
                    seat=awaited.seat,
                    discards=awaited.discards,
                    draw_now=awaited.draw_now,
                    folded=awaited.folded,
                    mixed=awaited.mixed,
                )
                return
            case AwaitLateCard():
                draft.add_effect(
                    DealLateCard, seat=awaited.seat, burn=awaited.burn, folded=awaited.folded, mixed=awaited.mixed
                )
                return
            case _:
                return
        if not _is_away(draft.state, hand, seat):
            if draft.state.mode == "paused":
                return
            chosen = preselection.take(draft, hand, seat) if kind == "act" else None
            if chosen is None:
                _start_turn(draft, seat, kind, clock_ms)
                return
            draft.state.turns += 1
            command(draft, chosen, turn=draft.state.turns)
            continue
        command(draft, ClockRanOut(seat))


def _is_away(state: TableState, hand: Hand, number: int) -> bool:
    """Whether nobody will act for this seat: its player has left, or asked to."""
    seat = state.seats.get(number)
    return seat is None or seat.leaving or seat.sitting != hand.sittings[number]


def _start_turn(draft: Draft, seat: int, kind: str, clock_ms: int) -> None:
    draft.state.turns += 1
    turn = draft.state.turns
    draft.change_hand(turn=turn)
    draft.start_clock(TableClock(kind, clock_ms, seat, turn))  # type: ignore[arg-type]  # one of the kinds
    _tell_turn(draft, seat, turn, clock_ms)


def _tell_turn(draft: Draft, seat: int, turn: int, clock_ms: int) -> None:
    """Tells whose turn it is; its legal actions to that seat alone."""
    state = draft.state
    public = words.turn_started(state, seat, turn, clock_ms)
    own = event_pb2.TurnStarted(turn=public["turn_started"].turn, your_actions=words.actions_of(state, seat))
    draft.tell({seat: {"turn_started": own}}, **public)


def _end_turn(draft: Draft) -> None:
    """The turn is over: its clock stops, and what was used of the time bank is gone."""
    clock, hand = draft.state.clock, draft.state.hand
    if clock is not None and clock.on_bank and clock.seat in draft.state.seats:
        left = max(0, min(clock.duration_ms, draft.deadline_ms - draft.now_ms))
        draft.change_seat(clock.seat, time_bank_ms=left if draft.deadline_ms else 0)
    if hand is not None:
        draft.change_hand(turn=0)
    draft.stop_clock()


def extend_turn(draft: Draft) -> None:
    """Gives the present turn its whole clock once more."""
    clock = draft.state.clock
    if clock is None:
        return
    _tell_turn(draft, clock.seat, clock.turn, clock.duration_ms)
    draft.start_clock(msgspec.structs.replace(clock, extended=True))


def _settle(draft: Draft, hand: Hand) -> None:
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
    engine = _engine(draft)
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
    draft.change_hand(settled=True, uncollected=None)


def undo(draft: Draft, reason: str, by: str, request: Request | None = None) -> None:
    """Gives the hand up: drops what was still to be done for it and asks the ledger to undo it."""
    state = draft.state
    hand = draft.change_hand(void=True, turn=0, cut_seat=0, uncollected=None)
    state.effects = tuple(effect for effect in state.effects if not isinstance(effect, HAND_EFFECTS))
    draft.stop_clock()
    draft.add_effect(UndoHand, reason=reason, by=by, request=request, first_epoch=hand.first_epoch, first=hand.first)


def hand_undone(draft: Draft, stacks: dict[str, int], carry: int, reason: str, by: str) -> None:
    """The ledger has undone the hand: every chip is back where it was."""
    hand = draft.change_hand()
    told = event_pb2.HandVoided(reason=reason, by=by, carry_minor=carry)
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
    draft.change_hand(settled=True)


def leave_turn(draft: Draft, number: int) -> None:
    """A seat that leaves while it is its turn acts at once, as its clock would."""
    clock, hand = draft.state.clock, draft.state.playing
    if clock is None or hand is None or clock.seat != number or not hand.turn:
        return
    if clock.kind == "cut":
        cut_deck(draft, b"", 0)
        return
    command(draft, ClockRanOut(number), turn=clock.turn)
    _end_turn(draft)
    advance(draft)


def show(draft: Draft, told: AnyCommand) -> int:
    """A hand is shown that need not be, after the end; returns its sequence. Raises the rules' `Refusal`."""
    return command(draft, told)


def _engine(draft: Draft) -> HandState:
    hand = draft.state.hand
    if hand is None or hand.engine is None:
        raise BrokenHandError("there is no hand being played")
    return hand.engine
