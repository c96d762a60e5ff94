"""A table as its pure steps alone: effects are answered by a scripted ledger and deck, and every step is looked at.

Each step is committed as the store would: sequence, deadline, time. After each one the invariants of `check` hold:
nobody is told a card that is not theirs, no chip appears or is lost, and something is always under way.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from fivedraw.table.v1 import table_service_pb2 as pb
from google.protobuf.message import Message

from services.rules.betting import LegalActions
from services.rules.cards import parse_card
from services.rules.hand import legal
from services.rules.rulebook import load_rulebook
from services.table import asks, core, opening, outcome, play, seating, words
from services.table import state as s
from services.table.draft import Draft, Told
from services.table.driver import finish
from services.table.host import revive
from services.table.store import CLEAR_DEADLINE, KEEP_DEADLINE

CARD = re.compile(r"\b[2-9TJQKA][cdhs]\b")
OPERATOR = "operators/olga"
STRANGER = "players/nobody"


def player_at(seat: int) -> str:
    """Seat 1 is `players/p1` unless a test says otherwise."""
    return f"players/p{seat}"


def strings(message: Message) -> Iterator[str]:
    """Every text in a message, however deep."""
    for field, value in message.ListFields():
        values = value if field.is_repeated else [value]
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            continue
        for each in values:
            if isinstance(each, Message):
                yield from strings(each)
            elif isinstance(each, str):
                yield each


def cards_in(message: Message) -> set[int]:
    """Every card named anywhere in a message."""
    return {parse_card(name) for text in strings(message) for name in CARD.findall(text)}


class Table:
    """One table. `ask`, `act`, `time_out`, `work` are steps; `told` is everything told so far."""

    def __init__(self, rulebook: str = "house", seed: int = 0, **overrides: Any) -> None:
        book = load_rulebook(rulebook).with_options(overrides)
        self.rng = random.Random(seed)
        self.state = s.TableState(
            table_id="oak",
            display_name="Oak",
            rulebook=book.without_texts(),
            currency="CHIPS",
            created_ms=1,
            settings=s.TableSettings(hand_interval_ms=1_000),
            epoch=1,
        )
        self.now_ms = 1_000_000
        self.deadline_ms = 0
        self.told: list[Told] = []
        self.requests = 0
        # The ledger: cash is without bound, what went into stacks is known.
        self.stacks: dict[str, int] = {}
        self.bought = 0
        self.taken_home = 0
        self.rake = 0
        self.pot = 0
        self.carry = 0
        self.before: dict[str, int] = {}
        self.carry_before = 0
        self.stub: list[int] = []
        self.histories: list[int] = []
        self.is_over = False
        self.lobby_rows: dict[tuple[object, ...], bytes] = {}

    # Steps.

    def step(self, change: Callable[[Draft], Any]) -> Draft:
        """Makes a draft and commits it. What the change raises is raised, and nothing has happened then."""
        before = s.dump_state(self.state)
        draft = Draft(self.state, self.now_ms, self.deadline_ms)
        try:
            done = change(draft)
        except Exception:
            assert s.dump_state(self.state) == before, "a refusal has changed the state"
            raise
        assert s.dump_state(self.state) == before, "a draft has changed what it was made from"
        if done is False:
            return draft
        # What is stored is what can be read again.
        self.state = s.load_state(s.dump_state(draft.state))
        assert self.state == draft.state
        if draft.deadline == CLEAR_DEADLINE:
            self.deadline_ms = 0
        elif draft.deadline != KEEP_DEADLINE:
            self.deadline_ms = self.now_ms + draft.deadline
        self.told += draft.told
        self.check(draft.told)
        return draft

    def request(self, caller: str, request_id: str = "", digest: bytes = b"") -> s.Request:
        self.requests += 1
        request_id = request_id or f"r{self.requests}"
        return s.Request(caller, request_id, digest or request_id.encode())

    def ask(self, kind: type[asks.Ask], caller: str, *facts: Any, **more: Any) -> Draft:
        """Asks something as somebody; raises the refusal."""
        asked = kind(self.request(caller), *facts, **more)
        return self.step(lambda draft: core.ask(draft, asked))  # type: ignore[arg-type]

    def sit(self, *seats: int, chips: int = 0) -> Table:
        """Sits players down and does what follows; the most that may be bought, unless said otherwise."""
        for seat in seats:
            self.ask(asks.SitDown, player_at(seat), seat, chips or self.state.rulebook.max_buy_in_minor, 0)
            self.work()
        return self

    def work(self) -> Table:
        """Carries out all effects that are due."""
        while self.state.effects:
            self.work_one()
        return self

    def work_one(self) -> None:
        """Carries out the first effect."""
        effect, epoch = self.state.effects[0], self.state.epoch
        change = self._perform(effect)
        self.step(lambda draft: finish(draft, epoch, effect, change))

    def time_out(self) -> None:
        """Lets the running clock come to its end."""
        assert self.deadline_ms, "no clock runs"
        self.now_ms = max(self.now_ms, self.deadline_ms)
        self.step(core.clock_due)

    def revive(self) -> None:
        self.step(revive)

    def next_hand(self) -> Table:
        """Waits for the next hand to be dealt (or its cut to be asked for)."""
        self.work()
        while self.state.playing is None:
            assert self.state.clock is not None, "no hand will begin"
            self.time_out()
            self.work()
        return self

    # Playing.

    @property
    def hand(self) -> s.Hand:
        assert self.state.hand is not None
        return self.state.hand

    @property
    def to_act(self) -> int:
        """The seat whose turn it is, or 0."""
        clock, hand = self.state.clock, self.state.playing
        return clock.seat if clock is not None and hand is not None and hand.turn else 0

    @property
    def stage(self) -> str:
        """`cut`, or the engine's stage."""
        return self.hand.engine.stage if self.hand.engine is not None else "cut"

    def legal(self) -> LegalActions:
        assert self.hand.engine is not None
        return legal(self.hand.engine, self.to_act)

    def cards(self, seat: int) -> tuple[int, ...]:
        engine = self.hand.engine
        return engine.hands[engine.position(seat)] if engine is not None else ()

    def act(self, kind: str = "", to: int = 0, cards: tuple[int, ...] = (), seat: int = 0) -> Draft:
        """The seat to act does this; without words, what costs least and goes on."""
        seat = seat or self.to_act
        if not kind:
            kind = self._least()
        player = self.state.seats[seat].player
        return self.ask(
            asks.TakeAction, player, self.hand.number, self.hand.turn, kind, to, cards, b"cut" if kind == "cut" else b""
        )

    def _least(self) -> str:
        if self.stage == "cut":
            return "cut"
        allowed = self.legal()
        if allowed.max_discards is not None:
            return "discard"
        if allowed.check:
            return "check"
        return "call" if allowed.call is not None else "fold"

    def act_at_random(self) -> None:
        """Any legal action, any legal size."""
        if self.stage == "cut":
            self.act("cut")
            return
        allowed = self.legal()
        if allowed.max_discards is not None:
            count = self.rng.randint(0, allowed.max_discards)
            self.act("discard", cards=tuple(self.rng.sample(self.cards(self.to_act), count)))
            return
        choices = [("check", 0)] * 4 if allowed.check else []
        choices += [("call", 0)] * 4 if allowed.call is not None else []
        choices += [("fold", 0)] if allowed.fold else []
        for kind, bounds in (("bet", allowed.bet), ("raise", allowed.raise_)):
            if bounds is not None:
                choices += [(kind, bounds[0]), (kind, bounds[1]), (kind, self.rng.randint(*bounds))]
        self.act(*self.rng.choice(choices))

    def play_to(self, stage: str) -> Table:
        """Goes on with the least actions (a bet opens where nothing else goes on) until a turn of this stage."""
        self.work()
        while self.stage != stage or not self.to_act:
            assert self.state.playing is not None, f"the hand was over before {stage}"
            self.go_on()
        return self

    def play_out(self) -> Table:
        """Goes on to the end of the hand."""
        self.work()
        while self.state.playing is not None:
            self.go_on()
        return self

    def go_on(self) -> None:
        """One step: an effect, or the least action."""
        if self.state.effects:
            self.work_one()
            return
        kind = self._least()
        bounds = self.legal().bet if self.stage != "cut" else None
        # Where checking through passes the hand out, and where there is no check, somebody bets.
        is_needed = kind == "fold" or (kind == "check" and self.state.rulebook.first_round == "check_or_open")
        if bounds is not None and is_needed:
            self.act("bet", bounds[0])
        else:
            self.act(kind)

    # The ledger and the deck.

    def _perform(self, effect: s.AnyEffect) -> Callable[[Draft], Any]:
        match effect:
            case s.OpenHand():
                order = list(range(52))
                self.rng.shuffle(order)
                self.stub = order
                button = effect.button or self.rng.choice(effect.seats)
                commitment = self.state.commitment or b"c" * 32
                return lambda draft: opening.hand_opened(draft, button, effect.hand, commitment, b"h" * 32)
            case s.ShuffleDeck():
                return lambda draft: opening.deck_shuffled(draft, b"r" * 32, effect)
            case s.DealHand():
                assert effect.carry_in == self.carry
                self.before = {sitting: self.stacks[sitting] for sitting in effect.dealt_in}
                self.carry_before = self.carry
                self.pot, self.carry = self.carry, 0
                self._pay_in(effect.postings)
                hands = {seat: tuple(self.stub.pop() for _ in range(5)) for seat in effect.seats}
                return lambda draft: play.cards_dealt(draft, hands)
            case s.CollectBets():
                self._collect(effect)
                return play.bets_collected
            case s.ExchangeCards():
                drawn = tuple(self.stub.pop() for _ in range(effect.draw_now))
                return lambda draft: play.cards_exchanged(draft, effect.seat, drawn, None)
            case s.DealLateCard():
                if effect.burn:
                    self.stub.pop()
                card = self.stub.pop()
                return lambda draft: play.late_card_dealt(draft, effect.seat, card, effect.burn, None)
            case s.SettleHand():
                return self._settle(effect)
            case s.UndoHand():
                return self._undo(effect)
            case s.BuyIn():
                self.stacks[effect.sitting] = effect.amount
                self.bought += effect.amount
                return _seated(lambda draft: seating.bought_in(draft, effect, effect.amount, f"P{effect.seat}"))
            case s.TopUp():
                self.stacks[effect.sitting] += effect.amount
                self.bought += effect.amount
                stack = self.stacks[effect.sitting]
                return _seated(lambda draft: seating.topped_up(draft, effect, stack))
            case s.CashOut():
                amount = self.stacks.pop(effect.sitting)
                self.taken_home += amount
                return _between(lambda draft: seating.cashed_out(draft, effect, amount))
            case s.RefundCarry():
                amount, self.carry = self.carry, 0
                self.taken_home += amount
                return _between(lambda draft: seating.carry_refunded(draft, amount))
            case s.WriteHistory():
                self.histories.append(effect.hand)
                return seating.between_hands
            case s.CloseRegistry():
                self.is_over = True
                return lambda _draft: None
        raise AssertionError(f"no script for {effect}")

    def _pay_in(self, chips: tuple[s.SeatChips, ...]) -> None:
        for each in chips:
            self.stacks[each.sitting] -= each.amount
            self.pot += each.amount
            assert self.stacks[each.sitting] >= 0, "a bet beyond the stack"

    def _collect(self, effect: s.CollectBets | s.SettleHand) -> None:
        self._pay_in(effect.bets)
        for each in effect.returned:
            self.stacks[each.sitting] += each.amount
            self.pot -= each.amount

    def _settle(self, effect: s.SettleHand) -> Callable[[Draft], Any]:
        if effect.round:
            self._collect(effect)
        assert sum(each.amount for each in effect.wins) + effect.rake + effect.carry_out == self.pot
        for each in effect.wins:
            self.stacks[each.sitting] += each.amount
        self.rake += effect.rake
        self.before = {}
        self.carry, self.pot = effect.carry_out, 0
        stacks = dict(self.stacks)
        return _between(lambda draft: outcome.hand_settled(draft, stacks, b"n" * 32))

    def _undo(self, effect: s.UndoHand) -> Callable[[Draft], Any]:
        is_posted = bool(self.before)
        if is_posted:
            self.stacks = {**self.stacks, **self.before}
            self.pot, self.carry = 0, self.carry_before
        stacks = dict(self.before)
        carry = self.carry
        self.before = {}

        def change(draft: Draft) -> None:
            outcome.hand_undone(draft, effect, stacks, carry, b"n" * 32)
            if effect.request is not None:
                draft.answer(effect.request, pb.VoidHandResponse())

        return _between(change)

    # The invariants.

    def check(self, told: list[Told]) -> None:
        self._check_sequences()
        self._check_cards_told(told)
        for viewer in [*(seat.player for seat in self.state.seats.values()), STRANGER, OPERATOR]:
            self._check_view(viewer)
        self._check_lobby()
        self._check_chips()
        self._check_under_way()

    def _check_sequences(self) -> None:
        assert [each.public.sequence for each in self.told] == list(range(1, self.state.sequence + 1))

    def _shown(self) -> set[int]:
        hand = self.state.hand
        return {card for cards in hand.shown.values() for card in cards} if hand is not None else set()

    def _check_cards_told(self, told: list[Told]) -> None:
        for each in told:
            body = each.public.WhichOneof("body")
            assert cards_in(each.public) <= self._shown(), f"{body} tells everybody a card"
            assert not each.public.turn_started.HasField("your_actions")
            for form in each.private:
                assert form.event.sequence == each.public.sequence
                assert form.event.WhichOneof("body") == body
                assert form.player == self._owner(form.seat, form.player)
                if body in ("cards_dealt", "cards_drawn"):
                    assert cards_in(form.event) <= self._own_cards(form.seat) | self._gone(form.seat)

    def _owner(self, seat: int, told_to: str) -> str:
        hand = self.state.hand
        if hand is not None and seat in hand.players:
            return hand.players[seat]
        return self.state.seats[seat].player if seat in self.state.seats else told_to

    def _own_cards(self, seat: int) -> set[int]:
        hand = self.state.hand
        if hand is None or hand.engine is None or seat not in hand.seats:
            return set()
        return set(self.cards(seat))

    def _gone(self, seat: int) -> set[int]:
        engine = self.hand.engine
        return set(engine.discards[engine.position(seat)]) if engine is not None else set()

    def _check_view(self, viewer: str) -> None:
        view = words.view(self.state, viewer, self.deadline_ms)
        seat = self.state.seat_of(viewer)
        own: set[int] = set()
        if seat is not None and self.state.hand is not None and self.state.hand.players.get(seat.number) == viewer:
            own = self._own_cards(seat.number)
        assert cards_in(view) <= own | self._shown(), f"{viewer} sees a card that is not theirs"
        is_turn = seat is not None and self.to_act == seat.number and self.state.mode != "paused"
        assert view.HasField("your_actions") == is_turn or self.state.mode == "paused"

    def _check_lobby(self) -> None:
        row = words.table(self.state).SerializeToString(deterministic=True)
        assert self.lobby_rows.setdefault(words.table_key(self.state), row) == row, "the lobby would miss a change"

    def _check_chips(self) -> None:
        assert sum(self.stacks.values()) + self.pot + self.carry + self.rake + self.taken_home == self.bought
        if self.state.playing is None:
            for seat in self.state.seats.values():
                # An effect that is under way has happened in the ledger and not yet at the table.
                if not seat.joining and not self.state.effects:
                    assert seat.stack == self.stacks[seat.sitting], f"seat {seat.number}"
            if not self.state.effects:
                assert self.state.carry == self.carry
                assert set(self.stacks) == {seat.sitting for seat in self.state.seats.values()}

    def _check_under_way(self) -> None:
        """A hand never stands still, and a table with two who want to play always has a clock or an effect."""
        state = self.state
        if state.effects or state.mode == "paused":
            return
        if state.playing is not None:
            assert self.deadline_ms, "a hand waits for nothing"
            assert self.to_act
        elif state.mode == "closing":
            raise AssertionError("a closing table waits for nothing")
        elif state.mode == "open" and len(opening.ready_seats(state)) >= 2:
            assert self.deadline_ms, "two are ready and no hand is due"


def _between(change: Callable[[Draft], Any]) -> Callable[[Draft], Any]:
    def both(draft: Draft) -> None:
        change(draft)
        seating.between_hands(draft)

    return both


def _seated(change: Callable[[Draft], Any]) -> Callable[[Draft], Any]:
    def all_three(draft: Draft) -> None:
        change(draft)
        seating.wake(draft)
        seating.between_hands(draft)

    return all_three


def answer_of(table: Table, request: s.Request) -> bytes | None:
    """What is remembered of a request, or None."""
    for each in table.state.answers.get(request.caller, ()):
        if each.request_id == request.request_id:
            return each.answer
    return None


def replaced(table: Table, **changes: Any) -> None:
    """Puts something into the state that no step would."""
    table.state = msgspec.structs.replace(table.state, **changes)
