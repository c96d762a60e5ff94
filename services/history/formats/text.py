"""One line an event, for people. It has words for every hand, void ones too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fivedraw.history.v1 import history_service_pb2
from fivedraw.table.v1 import event_pb2, table_pb2

from services.history.formats.money import amount
from services.history.formats.words import OUTCOMES, moment, name_of_hand, names_by_seat, one_line

_FORCED: Final[dict[int, str]] = {
    table_pb2.FORCED_BET_KIND_ANTE: "the ante",
    table_pb2.FORCED_BET_KIND_SMALL_BLIND: "the small blind",
    table_pb2.FORCED_BET_KIND_BIG_BLIND: "the big blind",
    table_pb2.FORCED_BET_KIND_POST: "a big blind to come in",
    table_pb2.FORCED_BET_KIND_DEAD_BLIND: "a missed small blind",
}
_STAGES: Final[dict[int, str]] = {
    table_pb2.STAGE_FIRST_ROUND: "first round",
    table_pb2.STAGE_DRAW: "draw",
    table_pb2.STAGE_SECOND_ROUND: "second round",
}
_WAITING: Final[dict[int, str]] = {
    table_pb2.WAITING_DECK: "the deck",
    table_pb2.WAITING_WALLET: "the wallet",
    table_pb2.WAITING_CUT: "the cut",
}


def write(hand: history_service_pb2.Hand) -> str:
    """The hand as text, one line an event, ends with LF."""
    return "\n".join([*_head(hand), *_Teller(hand).lines(), *_foot(hand)]) + "\n"


def _head(hand: history_service_pb2.Hand) -> Iterator[str]:
    table = one_line(hand.table_display_name or hand.table)
    yield f"Hand {hand.hand_id}: {hand.name} ({table}), {hand.rulebook}, {hand.currency}"
    yield f"Began {moment(hand.start_time).isoformat(timespec='milliseconds')}"
    if hand.incomplete:
        yield "The log of this hand was lost; this is what the ledger knows."


def _foot(hand: history_service_pb2.Hand) -> Iterator[str]:
    currency = hand.currency
    if hand.incomplete and hand.void_reason:
        yield f"The hand is void: {one_line(hand.void_reason)}; every chip goes back"
    total = sum(pot.amount_minor for pot in hand.pots)
    yield (
        f"Ended: {OUTCOMES[hand.outcome]}; pots {amount(total, currency)}, rake {amount(hand.rake_minor, currency)}, "
        f"carried in {amount(hand.carry_in_minor, currency)}, carried out {amount(hand.carry_out_minor, currency)}"
    )
    names = names_by_seat(hand)
    for seat in hand.seats:
        line = f"Seat {seat.seat}: {names[seat.seat]}"
        if not hand.incomplete:
            line += f" {amount(seat.stack_before_minor, currency)} -> {amount(seat.stack_after_minor, currency)}"
        else:
            won = sum(pot.winners.get(seat.seat, 0) for pot in hand.pots)
            line += f" won {amount(won, currency)}"
        if seat.final_cards:
            how = "showed" if seat.shown else "mucked" if seat.mucked else "held"
            line += f", {how} [{' '.join(seat.final_cards)}]"
            if len(seat.final_cards) == 5:
                line += f" ({name_of_hand(list(seat.final_cards))})"
        yield line


class _Teller:
    def __init__(self, hand: history_service_pb2.Hand) -> None:
        self._hand = hand
        self._names = names_by_seat(hand)

    def lines(self) -> Iterator[str]:
        for event in self._hand.events:
            body = event.WhichOneof("body")
            told = getattr(self, f"_{body}", None)
            line = told(getattr(event, body)) if body is not None and told is not None else None
            if line is not None:
                yield line

    def _who(self, seat: int) -> str:
        return self._names.get(seat, f"seat {seat}")

    def _money(self, amount_minor: int) -> str:
        return amount(amount_minor, self._hand.currency)

    def _hand_started(self, event: event_pb2.HandStarted) -> str:
        seats = ", ".join(
            f"{seat.seat} {self._who(seat.seat)} ({self._money(seat.stack_minor)})" for seat in event.seats
        )
        return f"Button at seat {event.button}. Seats: {seats}"

    def _hand_waiting(self, event: event_pb2.HandWaiting) -> str:
        asked = f" by {self._who(event.seat)}" if event.seat else ""
        return f"Waits for {_WAITING.get(event.waiting, 'a service')}{asked}"

    def _deck_committed(self, event: event_pb2.DeckCommitted) -> str:
        cut = f", cut by {self._who(event.cut_by)}" if event.cut_by else ""
        return f"The deck is committed{cut}: {event.root.hex()}"

    def _forced_bet_posted(self, event: event_pb2.ForcedBetPosted) -> str:
        kind = _FORCED.get(event.kind, "a bet")
        return f"{self._who(event.seat)} posts {kind} {self._money(event.amount_minor)}{_all_in(event.all_in)}"

    def _cards_dealt(self, event: event_pb2.CardsDealt) -> str:
        own = f"; to {self._who(self._hand.your_seat)} [{' '.join(event.your_cards)}]" if event.your_cards else ""
        return f"Five cards each{own}"

    def _stage_started(self, event: event_pb2.StageStarted) -> str | None:
        stage = _STAGES.get(event.stage)
        return f"-- {stage}, pot {self._money(event.pot_minor)}" if stage else None

    def _action_taken(self, event: event_pb2.ActionTaken) -> str:
        added, level = self._money(event.added_minor), self._money(event.to_minor)
        did = {
            table_pb2.ACTION_KIND_FOLD: "folds",
            table_pb2.ACTION_KIND_CHECK: "checks",
            table_pb2.ACTION_KIND_CALL: f"calls {added}",
            table_pb2.ACTION_KIND_BET: f"bets {added}",
            table_pb2.ACTION_KIND_RAISE: f"raises to {level}",
        }.get(event.kind, "acts")
        return f"{self._who(event.seat)} {did}{_all_in(event.all_in)}{_by_clock(event.by_clock)}"

    def _bet_returned(self, event: event_pb2.BetReturned) -> str:
        return f"{self._money(event.amount_minor)} that nobody called goes back to {self._who(event.seat)}"

    def _cards_discarded(self, event: event_pb2.CardsDiscarded) -> str:
        cards = f" [{' '.join(event.your_discards)}]" if event.your_discards else ""
        did = f"discards {event.count}{cards}" if event.count else "stands pat"
        return f"{self._who(event.seat)} {did}{_by_clock(event.by_clock)}"

    def _cards_drawn(self, event: event_pb2.CardsDrawn) -> str:
        cards = f" [{' '.join(event.your_cards)}]" if event.your_cards else ""
        late = " as the fourth" if event.late else ""
        return f"{self._who(event.seat)} draws {event.count}{late}{cards}"

    def _deck_reshuffled(self, event: event_pb2.DeckReshuffled) -> str:
        return f"{event.cards} discards are shuffled into a new stub: {event.root.hex()}"

    def _card_burned(self, _: event_pb2.CardBurned) -> str:
        return "One card is burned"

    def _hand_shown(self, event: event_pb2.HandShown) -> str:
        unasked = " without need" if event.voluntary else ""
        cards = list(event.cards)
        return f"{self._who(event.seat)} shows [{' '.join(cards)}] ({name_of_hand(cards)}){unasked}"

    def _hand_mucked(self, event: event_pb2.HandMucked) -> str:
        return f"{self._who(event.seat)} mucks"

    def _pot_awarded(self, event: event_pb2.PotAwarded) -> str:
        pot = event.pot
        name = f"side pot {pot.index}" if pot.index else "main pot"
        winners = ", ".join(
            f"{self._who(seat)} wins {self._money(chips)}" for seat, chips in sorted(pot.winners.items())
        )
        return f"The {name} of {self._money(pot.amount_minor)}: {winners or 'carried'}"

    def _hand_ended(self, event: event_pb2.HandEnded) -> str | None:
        if event.outcome != table_pb2.HAND_OUTCOME_PASSED_OUT:
            return None
        return f"Passed out; {self._money(event.carry_minor)} is carried to the next hand"

    def _hand_voided(self, event: event_pb2.HandVoided) -> str:
        return f"The hand is void by {one_line(event.by)}: {one_line(event.reason)}; every chip goes back"

    def _seat_taken(self, event: event_pb2.SeatTaken) -> str:
        return f"{one_line(event.seat.display_name)} takes seat {event.seat.seat}"

    def _seat_left(self, event: event_pb2.SeatLeft) -> str:
        return f"{self._who(event.seat)} leaves with {self._money(event.amount_minor)}"

    def _seat_changed(self, event: event_pb2.SeatChanged) -> str:
        return f"Seat {event.seat.seat}: {one_line(event.reason).replace('_', ' ')}"

    def _table_paused(self, event: event_pb2.TablePaused) -> str:
        return f"The table pauses: {one_line(event.reason)}"

    def _table_resumed(self, _: event_pb2.TableResumed) -> str:
        return "The table goes on"

    def _table_rebuilt(self, event: event_pb2.TableRebuilt) -> str:
        return f"The table is rebuilt from the ledger: {one_line(event.reason)}"


def _all_in(all_in: bool) -> str:
    return " and is all-in" if all_in else ""


def _by_clock(by_clock: bool) -> str:
    return " (time ran out)" if by_clock else ""
