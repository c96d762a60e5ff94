"""Hands played by the rules engine with the real deck logic, as the table's log would hold them.

Everything follows from a `random.Random`, so a test that prints its seed can be run again.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from fivedraw.table.v1 import event_pb2, table_pb2, table_service_pb2

from services.deck import dealing
from services.history.names import HandKey
from services.history.record import record_of
from services.history.writing import FinishedHand, HandLog
from services.rules import drawing
from services.rules import events as rules
from services.rules.awaits import AwaitAction, AwaitDeal, AwaitDiscard, AwaitExchange, AwaitLateCard
from services.rules.cards import format_card
from services.rules.commands import (
    Act,
    AnyCommand,
    Begin,
    ClockRanOut,
    DeliverDeal,
    DeliverExchange,
    DeliverLateCard,
    Discard,
)
from services.rules.hand import awaits, decide, evolve, legal, start_hand
from services.rules.ranking import hand_name
from services.rules.rulebook import Rulebook, load_rulebook
from services.rules.state import HandState
from services.runtime.sealing import Sealer, event_aad
from tests.unit.history import contract_words as words

SEALER = Sealer([("test", bytes(range(32, 64)))])
START_MS = 1_700_000_000_000
PLAYERS = {seat: f"players/p{seat}" for seat in range(1, 10)}


@dataclass
class Log:
    """The log of one hand in the making: public events, and the private ones by seat."""

    table: str
    hand: int
    epoch: int = 1
    sequence: int = 100
    now_ms: int = START_MS
    events: list[table_service_pb2.LoggedEvent] = field(default_factory=list)

    def tell(self, private: Mapping[int, event_pb2.TableEvent] | None = None, **body) -> None:
        self.sequence += 1
        self.now_ms += 250
        public = event_pb2.TableEvent(sequence=self.sequence, epoch=self.epoch, hand=self.hand, **body)
        public.commit_time.FromMilliseconds(self.now_ms)
        logged = table_service_pb2.LoggedEvent(public_event=public.SerializeToString())
        for seat, event in (private or {}).items():
            aad = event_aad(self.table, self.epoch, self.sequence, seat)
            logged.sealed[seat] = SEALER.seal(event.SerializeToString(), aad, pad_to=64)
        self.events.append(logged)


@dataclass
class Played:
    """A finished hand: its log, the table, and what the engine knows."""

    log: Log
    table: table_pb2.Table
    state: HandState
    book: Rulebook
    dealt: dict[int, tuple[int, ...]]

    @property
    def key(self) -> HandKey:
        return HandKey(self.log.table.removeprefix("tables/"), self.log.hand)

    @property
    def finished(self) -> FinishedHand:
        return FinishedHand(self.log.table, self.log.epoch, self.log.hand)

    @property
    def hand_log(self) -> HandLog:
        return HandLog(self.table, self.log.events)

    @property
    def record(self):
        return record_of(self.table, self.log.events)

    def held(self) -> dict[int, set[str]]:
        """All cards that each seat ever held."""
        seats = self.state.seats
        held = {seat: {format_card(card) for card in self.dealt[seat]} for seat in seats}
        for position, seat in enumerate(seats):
            held[seat] |= {format_card(card) for card in self.state.hands[position]}
        return held


def table_of(book: Rulebook, name: str = "tables/red", currency: str = "USD", display: str = "Red") -> table_pb2.Table:
    return table_pb2.Table(
        name=name,
        display_name=display,
        rulebook=f"rulebooks/{book.name}",
        currency=currency,
        options=words.options(book),
        state=table_pb2.TABLE_STATE_OPEN,
        epoch=1,
    )


class Habits(NamedTuple):
    """How often a seat bets, folds and misses its clock; between which numbers it discards."""

    aggression: float
    folding: float
    time_outs: float
    discards: tuple[int, int]
    last_draws_four: bool


def play(
    rng: random.Random,
    rulebook: str = "house",
    *,
    overrides: Mapping[str, int | str | bool] | None = None,
    stacks: Mapping[int, int] | None = None,
    button: int | None = None,
    hand: int = 1,
    table: str = "tables/red",
    currency: str = "USD",
    carry: int = 0,
    posts: Mapping[int, int] | None = None,
    dead_posts: Mapping[int, int] | None = None,
    auto_muck: Mapping[int, bool] | None = None,
    aggression: float = 0.3,
    folding: float = 0.15,
    time_outs: float = 0.05,
    discards: tuple[int, int] = (0, 5),
    last_draws_four: bool = False,
    script: list[AnyCommand] | None = None,
    start_ms: int = START_MS,
) -> Played:
    """Plays one hand to its end: by `script` as far as it goes, then by chance."""
    book = load_rulebook(rulebook).with_options(dict(overrides or {}))
    if stacks is None:
        seats = sorted(rng.sample(range(1, book.seats + 1), rng.randint(2, book.seats)))
        stacks = {seat: rng.randint(book.unit_stake, 60 * book.unit_stake) for seat in seats}
    button = rng.choice(list(stacks)) if button is None else button
    log = Log(table, hand, now_ms=start_ms)
    state = start_hand(book, stacks, button, carry, posts, dead_posts, auto_muck)
    order = list(range(52))
    rng.shuffle(order)
    made = table_of(book, table, currency)
    _start(log, made, stacks, button, carry)
    story = _Story(log, state, dealing.open_deck(order), rng)
    story.do(Begin())
    steps = list(script or [])
    habits = Habits(aggression, folding, time_outs, discards, last_draws_four)
    while story.state.outcome is None:
        delivery = story.due()
        if delivery is not None:
            story.do(delivery)
        else:
            chosen = steps.pop(0) if steps else _choose(story.state, rng, habits)
            story.do(chosen)
    log.tell(hand_settled=event_pb2.HandSettled(next_commitment=bytes(32)))
    return Played(log, made, story.state, book, story.dealt)


def void(rng: random.Random, **options) -> Played:
    """A hand that is void in the middle: everything up to a random event, then the end."""
    played = play(rng, **options)
    started = event_pb2.TableEvent.FromString(played.log.events[0].public_event).hand_started
    bodies = [event_pb2.TableEvent.FromString(each.public_event).WhichOneof("body") for each in played.log.events]
    last = bodies.index("pot_awarded") if "pot_awarded" in bodies else bodies.index("hand_ended")
    kept = rng.randint(2, last)
    del played.log.events[kept:]
    played.log.sequence = 100 + kept
    played.log.tell(
        hand_voided=event_pb2.HandVoided(
            reason="an operator's order",
            by="operator-1",
            stacks_minor={seat.seat: seat.stack_minor for seat in started.seats},
            carry_minor=started.carry_minor,
        )
    )
    return played


def _start(log: Log, table: table_pb2.Table, stacks: Mapping[int, int], button: int, carry: int) -> None:
    seats = [
        event_pb2.StartingSeat(
            seat=seat, player=PLAYERS[seat], display_name=f"Player {seat}", stack_minor=stacks[seat], sitting=f"s{seat}"
        )
        for seat in sorted(stacks)
    ]
    log.tell(
        hand_started=event_pb2.HandStarted(
            button=button,
            seats=seats,
            carry_minor=carry,
            deck_number=log.hand,
            commitment=bytes(32),
            chain=bytes(32),
            options=table.options,
        )
    )
    log.tell(deck_committed=event_pb2.DeckCommitted(root=bytes(32)))


def _choose(state: HandState, rng: random.Random, habits: Habits) -> AnyCommand:
    waiting = awaits(state)
    assert isinstance(waiting, AwaitAction | AwaitDiscard)
    seat = waiting.seat
    if rng.random() < habits.time_outs:
        return ClockRanOut(seat)
    allowed = legal(state, seat)
    if isinstance(waiting, AwaitDiscard):
        hand = state.hands[state.position(seat)]
        least, most = (min(bound, allowed.max_discards) for bound in habits.discards)
        count = rng.randint(least, most)
        if habits.last_draws_four and drawing.following(state, state.to_act) < 0:
            count = min(4, allowed.max_discards)
        return Discard(seat, tuple(rng.sample(hand, count)))
    for kind, levels in (("raise", allowed.raise_), ("bet", allowed.bet)):
        if levels is not None and rng.random() < habits.aggression:
            least, most_level = levels
            to = least if rng.random() < 0.7 else rng.randint(least, most_level)
            if rng.random() < 0.15:
                to = most_level
            return Act(seat, kind, to)  # type: ignore[arg-type]
    folds = rng.random() < (habits.folding * 0.1 if allowed.check else habits.folding)
    if allowed.fold and folds:
        return Act(seat, "fold")
    if allowed.check:
        return Act(seat, "check")
    if allowed.call:
        return Act(seat, "call")
    if allowed.bet is not None:
        return Act(seat, "bet", allowed.bet[0])
    return Act(seat, "fold")


class _Story:
    def __init__(self, log: Log, state: HandState, deck: dealing.DeckState, rng: random.Random) -> None:
        self.log = log
        self.state = state
        self.deck = deck
        self.rng = rng
        self.dealt: dict[int, tuple[int, ...]] = {}
        self.turn = 0
        self._dealing: dealing.Dealing | None = None

    def _shuffle(self, cards: tuple[int, ...], _number: int) -> list[int]:
        return self.rng.sample(cards, len(cards))

    def due(self) -> AnyCommand | None:
        if self.state.to_act >= 0:
            return None
        due = awaits(self.state)
        if isinstance(due, AwaitDeal):
            self.deck, dealt = dealing.deal(self.deck, due.seats)
            self.dealt = {seat: dealt.of(seat) for seat in due.seats}
            return DeliverDeal(self.dealt)
        if isinstance(due, AwaitExchange):
            self.deck, dealt = dealing.exchange(
                self.deck,
                due.seat,
                due.discards,
                due.draw_now,
                shuffler=self._shuffle,
                folded=due.folded,
                mixed=due.mixed,
            )
            self._dealing = dealt
            return DeliverExchange(due.seat, dealt.of(due.seat), bool(dealt.reshuffles))
        if isinstance(due, AwaitLateCard):
            self.deck, dealt = dealing.late_card(
                self.deck, due.seat, burn=due.burn, shuffler=self._shuffle, folded=due.folded, mixed=due.mixed
            )
            self._dealing = dealt
            return DeliverLateCard(due.seat, dealt.of(due.seat)[0], bool(dealt.burned), bool(dealt.reshuffles))
        return None

    def do(self, command: AnyCommand) -> None:
        self.turn += 1
        told = decide(self.state, command)
        deals = [event for event in told if isinstance(event, rules.CardsDealt)]
        for event in told:
            self.state = evolve(self.state, event)
            if not isinstance(event, rules.CardsDealt):
                self._tell(event)
            elif event is deals[-1]:
                self._tell_deal(deals)
        seat = self.state.seat_at(self.state.to_act)
        if seat is not None:
            self._tell_turn(seat)

    def _tell_turn(self, seat: int) -> None:
        turn = table_pb2.Turn(seat=seat, turn=self.turn)
        own = event_pb2.TurnStarted(turn=turn, your_actions=words.legal_actions(legal(self.state, seat)))
        self.log.tell({seat: event_pb2.TableEvent(turn_started=own)}, turn_started=event_pb2.TurnStarted(turn=turn))

    def _tell_deal(self, deals: list[rules.CardsDealt]) -> None:
        seats = [event.seat for event in deals]
        private = {
            event.seat: event_pb2.TableEvent(
                cards_dealt=event_pb2.CardsDealt(seats=seats, your_cards=words.cards(event.cards))
            )
            for event in deals
        }
        self.log.tell(private, cards_dealt=event_pb2.CardsDealt(seats=seats))

    def _tell(self, event: rules.AnyEvent) -> None:
        tell = self.log.tell
        match event:
            case rules.Acted():
                tell(
                    action_taken=event_pb2.ActionTaken(
                        seat=event.seat,
                        kind=words.ACTION[event.kind],
                        to_minor=event.to,
                        added_minor=event.added,
                        all_in=event.all_in,
                        by_clock=event.by_clock,
                        turn=self.turn,
                    )
                )
            case rules.ForcedBetPosted():
                tell(
                    forced_bet_posted=event_pb2.ForcedBetPosted(
                        seat=event.seat, kind=words.FORCED[event.kind], amount_minor=event.amount, all_in=event.all_in
                    )
                )
            case rules.StageStarted():
                tell(stage_started=event_pb2.StageStarted(stage=words.STAGE[event.stage], pot_minor=self.state.pot))
            case rules.UncalledReturned():
                tell(bet_returned=event_pb2.BetReturned(seat=event.seat, amount_minor=event.amount))
            case rules.BetsCollected():
                number = 1 if event.stage == "first_round" else 2
                tell(bets_collected=event_pb2.BetsCollected(round=number, pot_minor=event.pot))
            case rules.Discarded():
                facts = {"seat": event.seat, "count": event.count, "by_clock": event.by_clock, "turn": self.turn}
                own = event_pb2.CardsDiscarded(**facts, your_discards=words.cards(event.cards))
                private = {event.seat: event_pb2.TableEvent(cards_discarded=own)} if event.cards else None
                tell(private, cards_discarded=event_pb2.CardsDiscarded(**facts))
            case rules.CardsDrawn():
                facts = {"seat": event.seat, "count": event.count, "late": event.late}
                own = event_pb2.CardsDrawn(**facts, your_cards=words.cards(event.cards))
                tell({event.seat: event_pb2.TableEvent(cards_drawn=own)}, cards_drawn=event_pb2.CardsDrawn(**facts))
            case rules.DeckReshuffled():
                self._tell_reshuffle()
            case rules.CardBurned():
                tell(card_burned=event_pb2.CardBurned())
            case rules.HandShown():
                tell(
                    hand_shown=event_pb2.HandShown(
                        seat=event.seat,
                        cards=words.cards(event.cards),
                        hand_name=hand_name(event.cards),
                        voluntary=event.voluntary,
                    )
                )
            case rules.HandMucked():
                tell(hand_mucked=event_pb2.HandMucked(seat=event.seat))
            case rules.PotAwarded():
                pot = table_pb2.Pot(
                    index=event.index, amount_minor=event.amount, winners=event.winners, rake_minor=event.rake
                )
                tell(pot_awarded=event_pb2.PotAwarded(pot=pot))
            case rules.HandEnded():
                tell(
                    hand_ended=event_pb2.HandEnded(
                        outcome=words.OUTCOME[event.outcome],
                        carry_minor=event.carry,
                        rake_minor=event.rake,
                        stacks_minor=event.stacks,
                    )
                )

    def _tell_reshuffle(self) -> None:
        assert self._dealing is not None
        (reshuffle,) = self._dealing.reshuffles
        out = (*self._dealing.burned, *self._dealing.cards)
        before = sum(1 for dealt in out if dealt.shuffle < reshuffle.number)
        self.log.tell(
            deck_reshuffled=event_pb2.DeckReshuffled(
                number=reshuffle.number, cards=len(reshuffle.order), root=bytes(32), dealt_before=before
            )
        )
