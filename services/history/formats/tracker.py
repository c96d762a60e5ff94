"""The text that trackers read (docs/histories.md): lines in a fixed order, and nothing that is not one of them.

A hand that these lines cannot tell truly is refused with FORMAT_CANNOT_EXPRESS.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fivedraw.history.v1 import history_service_pb2
from fivedraw.table.v1 import event_pb2, table_pb2

from services.history.formats.money import SIGNS, amount
from services.history.formats.tracker_names import tracker_names
from services.history.formats.tracker_summary import summary_lines
from services.history.formats.words import cannot_express, eastern, name_of_hand, one_line
from services.runtime.money import is_play_money

Hand = history_service_pb2.Hand

_LIMITS: Final[dict[int, str]] = {
    table_pb2.BETTING_FIXED_LIMIT: "Limit",
    table_pb2.BETTING_POT_LIMIT: "Pot Limit",
    table_pb2.BETTING_NO_LIMIT: "No Limit",
}
_ALL_IN: Final = " and is all-in"


def write(hand: Hand) -> str:
    """The hand for a tracker, from the viewer's seat, with two blank lines after it.

    Raises `Fault` FORMAT_CANNOT_EXPRESS.
    """
    _check(hand)
    lines = [
        *_header(hand),
        *_Posts(hand).lines(),
        "*** DEALING HANDS ***",
        *_dealt(hand),
        *_Play(hand).lines(),
        *summary_lines(hand),
    ]
    return "\n".join(lines) + "\n\n\n"


def _check(hand: Hand) -> None:
    options = hand.options
    if hand.incomplete:
        raise cannot_express(hand, "the tracker format", "a hand whose log was lost")
    if hand.outcome not in (table_pb2.HAND_OUTCOME_SHOWDOWN, table_pb2.HAND_OUTCOME_UNCONTESTED):
        raise cannot_express(hand, "the tracker format", "a hand that was void or passed out")
    if options.first_round != "blinds" or options.second_round != "check_or_bet":
        raise cannot_express(hand, "the tracker format", "a game without blinds")
    if options.betting not in _LIMITS:
        raise cannot_express(hand, "the tracker format", "spread limit")
    if options.single_four_card_draw:
        raise cannot_express(hand, "the tracker format", "a fourth card that comes late")
    if hand.carry_in_minor or hand.carry_out_minor:
        raise cannot_express(hand, "the tracker format", "a carried pot")
    if not is_play_money(hand.currency) and hand.currency not in SIGNS:
        raise cannot_express(hand, "the tracker format", f"the currency {hand.currency}")
    names = list(tracker_names(hand).values())
    winners = {seat for pot in hand.pots for seat, chips in pot.winners.items() if chips}
    if any(seat.mucked and not seat.final_cards and seat.seat not in winners for seat in hand.seats):
        raise cannot_express(hand, "the tracker format", "a mucked hand that the viewer may not see")
    if len(set(names)) != len(names):
        raise cannot_express(hand, "the tracker format", "two players of one name")


def _header(hand: Hand) -> Iterator[str]:
    options, currency = hand.options, hand.currency
    fixed = options.betting == table_pb2.BETTING_FIXED_LIMIT
    low = options.small_bet_minor if fixed else options.small_blind_minor
    high = options.big_bet_minor if fixed else options.big_blind_minor
    stakes = f"{amount(low, currency)}/{amount(high, currency)}"
    if not is_play_money(currency):
        stakes += f" {currency}"
    time = eastern(hand.start_time)
    stamp = f"{time:%Y/%m/%d} {time.hour}:{time:%M:%S} ET"
    # Two spaces after the colon are the format's own.
    yield f"PokerStars Hand #{hand.hand_id}:  5 Card Draw {_LIMITS[options.betting]} ({stakes}) - {stamp}"
    play_money = " (Play Money)" if is_play_money(currency) else ""
    table = one_line(hand.table_display_name or hand.table.removeprefix("tables/")).replace("'", "’")
    yield f"Table '{table}' {options.seats}-max{play_money} Seat #{hand.button} is the button"
    names = tracker_names(hand)
    for seat in hand.seats:
        yield f"Seat {seat.seat}: {names[seat.seat]} ({amount(seat.stack_before_minor, currency)} in chips)"


def _dealt(hand: Hand) -> Iterator[str]:
    for seat in hand.seats:
        if seat.seat == hand.your_seat and seat.dealt:
            yield f"Dealt to {tracker_names(hand)[seat.seat]} [{' '.join(seat.dealt)}]"


class _Posts:
    """Antes first, then blinds; a missed small blind is told with the big one."""

    def __init__(self, hand: Hand) -> None:
        self._currency = hand.currency
        self._names = tracker_names(hand)
        self._posts = [event.forced_bet_posted for event in hand.events if event.HasField("forced_bet_posted")]

    def lines(self) -> Iterator[str]:
        dead = {
            post.seat: post.amount_minor for post in self._posts if post.kind == table_pb2.FORCED_BET_KIND_DEAD_BLIND
        }
        for post in self._posts:
            if post.kind == table_pb2.FORCED_BET_KIND_ANTE:
                yield self._line(post, "posts the ante", post.amount_minor)
        for kind, words in (
            (table_pb2.FORCED_BET_KIND_SMALL_BLIND, "posts small blind"),
            (table_pb2.FORCED_BET_KIND_BIG_BLIND, "posts big blind"),
        ):
            for post in self._posts:
                if post.kind == kind:
                    yield self._line(post, words, post.amount_minor)
        for post in self._posts:
            if post.kind != table_pb2.FORCED_BET_KIND_POST:
                continue
            missed = dead.pop(post.seat, 0)
            words = "posts small & big blinds" if missed else "posts big blind"
            yield self._line(post, words, post.amount_minor + missed)
        for post in self._posts:
            if post.kind == table_pb2.FORCED_BET_KIND_DEAD_BLIND and post.seat in dead:
                yield self._line(post, "posts small blind", post.amount_minor)

    def _line(self, post: event_pb2.ForcedBetPosted, words: str, amount_minor: int) -> str:
        all_in = _ALL_IN if post.all_in else ""
        return f"{self._names[post.seat]}: {words} {amount(amount_minor, self._currency)}{all_in}"


class _Play:
    """Rounds, draw, showdown and payout."""

    def __init__(self, hand: Hand) -> None:
        self._hand = hand
        self._names = tracker_names(hand)
        options = hand.options
        fixed = options.betting == table_pb2.BETTING_FIXED_LIMIT
        self._cap = options.bets_per_round
        self._bets_of_stage = {
            table_pb2.STAGE_FIRST_ROUND: options.small_bet_minor if fixed else 0,
            table_pb2.STAGE_SECOND_ROUND: options.big_bet_minor if fixed else 0,
        }
        self._level = options.big_blind_minor
        self._full_level = options.big_blind_minor
        self._bets = 1
        self._bet = self._bets_of_stage[table_pb2.STAGE_FIRST_ROUND]
        self._kept: list[str] = []
        self._reshuffled = False
        self._awaits_cards = False
        shown = [event.hand_shown for event in hand.events if event.HasField("hand_shown")]
        self._shown = {show.seat: list(show.cards) for show in shown}
        self._live = {seat.seat for seat in hand.seats}

    def lines(self) -> Iterator[str]:
        for event in self._hand.events:
            match event.WhichOneof("body"):
                case "stage_started":
                    self._begin(event.stage_started)
                case "action_taken":
                    yield from self._act(event.action_taken)
                case "bet_returned":
                    returned = event.bet_returned
                    chips = self._money(returned.amount_minor)
                    yield f"Uncalled bet ({chips}) returned to {self._names[returned.seat]}"
                case "cards_discarded":
                    yield from self._discard(event.cards_discarded)
                case "deck_reshuffled":
                    self._reshuffled = True
                    if not self._awaits_cards:
                        yield from self._reshuffle()
                case "cards_drawn":
                    yield from self._draw(event.cards_drawn)
        yield from self._showdown()

    def _begin(self, started: event_pb2.StageStarted) -> None:
        if started.stage == table_pb2.STAGE_SECOND_ROUND:
            self._level = self._full_level = self._bets = 0
            self._bet = self._bets_of_stage[started.stage]

    def _act(self, action: event_pb2.ActionTaken) -> Iterator[str]:
        name = self._names[action.seat]
        if action.by_clock:
            yield f"{name} has timed out"
        all_in = _ALL_IN if action.all_in else ""
        match action.kind:
            case table_pb2.ACTION_KIND_FOLD:
                self._live.discard(action.seat)
                yield f"{name}: folds"
            case table_pb2.ACTION_KIND_CHECK:
                yield f"{name}: checks"
            case table_pb2.ACTION_KIND_CALL:
                yield f"{name}: calls {self._money(action.added_minor)}{all_in}"
            case table_pb2.ACTION_KIND_BET:
                yield f"{name}: bets {self._money(action.to_minor)}{all_in}"
                yield from self._count(action.to_minor)
            case table_pb2.ACTION_KIND_RAISE:
                by = self._money(action.to_minor - self._level)
                yield f"{name}: raises {by} to {self._money(action.to_minor)}{all_in}"
                yield from self._count(action.to_minor)

    def _count(self, level: int) -> Iterator[str]:
        """Counts full bets towards the cap: in fixed limit at least half a bet is one (RULES 4)."""
        self._level = level
        if self._cap and self._bet and 2 * (level - self._full_level) >= self._bet:
            self._full_level = level
            self._bets += 1
            if self._bets == self._cap:
                yield "Betting is capped"

    def _discard(self, discard: event_pb2.CardsDiscarded) -> Iterator[str]:
        name = self._names[discard.seat]
        if discard.by_clock:
            yield f"{name} has timed out"
        if not discard.count:
            yield f"{name}: stands pat"
            return
        cards = f" [{' '.join(discard.your_discards)}]" if discard.seat == self._hand.your_seat else ""
        yield f"{name}: discards {discard.count} {'card' if discard.count == 1 else 'cards'}{cards}"
        self._awaits_cards = True
        if discard.seat == self._hand.your_seat:
            given_up = set(discard.your_discards)
            dealt = next(seat.dealt for seat in self._hand.seats if seat.seat == discard.seat)
            self._kept = [card for card in dealt if card not in given_up]

    def _draw(self, drawn: event_pb2.CardsDrawn) -> Iterator[str]:
        self._awaits_cards = False
        if drawn.seat == self._hand.your_seat and drawn.your_cards:
            # Who kept nothing has one bracket alone: an empty one would be taken for the cards.
            kept = f" [{' '.join(self._kept)}]" if self._kept else ""
            yield f"Dealt to {self._names[drawn.seat]}{kept} [{' '.join(drawn.your_cards)}]"
        yield from self._reshuffle()

    def _reshuffle(self) -> Iterator[str]:
        if self._reshuffled:
            self._reshuffled = False
            yield "The deck is reshuffled"

    def _showdown(self) -> Iterator[str]:
        contested = len(self._live) > 1
        told: set[int] = set()
        if contested:
            yield "*** SHOW DOWN ***"
            for event in self._hand.events:
                if event.HasField("hand_shown") and not event.hand_shown.voluntary:
                    told.add(event.hand_shown.seat)
                    yield self._shows(event.hand_shown.seat)
                elif event.HasField("hand_mucked"):
                    told.add(event.hand_mucked.seat)
                    seat = event.hand_mucked.seat
                    # Who showed a mucked hand after all is told as showing it, once.
                    yield self._shows(seat) if seat in self._shown else f"{self._names[seat]}: mucks hand"
        yield from self._collected()
        for seat in sorted(self._live - told):
            yield self._shows(seat) if seat in self._shown else f"{self._names[seat]}: doesn't show hand"

    def _shows(self, seat: int) -> str:
        cards = self._shown[seat]
        return f"{self._names[seat]}: shows [{' '.join(cards)}] ({name_of_hand(cards)})"

    def _collected(self) -> Iterator[str]:
        pots = list(self._hand.pots)
        if len(self._live) < 2:
            # Without a showdown all is one pot to whoever is left.
            total = sum(chips for pot in pots for chips in pot.winners.values())
            yield f"{self._names[min(self._live)]} collected {self._money(total)} from pot"
            return
        for pot in reversed(pots):
            name = pot_name(pot.index, len(pots))
            for seat, chips in sorted(pot.winners.items()):
                if chips:
                    yield f"{self._names[seat]} collected {self._money(chips)} from {name}"

    def _money(self, amount_minor: int) -> str:
        return amount(amount_minor, self._hand.currency)


def pot_name(index: int, pots: int) -> str:
    """What a pot is called among so many: `pot`, `main pot`, `side pot`, `side pot-2`."""
    if pots == 1:
        return "pot"
    if index == 0:
        return "main pot"
    return "side pot" if pots == 2 else f"side pot-{index}"
