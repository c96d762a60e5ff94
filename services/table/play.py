"""The turns of a hand: actions, clocks, and what they lead on to. Pure steps on a `Draft`; effects are left as intents.

A hand goes: OpenHand, (cut), ShuffleDeck, DealHand, then turns, with CollectBets after a round, ExchangeCards after a
discard, and SettleHand when the rules have decided the payout. While one of these effects is pending nobody is to act.
What comes before the deal is in `opening`, what follows the payout in `outcome`.
"""

from __future__ import annotations

from typing import Final

import msgspec
from fivedraw.table.v1 import event_pb2

from services.rules import hand as rules
from services.rules.awaits import (
    AwaitAction,
    AwaitDiscard,
    AwaitExchange,
    AwaitLateCard,
    AwaitNothing,
)
from services.rules.commands import Act, AnyCommand, ClockRanOut, DeliverDeal, DeliverExchange, DeliverLateCard, Discard
from services.table import entropy, outcome, preselection, words
from services.table.draft import Draft
from services.table.narrate import Reshuffled, engine_of, narrate
from services.table.state import (
    CollectBets,
    DealLateCard,
    ExchangeCards,
    Hand,
    TableClock,
    TableState,
)

MISSED_CLOCKS_MAX: Final = 2


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


def cut_deck(draft: Draft, cut: bytes, cut_by: int) -> int:
    """Takes the cut (or its absence) and asks for the shuffle; returns the sequence of the last event so far."""
    draft.change_hand(turn=0, cut_seat=0)
    draft.stop_clock()
    entropy.ask_for_shuffle(draft, cut, cut_by)
    return draft.state.sequence


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
    return narrate(draft, rules.decide(engine_of(draft), told), turn, shuffle)


def show(draft: Draft, told: AnyCommand) -> int:
    """A hand is shown that need not be, after the end; returns its sequence. Raises the rules' `Refusal`."""
    return command(draft, told)


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


def leave_turn(draft: Draft, number: int) -> None:
    """A seat that leaves while it is its turn acts at once, as its clock would."""
    clock, hand = draft.state.clock, draft.state.playing
    if clock is None or hand is None or clock.seat != number or not hand.turn:
        return
    if clock.kind == "cut":
        cut_deck(draft, b"", 0)
        return
    command(draft, _absent(draft, number), turn=clock.turn)
    _end_turn(draft)
    advance(draft)


def _absent(draft: Draft, number: int) -> Act | Discard:
    """What is done for a seat whose player has left: as its clock would, but it was no clock that did it."""
    engine = engine_of(draft)
    if isinstance(rules.awaits(engine), AwaitDiscard):
        return Discard(number)
    return Act(number, "check" if rules.legal(engine, number).check else "fold")


def extend_turn(draft: Draft) -> None:
    """Gives the present turn its whole clock once more."""
    clock = draft.state.clock
    if clock is None:
        return
    _tell_turn(draft, clock.seat, clock.turn, clock.duration_ms)
    draft.start_clock(msgspec.structs.replace(clock, extended=True))


def advance(draft: Draft) -> None:
    """Goes on to whatever the hand waits for: an effect, or somebody's turn. Absent seats act at once."""
    while True:
        hand = draft.state.playing
        if hand is None or hand.engine is None or draft.state.hand_is_waiting or hand.turn or hand.void:
            return
        awaited = rules.awaits(hand.engine)
        if isinstance(awaited, AwaitNothing):
            outcome.settle(draft, hand)
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
        if not is_away(draft.state, hand, seat):
            if draft.state.mode == "paused":
                return
            chosen = preselection.take(draft, hand, seat)
            if chosen is None:
                start_turn(draft, seat, kind, clock_ms)
                return
            draft.state.turns += 1
            draft.change_seat(seat, missed_clocks=0)
            command(draft, chosen, turn=draft.state.turns)
            continue
        command(draft, _absent(draft, seat))


def is_away(state: TableState, hand: Hand, number: int) -> bool:
    """Whether nobody will act for this seat: its player has left, or asked to."""
    seat = state.seats.get(number)
    return seat is None or seat.leaving or seat.sitting != hand.sittings[number]


def start_turn(draft: Draft, seat: int, kind: str, clock_ms: int) -> None:
    """Gives a seat its turn, with a clock."""
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
