"""What stands twice in a file: the head of the hand against the events that it sums up."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from services.deck.verification import bodies as told
from services.deck.verification.bodies import Body
from services.deck.verification.exported import Event, Hand
from services.deck.verification.report import Report

# Compared as JSON, since to Python `true` is 1.
_canonical = msgspec.json.Encoder(order="sorted").encode


def check_head(hand: Hand, bodies: Sequence[Body], report: Report) -> None:
    """Compares the head with the beginning, with the end, and with what each seat did."""
    before = len(report.failed)
    pairs = list(zip(hand.events, bodies, strict=True))
    report.check(hand.name == f"{hand.table}/hands/{hand.hand}", "head", "the hand has another name than its number")
    is_played = hand.outcome != "void"
    fine = not (is_played and hand.void_reason)
    report.check(fine, "head", "a hand that was played has a reason for being void")
    for event, body in pairs:
        where = f"event {event.sequence} ({event.type})"
        match body:
            case told.HandStarted():
                _check_beginning(hand, event, body, where, report)
            case told.HandEnded() if is_played:
                _check_end(hand, event, body, where, report)
            case told.HandVoided():
                _check_void(hand, event, body, where, report)
            case _:
                pass
    _check_pots(hand, bodies, report)
    _check_seats(hand, bodies, report)
    report.conclude(before, "The head of the hand says what its events say.")


def _check_beginning(hand: Hand, event: Event, body: told.HandStarted, where: str, report: Report) -> None:
    report.check(body.button == hand.button, "order", f"{where}: the button is not the hand's")
    report.check(hand.start_time == event.commit_time, "head", f"{where}: the hand began at another time")
    report.check(hand.carry_in_minor == body.carry_minor, "head", f"{where}: {body.carry_minor} were carried in")
    seats = [(seat.seat, seat.player, seat.display_name, seat.stack_before_minor) for seat in hand.seats]
    begun = [(seat.seat, seat.player, seat.display_name, seat.stack_minor) for seat in body.seats]
    report.check(seats == begun, "head", f"{where}: seats, players or stacks are not the hand's")
    numbers = [seat.seat for seat in hand.seats]
    report.check(numbers == sorted(set(numbers)), "head", "the seats do not ascend")
    report.check(hand.button in numbers, "head", "the button is at a seat that was not dealt in")
    report.check(hand.your_seat in (0, *numbers), "head", f"seat {hand.your_seat} was not dealt in")
    fine = _canonical(hand.options) == _canonical(body.options)
    report.check(fine, "head", f"{where}: the options are not the hand's")


def _check_end(hand: Hand, event: Event, body: told.HandEnded, where: str, report: Report) -> None:
    report.check(hand.end_time == event.commit_time, "head", f"{where}: the hand ended at another time")
    report.check(hand.outcome == body.outcome, "head", f"{where}: the outcome is not the hand's")
    report.check(hand.rake_minor == body.rake_minor, "head", f"{where}: the rake is {body.rake_minor}")
    report.check(hand.carry_out_minor == body.carry_minor, "head", f"{where}: {body.carry_minor} are carried out")
    for seat in hand.seats:
        fine = body.stacks_minor.get(str(seat.seat)) == seat.stack_after_minor
        report.check(fine, "head", f"{where}: seat {seat.seat} does not end with {seat.stack_after_minor}")


def _check_void(hand: Hand, event: Event, body: told.HandVoided, where: str, report: Report) -> None:
    report.check(hand.end_time == event.commit_time, "head", f"{where}: the hand ended at another time")
    report.check(hand.void_reason == body.reason, "head", f"{where}: the reason is not the hand's")
    report.check(hand.rake_minor == 0, "head", "a void hand has a rake")
    report.check(hand.carry_out_minor == body.carry_minor, "head", f"{where}: {body.carry_minor} are carried out")
    fine = body.carry_minor == hand.carry_in_minor
    report.check(fine, "chips", f"{where}: {hand.carry_in_minor} were carried in, {body.carry_minor} are given back")
    for seat in hand.seats:
        # Whoever has left since is not among them.
        after = body.stacks_minor.get(str(seat.seat), seat.stack_before_minor)
        report.check(after == seat.stack_after_minor, "head", f"{where}: seat {seat.seat} ends with {after}")
        # A table that lost its state tells the stacks of those who sit there then.
        fine = after == seat.stack_before_minor or event.epoch > hand.epoch
        report.check(fine, "chips", f"{where}: seat {seat.seat} gets back {after} of {seat.stack_before_minor}")


def _check_pots(hand: Hand, bodies: Sequence[Body], report: Report) -> None:
    is_award = [isinstance(body, told.PotAwarded) for body in bodies]
    awarded = [event.body["pot"] for event, is_one in zip(hand.events, is_award, strict=True) if is_one]
    awarded = [] if hand.outcome == "void" else sorted(awarded, key=lambda pot: int(pot["index"]))
    fine = _canonical(hand.pots) == _canonical(awarded)
    report.check(fine, "chips", "the hand's pots are not those that its events award")


def _check_seats(hand: Hand, bodies: Sequence[Body], report: Report) -> None:
    shown = {body.seat for body in bodies if isinstance(body, told.HandShown)}
    mucked = {body.seat for body in bodies if isinstance(body, told.HandMucked)}
    acted = [body for body in bodies if isinstance(body, told.ActionTaken | told.CardsDiscarded)]
    by_clock = {body.seat for body in acted if body.by_clock}
    for seat in hand.seats:
        did = tuple(seat.seat in each for each in (shown, mucked, by_clock))
        fine = (seat.shown, seat.mucked, seat.timed_out) == did
        report.check(fine, "head", f"seat {seat.seat} showed, mucked or ran out of time otherwise than its events say")
