"""A stored hand as one viewer may see it: the one place where sealed cards are opened, and by what right (RULES 3.8).

- Who was dealt in sees its own cards, and the last five cards of hands that were mucked at the showdown.
- Whoever else asks, operators included, sees what was shown to everybody.
- An auditor sees everything, once `audit_delay_ms` has passed since the hand's end; the caller notes the reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Protocol

from fivedraw.history.v1 import history_service_pb2, record_pb2
from fivedraw.table.v1 import event_pb2, table_pb2, table_service_pb2

from services.history.names import HandKey
from services.history.record import public_events
from services.runtime.sealing import SealBrokenError, event_aad

# What one seat alone may do or did: its own part of these events fits into the one event.
_OF_ONE_SEAT: Final = frozenset({"turn_started", "cards_discarded", "cards_drawn"})


class Unsealer(Protocol):
    """What opens sealed parts; `runtime.sealing.Sealer` does."""

    def open(self, sealed: bytes, associated: bytes) -> bytes:
        """The content. Raises `runtime.sealing.SealBrokenError`."""
        ...


class NoKeys:
    """An unsealer for processes that hold no key, since they only ever read what is everybody's."""

    def open(self, sealed: bytes, associated: bytes) -> bytes:
        """Opens nothing. Raises `SealBrokenError`."""
        raise SealBrokenError("this process holds no sealing key")


class Right(Enum):
    """By what right a viewer reads."""

    PUBLIC = "public"
    DEALT_IN = "dealt_in"
    AUDITOR = "auditor"


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who reads: the full name of a player (`players/{player}`), empty for nobody, and whether it is an auditor.

    `audits` is to be true only when the delay has passed and the reading was noted.
    """

    player: str = ""
    audits: bool = False


@dataclass(slots=True)
class _SeatCards:
    dealt: list[str] = field(default_factory=list)
    discarded: list[str] = field(default_factory=list)
    drawn: list[str] = field(default_factory=list)

    @property
    def final(self) -> list[str]:
        return [card for card in self.dealt if card not in self.discarded] + self.drawn


def view(
    key: HandKey, hand_id: int, record: record_pb2.HandRecord, viewer: Viewer, sealer: Unsealer
) -> history_service_pb2.Hand:
    """The hand as the viewer may see it. Raises `runtime.sealing.SealBrokenError` if a part cannot be opened."""
    if record.HasField("ledger"):
        return _from_ledger(key, hand_id, record)
    public = list(public_events(record))
    started = next(event.hand_started for event in public if event.WhichOneof("body") == "hand_started")
    your_seat = next((seat.seat for seat in started.seats if viewer.player and seat.player == viewer.player), 0)
    right = Right.AUDITOR if viewer.audits else Right.DEALT_IN if your_seat else Right.PUBLIC
    mucked = {event.hand_mucked.seat for event in public if event.WhichOneof("body") == "hand_mucked"}
    opener = _Opener(key.table, sealer, list(zip(public, record.events, strict=True)))
    whole = {seat.seat for seat in started.seats} if right is Right.AUDITOR else {your_seat} - {0}
    last_five = mucked if right is Right.DEALT_IN else set()
    cards = {seat: opener.cards_of(seat) for seat in sorted(whole | last_five)}
    hand = _facts(key, hand_id, record, public, started)
    hand.your_seat = your_seat
    hand.events.extend(opener.events(right, your_seat))
    for seat in hand.seats:
        _show(seat, public, cards, whole, last_five)
    return hand


class _Opener:
    """Opens the sealed parts of one hand's events."""

    def __init__(
        self,
        table: str,
        sealer: Unsealer,
        events: list[tuple[event_pb2.TableEvent, table_service_pb2.LoggedEvent]],
    ) -> None:
        self._table = table
        self._sealer = sealer
        self._events = events
        self._opened: dict[tuple[int, int, int], event_pb2.TableEvent] = {}

    def events(self, right: Right, your_seat: int) -> Iterable[event_pb2.TableEvent]:
        """All events as one viewer sees them."""
        for public, logged in self._events:
            yield self._event(public, logged.sealed, right, your_seat)

    def cards_of(self, seat: int) -> _SeatCards:
        """All cards that a seat held in the hand."""
        cards = _SeatCards()
        for public, logged in self._events:
            if seat not in logged.sealed:
                continue
            private = self._open(public, logged.sealed, seat)
            match private.WhichOneof("body"):
                case "cards_dealt":
                    cards.dealt.extend(private.cards_dealt.your_cards)
                case "cards_discarded" if private.cards_discarded.seat == seat:
                    cards.discarded.extend(private.cards_discarded.your_discards)
                case "cards_drawn" if private.cards_drawn.seat == seat:
                    cards.drawn.extend(private.cards_drawn.your_cards)
        return cards

    def _event(
        self, public: event_pb2.TableEvent, sealed: Mapping[int, bytes], right: Right, your_seat: int
    ) -> event_pb2.TableEvent:
        if right is not Right.AUDITOR:
            return self._open(public, sealed, your_seat) if your_seat in sealed else public
        body = public.WhichOneof("body")
        if body == "hidden" and sealed:
            return self._open(public, sealed, min(sealed))
        if body in _OF_ONE_SEAT:
            part = getattr(public, body)
            seat = part.turn.seat if body == "turn_started" else part.seat
            return self._open(public, sealed, seat) if seat in sealed else public
        # Cards dealt are several seats' own at once; they stand with the seats.
        return public

    def _open(self, public: event_pb2.TableEvent, sealed: Mapping[int, bytes], seat: int) -> event_pb2.TableEvent:
        place = (public.epoch, public.sequence, seat)
        if place not in self._opened:
            content = self._sealer.open(sealed[seat], event_aad(self._table, *place))
            event = event_pb2.TableEvent.FromString(content)
            # Sequence, epoch, hand and time are the public event's, whatever was sealed.
            event.sequence, event.epoch, event.hand = public.sequence, public.epoch, public.hand
            event.commit_time.CopyFrom(public.commit_time)
            self._opened[place] = event
        return self._opened[place]


def _show(
    seat: history_service_pb2.HandSeat,
    public: Iterable[event_pb2.TableEvent],
    cards: Mapping[int, _SeatCards],
    whole: set[int],
    last_five: set[int],
) -> None:
    for event in public:
        match event.WhichOneof("body"):
            case "hand_shown" if event.hand_shown.seat == seat.seat:
                seat.shown = True
                seat.final_cards[:] = event.hand_shown.cards
            case "hand_mucked" if event.hand_mucked.seat == seat.seat:
                seat.mucked = True
            case "action_taken" if event.action_taken.seat == seat.seat:
                seat.timed_out |= event.action_taken.by_clock
            case "cards_discarded" if event.cards_discarded.seat == seat.seat:
                seat.timed_out |= event.cards_discarded.by_clock
    if seat.seat in whole:
        own = cards[seat.seat]
        seat.dealt[:] = own.dealt
        seat.discarded[:] = own.discarded
        seat.drawn[:] = own.drawn
    if seat.seat in whole | last_five and not seat.shown:
        seat.final_cards[:] = cards[seat.seat].final


def _facts(
    key: HandKey,
    hand_id: int,
    record: record_pb2.HandRecord,
    public: list[event_pb2.TableEvent],
    started: event_pb2.HandStarted,
) -> history_service_pb2.Hand:
    """What everybody may know of a hand."""
    hand = history_service_pb2.Hand(
        name=key.name,
        table=key.table,
        hand=key.hand,
        rulebook=record.table.rulebook,
        options=started.options if started.HasField("options") else record.table.options,
        currency=record.table.currency,
        button=started.button,
        carry_in_minor=started.carry_minor,
        hand_id=hand_id,
        table_display_name=record.table.display_name,
        record_version=record.version,
        written_by=record.written_by,
    )
    stacks: Mapping[int, int] = {}
    for event in public:
        match event.WhichOneof("body"):
            case "hand_started":
                hand.epoch = event.epoch
                hand.start_time.CopyFrom(event.commit_time)
            case "pot_awarded":
                hand.pots.append(event.pot_awarded.pot)
            case "hand_ended":
                hand.end_time.CopyFrom(event.commit_time)
                hand.outcome = event.hand_ended.outcome
                hand.rake_minor = event.hand_ended.rake_minor
                hand.carry_out_minor = event.hand_ended.carry_minor
                stacks = event.hand_ended.stacks_minor
            case "hand_voided":
                hand.end_time.CopyFrom(event.commit_time)
                hand.outcome = table_pb2.HAND_OUTCOME_VOID
                hand.rake_minor = 0
                hand.carry_out_minor = event.hand_voided.carry_minor
                hand.void_reason = event.hand_voided.reason
                stacks = event.hand_voided.stacks_minor
    if hand.outcome == table_pb2.HAND_OUTCOME_VOID:
        del hand.pots[:]
    hand.seats.extend(
        history_service_pb2.HandSeat(
            seat=seat.seat,
            player=seat.player,
            display_name=seat.display_name,
            stack_before_minor=seat.stack_minor,
            stack_after_minor=stacks.get(seat.seat, seat.stack_minor),
        )
        for seat in sorted(started.seats, key=lambda seat: seat.seat)
    )
    hand.pots.sort(key=lambda pot: pot.index)
    return hand


def _from_ledger(key: HandKey, hand_id: int, record: record_pb2.HandRecord) -> history_service_pb2.Hand:
    ledger = record.ledger
    paid = sum(seat.paid_minor for seat in ledger.seats) + ledger.carry_in_minor
    hand = history_service_pb2.Hand(
        name=key.name,
        table=key.table,
        hand=key.hand,
        epoch=ledger.epoch,
        rulebook=record.table.rulebook,
        options=record.table.options,
        currency=record.table.currency,
        start_time=ledger.open_time,
        end_time=ledger.close_time,
        outcome=table_pb2.HAND_OUTCOME_VOID if ledger.void else table_pb2.HAND_OUTCOME_UNSPECIFIED,
        rake_minor=ledger.rake_minor,
        carry_in_minor=ledger.carry_in_minor,
        carry_out_minor=ledger.carry_out_minor,
        incomplete=True,
        void_reason=ledger.reason,
        hand_id=hand_id,
        table_display_name=record.table.display_name,
        record_version=record.version,
        written_by=record.written_by,
    )
    hand.seats.extend(history_service_pb2.HandSeat(seat=seat.seat, player=seat.player) for seat in ledger.seats)
    if not ledger.void:
        winners = {seat.seat: seat.won_minor for seat in ledger.seats if seat.won_minor}
        hand.pots.append(table_pb2.Pot(index=0, amount_minor=paid, winners=winners, rake_minor=ledger.rake_minor))
    return hand
