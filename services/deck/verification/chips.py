"""Whether the chips of the public events add up: a changed event rarely does."""

from __future__ import annotations

from typing import Any

from services.deck.verification.exported import Hand
from services.deck.verification.report import Report


def check_chips(hand: Hand, report: Report) -> None:
    """Adds up every seat's chips and the pots. A hand without an end in its events (void) is not added up."""
    ended = next((event for event in hand.events if event.type == "hand_ended"), None)
    if ended is None or hand.outcome == "void":
        return
    before = len(report.failed)
    stacks = {seat.seat: seat.stack_before_minor for seat in hand.seats}
    pot, paid, raked = hand.carry_in_minor, 0, 0
    pots: list[dict[str, Any]] = []
    try:
        for event in hand.events:
            body = event.body
            match event.type:
                case "forced_bet_posted":
                    stacks[body["seat"]] -= body["amount_minor"]
                    pot += body["amount_minor"]
                case "action_taken":
                    stacks[body["seat"]] -= body["added_minor"]
                    pot += body["added_minor"]
                case "bet_returned":
                    stacks[body["seat"]] += body["amount_minor"]
                    pot -= body["amount_minor"]
                case "bets_collected":
                    where = f"event {event.sequence}: the pot is {pot}, not {body['pot_minor']}"
                    report.check(body["pot_minor"] == pot, "chips", where)
                case "pot_awarded":
                    for seat, amount in body["pot"]["winners"].items():
                        stacks[int(seat)] += amount
                        paid += amount
                    raked += body["pot"]["rake_minor"]
                    pots.append(body["pot"])
                case _:
                    pass
        pots.sort(key=lambda each: int(each["index"]))
        told = {int(seat): amount for seat, amount in ended.body["stacks_minor"].items()}
    except (KeyError, TypeError, ValueError):
        report.failed.append("chips: an event lacks an amount, or names a seat that is not in the hand")
        return
    for seat, amount in sorted(stacks.items()):
        report.check(
            told.get(seat) == amount, "chips", f"seat {seat} ends with {told.get(seat)}, its events say {amount}"
        )
    where = f"event {ended.sequence} (hand_ended)"
    report.check(ended.body.get("outcome") == hand.outcome, "chips", f"{where}: the outcome is not the hand's")
    report.check(ended.body.get("rake_minor", 0) == raked, "chips", f"{where}: the pots were raked {raked}")
    if hand.pots is not None:
        report.check(list(hand.pots) == pots, "chips", "the hand's pots are not those that its events award")
    out = paid + raked + ended.body.get("carry_minor", 0)
    report.check(pot == out, "chips", f"{pot} went into the pot, {out} were paid, raked and carried")
    report.conclude(before, "The chips of all events add up, for every seat and for the pot.")
