"""One step of a table: what was asked, or what became due, as changes to a draft. No I/O; a refusal changes nothing."""

from __future__ import annotations

from fivedraw.table.v1 import event_pb2, table_service_pb2
from google.rpc import status_pb2

from services.rules.awaits import AwaitDiscard
from services.rules.commands import Act, AnyCommand, Discard, Show
from services.rules.hand import awaits
from services.rules.refusals import CommandInvalid, Refusal
from services.runtime.errors import Fault, from_status
from services.table import asks, chat, entropy, outcome, play, preselection, seating, waiting, words
from services.table.draft import Draft
from services.table.state import Hand, Request, TableState
from services.table.wanted import Wanted


def ask(draft: Draft, asked: asks.AnyAsk) -> bool:
    """Takes in what a caller asks. False if the same request was taken in before, so that nothing is to be done.

    Raises `Fault` with the reason.
    """
    if is_repeated(draft.state, asked.request):
        return False
    match asked:
        case asks.TakeAction():
            _take_action(draft, asked)
        case asks.SitDown():
            seating.sit_down(draft, asked)
        case asks.TopUp():
            seating.top_up(draft, asked)
        case asks.UpdateSeat():
            seating.update_seat(draft, asked)
        case asks.Leave():
            seating.leave(draft, asked)
        case asks.JoinWaiting():
            waiting.join(draft, asked)
        case asks.LeaveWaiting():
            waiting.leave(draft, asked)
        case asks.Preselect():
            preselection.preselect(draft, asked, seating.own_seat(draft.state, asked.request.caller))
        case asks.SetSeed():
            entropy.set_seed(draft, asked, seating.own_seat(draft.state, asked.request.caller))
        case asks.Say():
            chat.say(draft, asked, seating.own_seat(draft.state, asked.request.caller))
        case asks.Pause():
            _pause(draft, asked)
        case asks.Resume():
            _resume(draft, asked)
        case asks.Close():
            _close(draft, asked)
        case asks.Void():
            _void(draft, asked)
    seating.wake(draft)
    waiting.offer(draft)
    seating.between_hands(draft)
    return True


def is_repeated(state: TableState, request: Request) -> bool:
    """Whether this request was taken in before. Raises `ACTION_CONFLICT` if the id was used for something else."""
    for answered in state.answers.get(request.caller, ()):
        if answered.request_id == request.request_id:
            if answered.digest != request.digest:
                facts = {"id": request.request_id}
                raise Fault("ACTION_CONFLICT", f"id {request.request_id!r} was used for something else", **facts)
            return True
    return False


def refusal_of(answer: bytes) -> Fault:
    """The refusal that `Draft.refuse` remembered."""
    fault = from_status(status_pb2.Status.FromString(answer[1:]))
    return fault or Fault("INTERNAL", "a remembered refusal cannot be read")


def clock_due(draft: Draft) -> bool:
    """The running clock is over. False if there is none, or it stands still."""
    clock = draft.state.clock
    if clock is None or clock.left_ms >= 0:
        return False
    if clock.kind == "next_hand":
        seating.next_hand_due(draft)
    elif clock.kind == "idle_carry":
        seating.idle_carry_due(draft)
    else:
        play.clock_ran_out(draft)
    seating.between_hands(draft)
    return True


def _take_action(draft: Draft, asked: asks.TakeAction) -> None:
    state = draft.state
    seat = seating.own_seat(state, asked.request.caller)
    hand = state.hand
    if hand is None or hand.number != asked.hand:
        facts = {"hand": str(asked.hand), "current_hand": str(hand.number if hand else 0)}
        raise Fault("STALE_TURN", f"hand {asked.hand} is not being played", **facts)
    if hand.sittings.get(seat.number) != seat.sitting or hand.void:
        raise Fault("NOT_YOUR_TURN", f"seat {seat.number} is not in hand {asked.hand}", seat=str(seat.number))
    if asked.kind == "show":
        sequence = _ruled(draft, hand, Show(seat.number), None)
    else:
        _check_turn(state, hand, seat.number, asked)
        if asked.kind == "cut":
            sequence = play.cut_deck(draft, asked.cut, seat.number)
        else:
            sequence = _ruled(draft, hand, _command(seat.number, asked), asked.turn)
    told = table_service_pb2.SubmitActionResponse(sequence=sequence, epoch=state.epoch)
    draft.answer(asked.request, told)


def _command(seat: int, asked: asks.TakeAction) -> AnyCommand:
    if asked.kind == "discard":
        return Discard(seat, asked.cards)
    return Act(seat, asked.kind, asked.to)  # type: ignore[arg-type]  # the API lets only these kinds through


def _check_turn(state: TableState, hand: Hand, seat: int, asked: asks.TakeAction) -> None:
    """The order of RULES 11: already drew, then turn and stage."""
    engine = hand.engine
    drawing = asked.kind == "discard" and engine is not None and engine.stage == "draw"
    if drawing and engine is not None and engine.drawn[engine.position(seat)] >= 0:
        raise Fault("ALREADY_DREW", f"seat {seat} has drawn in this hand", seat=str(seat))
    if state.mode == "paused":
        raise Fault("TABLE_PAUSED", f"{state.name} is paused: {state.mode_reason}", table=state.name)
    if not hand.turn or asked.turn != hand.turn:
        facts = {"turn": str(asked.turn), "current_turn": str(hand.turn)}
        raise Fault("STALE_TURN", f"turn {asked.turn} is not the one being waited for", **facts)
    clock = state.clock
    if clock is None or clock.seat != seat:
        to_act = clock.seat if clock is not None else 0
        raise Fault("NOT_YOUR_TURN", f"it is seat {to_act}'s turn", seat=str(seat), to_act=str(to_act))
    if (asked.kind == "cut") != (engine is None):
        raise Fault("WRONG_STAGE", f"{asked.kind} cannot be done now", tried=asked.kind)
    if engine is not None and (asked.kind == "discard") != isinstance(awaits(engine), AwaitDiscard):
        raise Fault("WRONG_STAGE", f"{asked.kind} cannot be done in the {engine.stage}", tried=asked.kind)


def _ruled(draft: Draft, hand: Hand, command: AnyCommand, turn: int | None) -> int:
    """Lets the rules decide; their refusals become faults with the same reason and facts."""
    if hand.engine is None:
        raise Fault("WRONG_STAGE", "no cards are dealt yet", tried=type(command).__name__.lower())
    try:
        if turn is None:
            return play.show(draft, command)
        return play.act(draft, command, turn)
    except Refusal as refusal:
        facts = {name: str(value) for name, value in refusal.facts.items()}
        raise Fault(refusal.reason, refusal.message(), **facts) from None
    except CommandInvalid as invalid:
        raise Fault("INVALID_REQUEST", str(invalid), field="action") from None


def _pause(draft: Draft, asked: asks.Pause) -> None:
    state = draft.state
    _check_open(state)
    if asked.after_hand and state.playing is not None and state.mode != "paused":
        state.pause_after = asked.reason
    elif state.mode != "paused":
        seating.pause(draft, asked.reason)
    draft.must_keep_mode = True
    told = table_service_pb2.PauseTableResponse(table=words.table(state))
    draft.answer(asked.request, told)


def _resume(draft: Draft, asked: asks.Resume) -> None:
    state = draft.state
    _check_open(state)
    state.pause_after = ""
    if state.mode == "paused":
        resume(draft)
    draft.must_keep_mode = True
    told = table_service_pb2.ResumeTableResponse(table=words.table(state))
    draft.answer(asked.request, told)


def resume(draft: Draft) -> None:
    """Lets a paused table go on; a clock that stood still runs on with what was left."""
    state = draft.state
    state.mode, state.mode_reason = "open", ""
    told = event_pb2.TableResumed()
    clock = state.clock
    if clock is not None and clock.left_ms >= 0:
        restart_clock(draft, clock.left_ms)
        turn = words.turn_of(state)
        if turn is not None:
            turn.deadline.FromMilliseconds(clock.left_ms)
            told.turn.CopyFrom(turn)
    draft.tell(table_resumed=told)
    play.advance(draft)


def restart_clock(draft: Draft, left_ms: int) -> None:
    """Runs the present clock for this long from the commit on."""
    clock = draft.state.clock
    if clock is not None:
        kind = type(clock)
        draft.start_clock(
            kind(clock.kind, left_ms, clock.seat, clock.turn, on_bank=clock.on_bank, extended=clock.extended)
        )


def _close(draft: Draft, asked: asks.Close) -> None:
    state = draft.state
    close(draft, asked.reason)
    draft.must_keep_mode = True
    told = table_service_pb2.CloseTableResponse(table=words.table(state))
    draft.answer(asked.request, told)


def close(draft: Draft, reason: str) -> None:
    """Lets the table end after its hand; nothing if it is at that already."""
    state = draft.state
    if state.mode in ("closing", "closed"):
        return
    if state.mode == "paused":
        resume(draft)
    state.mode, state.mode_reason, state.pause_after = "closing", reason, ""
    if state.playing is None:
        draft.stop_clock()


def follow(draft: Draft, wanted: Wanted) -> None:
    """Does what the registry keeps as wanted, and the table does not know: the answer to who asked never came."""
    state = draft.state
    if wanted.mode == "closing":
        close(draft, wanted.reason)
    elif state.mode not in ("closing", "closed"):
        state.pause_after = wanted.reason if wanted.mode == "pausing" else ""
        if wanted.mode != "paused" and state.mode == "paused":
            resume(draft)
        elif wanted.mode == "paused" and state.mode == "paused":
            # Its clock stands still already, with what it had left.
            state.mode_reason = wanted.reason
        elif wanted.mode == "paused":
            seating.pause(draft, wanted.reason)
    seating.between_hands(draft)
    state.mode_number, draft.kept = wanted.number, wanted


def _void(draft: Draft, asked: asks.Void) -> None:
    state = draft.state
    hand = state.playing
    if hand is None or hand.number != asked.hand:
        if asked.hand and asked.hand <= state.last_hand:
            raise Fault("HAND_CLOSED", f"hand {asked.hand} is over", hand=str(asked.hand))
        raise Fault("HAND_NOT_OPEN", f"hand {asked.hand} is not being played", hand=str(asked.hand))
    if hand.decided or hand.void:
        how = "void" if hand.void else "decided"
        raise Fault("HAND_CLOSED", f"hand {asked.hand} is {how}", hand=str(asked.hand), outcome=how)
    draft.promise(asked.request)
    by = " and ".join(filter(None, (asked.request.caller, asked.approved_by)))
    outcome.undo(draft, asked.reason, by, asked.request)


def _check_open(state: TableState) -> None:
    if state.mode in ("closing", "closed"):
        raise Fault("TABLE_CLOSED", f"{state.name} is closed", table=state.name)
