"""The course of a hand: its public events replayed one by one, each of which must be possible where it stands.

Whose turn it is, what a call costs, what goes back, into which pot the chips went and when a round is over follow from
the events before and from a few options; nothing is known here of what a rulebook allows (docs/fairness.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from services.deck.verification import bodies as told
from services.deck.verification.bodies import Body
from services.deck.verification.exported import Hand
from services.deck.verification.forced import ForcedBets
from services.deck.verification.payout import CourseBrokenError, Payout, require
from services.deck.verification.pots import uncalled
from services.deck.verification.report import Report

_ROUNDS = {"first_round": 1, "second_round": 2}


def check_course(hand: Hand, bodies: Sequence[Body], report: Report) -> None:
    """Replays the hand; notes the first event that cannot be where it stands, and what the hand lacks at its end."""
    before = len(report.failed)
    course = Course(hand)
    try:
        for event, body in zip(hand.events, bodies, strict=True):
            course.take(body, f"event {event.sequence} ({event.type})", event.type == "card_burned")
        course.end(report)
    except CourseBrokenError as broken:
        report.failed.append(f"{broken.check}: {broken}")
        return
    if hand.outcome != "void":
        report.conclude(before, "The events tell one whole hand, each of them where it belongs.")
        report.conclude(before, "The chips of all events add up, for every seat and for the pot.")


class Course:
    """A hand as far as it has been told."""

    def __init__(self, hand: Hand) -> None:
        self._hand = hand
        self._options = hand.rules
        dealt_in = (seat.seat for seat in hand.seats)
        self._order = sorted(dealt_in, key=lambda seat: (seat <= hand.button, seat))
        self._live = list(self._order)
        self._stacks = {seat.seat: seat.stack_before_minor for seat in hand.seats}
        self._put = dict.fromkeys(self._order, 0)
        self._paid = dict.fromkeys(self._order, 0)
        self._extra = hand.carry_in_minor
        self._pot = hand.carry_in_minor
        self._stage = "before"
        self._round = self._level = self._aggressor = 0
        self._acted: set[int] = set()
        self._forced_bets = ForcedBets(self._options, self._order, self._stacks)
        # Turns: the number of the last one, and the seat that is asked now.
        self._turn = self._asked = self._unasked = 0
        # The draw: who has drawn, who waits for cards, who waits for a late one, how many were burned for it.
        self._drawn: list[int] = []
        self._waiting = self._late = self._burned = 0
        self._returned = False
        self._payout: Payout | None = None

    def take(self, body: Body, where: str, is_burn: bool = False) -> None:
        """One event. Raises `CourseBrokenError`."""
        self._where = where
        match body:
            case told.HandStarted():
                self._step("before", "opened")
                self._require(all(self._stacks.values()), "a seat without chips is dealt in", "chips")
            case told.DeckCommitted():
                self._committed(body)
            case told.ForcedBetPosted():
                self._forced(body)
            case told.CardsDealt():
                self._step("committed", "dealt")
                self._forced_bets.complete(where)
            case told.StageStarted():
                self._started(body)
            case told.TurnStarted():
                self._asks(body.turn)
            case told.ActionTaken():
                self._acts(body)
            case told.BetReturned():
                self._returns(body)
            case told.BetsCollected():
                self._collects(body)
            case told.CardsDiscarded():
                self._discards(body)
            case told.DeckReshuffled():
                self._require(self._exchanges() and not self._burned, "no cards are due to anybody")
            case told.CardsDrawn():
                self._draws(body)
            case told.HandShown() | told.HandMucked():
                self._shows(body)
            case told.PotAwarded():
                self._paying().award(body.pot, where)
            case told.HandEnded():
                self._paying().ended(body, where, self._stacks)
                self._stage = "ended"
            case told.HandSettled():
                self._step("ended", "settled")
            case told.HandVoided():
                self._voided(body)
            case _ if is_burn:
                self._require(bool(self._late) and self._exchanges(), "no late card is due to anybody")
                self._burned += 1
            case _:
                pass

    def end(self, report: Report) -> None:
        """What the whole hand lacks. Raises `CourseBrokenError`."""
        self._where = "end"
        if self._unasked:
            report.not_proved.append(
                f"That nobody took out the turns of {self._unasked} actions: what a player chooses before the turn"
                " comes has none."
            )
        if self._hand.outcome == "void":
            self._require(self._stage == "voided", "a void hand must hold hand_voided", "void")
            return
        self._require(self._stage != "before", "the events have no beginning of the hand (hand_started)")
        self._require(self._stage in ("ended", "settled"), "the events have no end of the hand (hand_ended)")
        if self._stage == "ended":
            report.not_proved.append(
                "THAT THE HAND WAS SETTLED: the file has no hand_settled. Either it was taken out, or the house lost"
                " the table's state just after it had paid."
            )

    # Before the deal.

    def _committed(self, body: told.DeckCommitted) -> None:
        self._step("opened", "committed")
        self._require(body.cut_by in (0, self._asked), f"seat {body.cut_by} was not asked for the cut")
        self._require(bool(body.cut_by) or not body.cut, "nobody cut, and there is a cut")
        self._asked = 0

    def _forced(self, body: told.ForcedBetPosted) -> None:
        self._require(self._stage == "committed", "forced bets come after the deck's order and before the deal")
        seat, amount = body.seat, body.amount_minor
        self._require(seat in self._order, f"seat {seat} is not in the hand")
        self._forced_bets.take(body, self._stacks[seat], self._where)
        self._pay(seat, amount, body.all_in)
        if body.kind == "dead_blind":
            self._extra += amount
            return
        self._paid[seat] += amount
        self._put[seat] += amount if body.kind != "ante" else 0

    # Rounds of betting.

    def _started(self, body: told.StageStarted) -> None:
        self._require(body.pot_minor == self._pot, f"the pot is {self._pot}, not {body.pot_minor}", "chips")
        if body.stage == "draw":
            self._require(self._stage == "round 1 over" and not self._is_over(), "no draw is due")
            self._stage = "draw"
            return
        if body.stage == "first_round":
            self._step("dealt", "round")
            is_blinds = self._options.first_round == "blinds"
            self._level = self._options.big_blind_minor if is_blinds else 0
            self._next = (2 if len(self._order) > 2 else 1) if is_blinds else 0
        else:
            everybody = self._stage == "draw" and self._drawn == self._live
            self._require(everybody and not (self._waiting or self._late), "the draw is not over")
            self._stage, self._level, self._next = "round", 0, 0
        self._round = _ROUNDS[body.stage]
        self._acted.clear()

    def _to_act(self) -> int:
        """The next seat that owes chips or has not acted, 0 if none; a lone one with chips is asked only if it owes."""
        able = [seat for seat in self._clockwise(self._next) if self._stacks[seat] and seat in self._live]
        asked = [seat for seat in able if self._put[seat] < self._level or seat not in self._acted]
        if len(self._live) < 2 or not asked:
            return 0
        most = max(self._put[seat] for seat in self._live)
        return asked[0] if len(able) > 1 or most > self._put[asked[0]] else 0

    def _clockwise(self, start: int) -> Iterator[int]:
        start %= len(self._order)
        yield from self._order[start:]
        yield from self._order[:start]

    def _due(self) -> int:
        """The seat whose turn it is, or 0."""
        if self._stage == "opened":
            return self._order[0]
        if self._stage == "round":
            return self._to_act()
        if self._stage == "draw" and not self._waiting:
            return next((seat for seat in self._live if seat not in self._drawn), 0)
        return 0

    def _asks(self, turn: told.Turn) -> None:
        # A clock that is extended tells the same turn again.
        is_again = bool(self._asked) and turn.turn == self._turn and turn.seat == self._asked
        self._require(is_again or (not self._asked and self._is_next(turn.turn)), "this is not the next turn")
        self._require(bool(turn.seat) and turn.seat == self._due(), f"it is not the turn of seat {turn.seat}")
        owed = self._owed(turn.seat) if self._stage == "round" else 0
        self._require(turn.to_call_minor == owed, f"seat {turn.seat} owes {owed}, not {turn.to_call_minor}", "chips")
        self._asked, self._turn = turn.seat, turn.turn

    def _answers(self, seat: int, turn: int, is_idle: bool, may_be_unasked: bool) -> None:
        """A seat answers its turn. Where none was told, the seat chose before (the turn has a number), or nobody plays
        for it any more (it has none, and what is done is idle: a fold, a check, no discard).
        """
        self._require(seat == self._due() and seat > 0, f"it is not the turn of seat {seat}")
        if self._asked:
            self._require(turn == self._turn, f"turn {self._turn} is open, not {turn}")
        elif turn == 0:
            self._require(is_idle, f"nobody asked seat {seat}")
        else:
            self._require(may_be_unasked and self._is_next(turn), f"turn {turn} never began")
            self._turn = turn
            self._unasked += 1
        self._asked = 0

    def _is_next(self, turn: int) -> bool:
        """Turns are numbered through; the table's count of them goes on from hand to hand."""
        return turn == self._turn + 1 if self._turn else turn > 0

    def _owed(self, seat: int) -> int:
        return min(max(self._level - self._put[seat], 0), self._stacks[seat])

    def _acts(self, body: told.ActionTaken) -> None:
        seat, kind, added = body.seat, body.kind, body.added_minor
        self._require(self._stage == "round", "no round of betting is on")
        may_be_chosen = kind in ("fold", "check", "call") and not body.by_clock
        self._answers(seat, body.turn, kind in ("fold", "check"), may_be_chosen)
        self._require(not body.by_clock or kind in ("fold", "check"), "a clock can only check or fold")
        owed = self._owed(seat)
        fits = {
            "fold": added == 0,
            "check": added == 0 and not owed,
            "call": added == owed > 0,
            "bet": self._level == 0 < added,
            "raise": 0 < self._level < body.to_minor,
        }
        self._require(fits[kind], f"{kind} does not go with {added}, where the level is {self._level}", "chips")
        if added or body.all_in:
            self._pay(seat, added, body.all_in)
        self._put[seat] += added
        self._paid[seat] += added
        fine = body.to_minor == self._put[seat]
        self._require(fine, f"the chips of seat {seat} are at {self._put[seat]}, not {body.to_minor}", "chips")
        self._next = self._order.index(seat) + 1
        self._acted.add(seat)
        if kind == "fold":
            self._live.remove(seat)
        if kind in ("bet", "raise"):
            self._level, self._acted = body.to_minor, {seat}
            self._aggressor = seat if self._round == 2 else 0

    def _returns(self, body: told.BetReturned) -> None:
        self._require(self._stage == "round" and not self._to_act(), "the round is not over")
        due = (0, 0) if self._returned else self._uncalled()
        self._require((body.seat, body.amount_minor) == due and due[1] > 0, f"{due[1]} go back to {due[0]}", "chips")
        self._returned = True
        self._stacks[body.seat] += body.amount_minor
        self._paid[body.seat] -= body.amount_minor
        self._pot -= body.amount_minor

    def _collects(self, body: told.BetsCollected) -> None:
        self._require(self._stage == "round" and not self._to_act(), "the round is not over")
        self._require(not self._uncalled()[1], "a bet that nobody called is not returned", "chips")
        self._require(body.round == self._round, f"this is round {self._round}")
        self._require(body.pot_minor == self._pot, f"the pot is {self._pot}, not {body.pot_minor}", "chips")
        able = all(self._stacks[seat] for seat in self._live)
        by_rule = self._options.first_round == "check_or_open"
        if self._round == 2:
            by_rule = self._options.second_round_all_checked == "pass_out"
        passed_out = len(self._live) > 1 and by_rule and able and not self._level
        self._put = dict.fromkeys(self._order, 0)
        self._returned = False
        self._stage = f"round {self._round} over"
        if passed_out or len(self._live) == 1 or self._round == 2:
            self._payout = Payout(
                options=self._options,
                cards={seat.seat: seat.final_cards for seat in self._hand.seats},
                paid=self._paid,
                clockwise=self._order,
                live=self._live,
                extra=self._extra,
                aggressor=self._aggressor,
                drew=bool(self._drawn),
                passed_out=passed_out,
            )

    def _uncalled(self) -> tuple[int, int]:
        return uncalled(self._paid, self._live)

    # The draw.

    def _discards(self, body: told.CardsDiscarded) -> None:
        self._require(self._stage == "draw", "no draw is on")
        self._answers(body.seat, body.turn, not body.count, False)
        self._require(not (body.by_clock and body.count), "a clock can only stand pat")
        most = self._options.max_draw
        if self._options.single_four_card_draw and self._late:
            most = min(most, 3)
        self._require(body.count <= most, f"{body.count} discards where {most} are the most")
        self._drawn.append(body.seat)
        self._waiting = body.seat if body.count else 0
        self._due_now = body.count
        if body.count == 4 and self._options.single_four_card_draw:
            self._late, self._due_now = body.seat, 3

    def _exchanges(self) -> bool:
        """Whether cards are due: to who has just discarded, or a late one when all have drawn."""
        return self._stage == "draw" and bool(self._waiting or (self._late and self._drawn == self._live))

    def _draws(self, body: told.CardsDrawn) -> None:
        self._require(self._exchanges(), "no cards are due to anybody")
        if self._waiting:
            fine = (body.seat, body.count, body.late) == (self._waiting, self._due_now, False)
            self._require(fine, f"{self._due_now} cards are due to seat {self._waiting}")
            self._waiting = 0
            return
        fine = (body.seat, body.count, body.late) == (self._late, 1, True)
        self._require(fine, f"a late card is due to seat {self._late}")
        burns = int(self._late == self._drawn[-1])
        self._require(self._burned == burns, f"{burns} cards are to be burned before the late one")
        self._late = self._burned = 0

    # The end.

    def _is_over(self) -> bool:
        return self._payout is not None

    def _paying(self) -> Payout:
        over = self._payout is not None and self._stage in ("round 1 over", "round 2 over")
        require(over, self._where, "the hand is not played to its end")
        assert self._payout is not None  # noqa: S101 - `require` has raised otherwise
        return self._payout

    def _shows(self, body: told.HandShown | told.HandMucked) -> None:
        if isinstance(body, told.HandShown) and body.voluntary:
            self._require(self._stage in ("ended", "settled", "voided"), "the hand is not over")
            require(self._payout is not None, self._where, "the hand was never decided")
            if self._payout is not None:
                self._payout.shows_unasked(body.seat, self._where)
            return
        self._paying().shows(body.seat, isinstance(body, told.HandShown), self._where)

    def _voided(self, body: told.HandVoided) -> None:
        self._require(self._hand.outcome == "void", "the hand was undone, and the file says otherwise", "void")
        self._require(self._stage not in ("before", "settled", "voided"), "it cannot be undone here", "void")
        self._stage = "voided"

    # Words that all of it needs.

    def _pay(self, seat: int, amount: int, all_in: bool) -> None:
        self._require(0 < amount <= self._stacks[seat], f"seat {seat} has {self._stacks[seat]}, not {amount}", "chips")
        self._stacks[seat] -= amount
        self._pot += amount
        self._require(all_in == (not self._stacks[seat]), f"seat {seat} has {self._stacks[seat]} left", "chips")

    def _step(self, before: str, after: str) -> None:
        self._require(self._stage == before, "it cannot be here")
        self._stage = after

    def _require(self, fine: bool, what: str, check: str = "events") -> None:
        require(fine, self._where, what, check)
