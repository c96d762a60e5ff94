"""What the bots of one table saw, and what of it must never be."""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from typing import Final

from fivedraw.table.v1 import event_pb2, table_pb2, table_service_pb2

HANDS_KEPT: Final = 2_000
FAULTS_KEPT: Final = 100

_ACTION_BODIES: Final = frozenset({"action_taken", "cards_discarded"})


@dataclass(slots=True)
class HandRecord:
    """One hand as its public events told it."""

    hand: int
    epoch: int
    deck_number: int
    commitment: bytes
    outcome: table_pb2.HandOutcome.ValueType = table_pb2.HAND_OUTCOME_UNSPECIFIED
    settled: bool = False
    # Undone because the table's store lost its last writes, and perhaps the hand's events with them.
    lost: bool = False
    # By seat: the five cards of the deal, known where the seat is a bot of ours.
    dealt: dict[int, frozenset[str]] = field(default_factory=dict)

    @property
    def finished(self) -> bool:
        """Whether the hand is over and its money is where it belongs."""
        return self.outcome == table_pb2.HAND_OUTCOME_VOID or self.settled


class TableRecord:
    """Everything that the bots of one table know together.

    `faults` names what must never be: a hand begun twice, a deck or a card dealt twice. The last 2,000 hands are kept.
    """

    def __init__(self, table: str, rulebook: str) -> None:
        self.table = table
        self.rulebook = rulebook
        self.hands: OrderedDict[int, HandRecord] = OrderedDict()
        self.hands_finished = 0
        self.actions = 0
        self.all_ins = 0
        self.kinds: Counter[str] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.rebuilt = 0
        self.faults: list[str] = []
        self._decks: OrderedDict[int, int] = OrderedDict()

    def finished_hands(self) -> list[HandRecord]:
        """The hands kept that are over, oldest first."""
        return [hand for hand in self.hands.values() if hand.finished]

    def see(self, update: table_service_pb2.WatchTableResponse) -> None:
        """Takes in a message of the table's public stream."""
        for event in update.events:
            self._see(event)

    def see_deal(self, hand: int, seat: int, cards: tuple[str, ...]) -> None:
        """Takes in five cards dealt to one of our bots; the same seat may say so again after a reconnection."""
        record = self.hands.get(hand)
        if record is None:
            return
        held = record.dealt.setdefault(seat, frozenset(cards))
        if held != frozenset(cards):
            self._fault(f"hand {hand}: seat {seat} was dealt twice")
        for other, theirs in record.dealt.items():
            if other != seat and theirs & held:
                self._fault(f"hand {hand}: seats {seat} and {other} were dealt the same card")

    def _see(self, event: event_pb2.TableEvent) -> None:
        body = event.WhichOneof("body")
        self.kinds[body or "none"] += 1
        if body in _ACTION_BODIES:
            self.actions += 1
            self.all_ins += event.action_taken.all_in
        elif body == "hand_started":
            self._started(event)
        elif body == "hand_ended":
            self._ended(event.hand, event.hand_ended.outcome)
        elif body == "hand_voided":
            self._ended(event.hand, table_pb2.HAND_OUTCOME_VOID)
        elif body == "hand_settled":
            self._settled(event.hand)
        elif body == "table_rebuilt":
            self.rebuilt += 1
            self._lost(event.table_rebuilt.voided_hand)

    def _started(self, event: event_pb2.TableEvent) -> None:
        body = event.hand_started
        if event.hand in self.hands:
            self._fault(f"hand {event.hand} began twice")
        if self._decks.get(body.deck_number, event.hand) != event.hand:
            self._fault(f"deck {body.deck_number} served hands {self._decks[body.deck_number]} and {event.hand}")
        self._decks[body.deck_number] = event.hand
        self.hands[event.hand] = HandRecord(event.hand, event.epoch, body.deck_number, body.commitment)
        while len(self.hands) > HANDS_KEPT:
            self.hands.popitem(last=False)
        while len(self._decks) > HANDS_KEPT:
            self._decks.popitem(last=False)

    def _ended(self, hand: int, outcome: table_pb2.HandOutcome.ValueType) -> None:
        record = self.hands.get(hand)
        if record is None or record.outcome == outcome:
            return
        if record.finished:
            self._fault(f"hand {hand} ended twice")
            return
        record.outcome = outcome
        self.outcomes[table_pb2.HandOutcome.Name(outcome).removeprefix("HAND_OUTCOME_").lower()] += 1
        if record.finished:
            self.hands_finished += 1

    def _lost(self, hand: int) -> None:
        if hand in self.hands:
            self.hands[hand].lost = True
            self._ended(hand, table_pb2.HAND_OUTCOME_VOID)

    def _settled(self, hand: int) -> None:
        record = self.hands.get(hand)
        if record is None or record.finished:
            return
        record.settled = True
        self.hands_finished += 1

    def _fault(self, fault: str) -> None:
        if len(self.faults) < FAULTS_KEPT:
            self.faults.append(f"{self.table}: {fault}")
