"""Which place each card is due from, by the public events alone; and whether those events hang together."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from services.deck.dealing import DECK_SIZE, HAND_SIZE
from services.deck.verification.exported import Event, Hand
from services.deck.verification.report import Report

At = tuple[int, int]
"""Shuffle and place."""


class TranscriptBrokenError(ValueError):
    """The events tell no possible hand; the message says where."""


@dataclass(slots=True)
class Draw:
    """One delivery of the draw: who got how many, late or not, after how many burned cards."""

    seat: int
    count: int
    late: bool
    burns: int


@dataclass(slots=True)
class Transcript:
    """What the public events say about cards. `due` has a seat for each place that was dealt, 0 for a burned one."""

    due: dict[At, int] = field(default_factory=dict)
    stream: dict[int, list[At]] = field(default_factory=dict)
    roots: dict[int, tuple[str, int]] = field(default_factory=dict)
    deal_order: tuple[int, ...] = ()
    folded_before: list[tuple[int, ...]] = field(default_factory=list)
    draws: list[Draw] = field(default_factory=list)
    passed: list[At] = field(default_factory=list)


def transcript_of(hand: Hand, report: Report) -> Transcript | None:
    """Walks the events. Notes what is wrong, and returns `None` where they cannot be walked to their end."""
    _check_sequence(hand, report)
    walk = _Walk(hand)
    try:
        for event in hand.events:
            walk.take(event)
        walk.end()
    except TranscriptBrokenError as broken:
        report.failed.append(f"events: {broken}")
        return None
    return walk.transcript


def _check_sequence(hand: Hand, report: Report) -> None:
    """Sequences ascend by one; an epoch may only rise where a table that lost its state undoes the hand."""
    missing = 0
    for before, after in pairwise(hand.events):
        where = f"event {after.sequence} follows event {before.sequence}"
        if after.epoch > before.epoch and hand.outcome == "void":
            report.not_proved.append(f"That nothing is missing between epochs {before.epoch} and {after.epoch}.")
            continue
        report.check(after.sequence > before.sequence, "order", where)
        missing += max(after.sequence - before.sequence - 1, 0)
        report.check(after.epoch == before.epoch, "order", f"event {after.sequence} is of epoch {after.epoch}")
    started = next((event for event in hand.events if event.type == "hand_started"), None)
    if started is not None:
        report.check(started.epoch == hand.epoch, "order", f"event {started.sequence} is of epoch {started.epoch}")
    for event in hand.events:
        report.check(event.hand == hand.hand, "order", f"event {event.sequence} is of hand {event.hand}")
    if missing:
        report.not_proved.append(
            f"WHAT {missing} MISSING EVENTS SAID: numbers between those of the hand are not in the file. Talk and the"
            " waiting list have such numbers; no action, card or chip of the hand can be told without being missed."
        )


class _Walk:
    """Follows the stub's cursor through the events."""

    def __init__(self, hand: Hand) -> None:
        self.transcript = Transcript()
        self._mixed = hand.rules.reshuffle == "mixed"
        self._void = hand.outcome == "void"
        self._button = hand.button
        self._dealt_in = sorted(seat.seat for seat in hand.seats)
        proof = hand.proof
        self._passed = {(each.shuffle, each.place) for each in proof.passed} if proof is not None else set()
        self._shuffle, self._cursor, self._size = 0, 0, 0
        self._held: dict[int, int] = {}
        self._pile: dict[int, int] = {}
        self._discarded: dict[int, int] = {}
        self._owed: dict[int, int] = {}
        self._folded: list[int] = []
        self._burns = 0
        self._reshuffle: dict[str, Any] | None = None

    def take(self, event: Event) -> None:
        """One event; those that say nothing about cards are passed by."""
        body = event.body
        where = f"event {event.sequence} ({event.type})"
        match event.type:
            case "deck_committed":
                self._require(not self._size, where, "the deck is committed twice")
                self._size = DECK_SIZE
                self.transcript.roots[0] = (body["root"], DECK_SIZE)
            case "cards_dealt":
                self._deal(tuple(body["seats"]), where)
            case "action_taken" if body["kind"] == "fold":
                self._fold(body["seat"], where)
            case "cards_discarded":
                self._discard(body["seat"], body["count"], where)
            case "deck_reshuffled":
                self._require(self._reshuffle is None, where, "the deck is reshuffled twice for one draw")
                self._require(body["number"] == self._shuffle + 1, where, f"reshuffle {self._shuffle + 1} is due")
                self._reshuffle = body
            case "card_burned":
                self._burns += 1
            case "cards_drawn":
                self._draw(Draw(body["seat"], body["count"], bool(body["late"]), self._burns), where)
            case _:
                pass

    def end(self) -> None:
        """The end of the events: nothing may be owed, unless the hand was void."""
        if self._void:
            return
        unused = sorted(self._passed - set(self.transcript.passed))
        self._require(not unused, "proof", f"place {unused[:1]} was passed over for nobody")
        owing = [seat for seat, count in self._owed.items() if count]
        self._require(not owing, "end", f"seats {owing} did not get all cards of their draw")
        self._require(self._reshuffle is None and not self._burns, "end", "a reshuffle or a burned card led to no draw")

    def _deal(self, seats: tuple[int, ...], where: str) -> None:
        self._require(bool(self._size), where, "cards are dealt before the deck is committed")
        self._require(not self._held, where, "cards are dealt twice")
        clockwise = tuple(sorted(self._dealt_in, key=lambda seat: (seat <= self._button, seat)))
        self._require(seats == clockwise, where, f"the deal goes clockwise from the button's left: {list(clockwise)}")
        self.transcript.deal_order = seats
        self._held = dict.fromkeys(seats, HAND_SIZE)
        for _ in range(HAND_SIZE):
            for seat in seats:
                self._next(seat, late=False, where=where)

    def _fold(self, seat: int, where: str) -> None:
        self._require(seat in self._held, where, f"seat {seat} holds no hand to fold")
        self._folded.append(seat)
        self._pile[seat] = self._pile.get(seat, 0) + self._held.pop(seat)

    def _discard(self, seat: int, count: int, where: str) -> None:
        self._require(seat in self._held, where, f"seat {seat} holds no live hand")
        self._require(seat not in self._discarded, where, f"seat {seat} draws twice")
        self._require(0 <= count <= HAND_SIZE, where, f"{count} discards")
        self._require(
            not any(self._owed.get(each, 0) > (each in self._late_due()) for each in self._owed),
            where,
            "the draw before is not over",
        )
        self._held[seat] -= count
        self._discarded[seat] = self._owed[seat] = count
        if count:
            self._pile[seat] = count

    def _draw(self, draw: Draw, where: str) -> None:
        seat, owed = draw.seat, self._owed.get(draw.seat)
        self._require(owed is not None and seat in self._held, where, f"seat {seat} has no draw")
        # The fourth card of four is the only one that comes late, and it comes alone.
        is_fourth = self._discarded.get(seat) == 4 and owed == 1
        due = {owed, 3 if owed == 4 else owed}
        self._require(draw.count in due and draw.count > 0, where, f"{draw.count} cards for {owed} discards")
        self._require(draw.late == is_fourth, where, "the fourth card of four comes late, and no other")
        self._require(not draw.burns or draw.late, where, "a card is burned for a late card only")
        self.transcript.draws.append(draw)
        self.transcript.folded_before.append(tuple(self._folded))
        receivers = deque([0] * draw.burns + [seat] * draw.count)
        if self._reshuffle is not None:
            before = self._reshuffle["dealt_before"]
            self._require(0 <= before <= len(receivers), where, f"{before} cards before the reshuffle")
            for _ in range(before):
                self._next(receivers.popleft(), late=draw.late, where=where)
            self._turn_over(draw, self._reshuffle, where)
        for receiver in receivers:
            self._next(receiver, late=draw.late, where=where)
        self._owed[seat] = (owed or 0) - draw.count
        self._held[seat] += draw.count
        self._burns, self._reshuffle = 0, None

    def _turn_over(self, draw: Draw, told: dict[str, Any], where: str) -> None:
        """The reshuffle: what was left of the stub, who gives cards to the new one, and how many they are."""
        left = self._size - self._cursor
        own = self._discarded.get(draw.seat, 0) if draw.late else 0
        if not self._mixed:
            self._require(left <= own, where, f"the deck is reshuffled with {left} cards left")
        pool = sum(count for seat, count in self._pile.items() if seat != draw.seat) + (left if self._mixed else 0)
        self._require(told["cards"] == pool, where, f"{told['cards']} cards are reshuffled, {pool} are due")
        self._shuffle, self._cursor, self._size = self._shuffle + 1, 0, pool
        self._pile = {seat: count for seat, count in self._pile.items() if seat == draw.seat}
        self.transcript.roots[self._shuffle] = (told["root"], pool)

    def _next(self, seat: int, *, late: bool, where: str) -> None:
        while late and (self._shuffle, self._cursor) in self._passed:
            self.transcript.passed.append((self._shuffle, self._cursor))
            self._cursor += 1
        self._require(self._cursor < self._size, where, "the stub has no card for it")
        at = (self._shuffle, self._cursor)
        self.transcript.due[at] = seat
        self.transcript.stream.setdefault(seat, []).append(at)
        self._cursor += 1

    def _late_due(self) -> set[int]:
        return {seat for seat, count in self._discarded.items() if count == 4}

    @staticmethod
    def _require(fine: bool, where: str, what: str) -> None:
        if not fine:
            raise TranscriptBrokenError(f"{where}: {what}")
