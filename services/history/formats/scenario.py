"""A played hand as a scenario file: known cards, script and end, for `fivedraw scenario`. It holds every card."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from fivedraw.history.v1 import history_service_pb2
from fivedraw.table.v1 import event_pb2, table_pb2

from services.history.formats.words import OUTCOMES, cannot_express
from services.rules.cards import CARD_TEXTS, parse_cards
from services.rules.ranking import rank

Hand = history_service_pb2.Hand

_ACTIONS: Final[dict[int, str]] = {
    table_pb2.ACTION_KIND_FOLD: "fold",
    table_pb2.ACTION_KIND_CHECK: "check",
    table_pb2.ACTION_KIND_CALL: "call",
    table_pb2.ACTION_KIND_BET: "bet",
    table_pb2.ACTION_KIND_RAISE: "raise",
}
_BETTING: Final[dict[int, str]] = {
    table_pb2.BETTING_FIXED_LIMIT: "fixed_limit",
    table_pb2.BETTING_SPREAD_LIMIT: "spread_limit",
    table_pb2.BETTING_POT_LIMIT: "pot_limit",
    table_pb2.BETTING_NO_LIMIT: "no_limit",
}
_NUMBERS: Final = (
    ("seats", "seats"),
    ("ante", "ante_minor"),
    ("small_blind", "small_blind_minor"),
    ("big_blind", "big_blind_minor"),
    ("chip_unit", "chip_unit_minor"),
    ("bets_per_round", "bets_per_round"),
    ("max_draw", "max_draw"),
    ("rake_basis_points", "rake_basis_points"),
    ("rake_cap", "rake_cap_minor"),
)
_WORDS: Final = (
    "first_round",
    "openers",
    "first_round_all_checked",
    "second_round",
    "second_round_all_checked",
    "reshuffle",
    "missed_draw",
    "losers",
    "odd_chips",
    "button_after_pass_out",
)
# Options whose empty text is a choice of its own; elsewhere it means that nothing is said.
_MAY_BE_EMPTY: Final = frozenset({"openers"})
FOUR: Final = 4


def write(hand: Hand) -> str:
    """The hand as a scenario, indented, ends with LF. Raises `Fault` FORMAT_CANNOT_EXPRESS."""
    return msgspec.json.format(msgspec.json.encode(to_object(hand)), indent=1).decode() + "\n"


def write_line(hand: Hand) -> str:
    """The hand as a scenario on one line, ends with LF. Raises `Fault` FORMAT_CANNOT_EXPRESS."""
    return msgspec.json.encode(to_object(hand)).decode() + "\n"


def to_object(hand: Hand) -> dict[str, Any]:
    """The hand as what JSON encoders take. Raises `Fault` FORMAT_CANNOT_EXPRESS."""
    _check(hand)
    draws = _Draws(hand)
    dead = _dead_blinds(hand)
    scenario: dict[str, Any] = {
        "name": f"hand-{hand.hand_id}",
        "rule": "played",
        "rulebook": hand.rulebook.removeprefix("rulebooks/"),
        "options": options_of(hand.options),
        "stacks": {str(seat.seat): seat.stack_before_minor - dead.get(seat.seat, 0) for seat in hand.seats},
        "button": hand.button,
        "carry": hand.carry_in_minor + sum(dead.values()),
        "hands": {str(seat.seat): " ".join(seat.dealt) for seat in hand.seats},
        "stub": " ".join(draws.stub),
        "script": _script(hand),
        "expect": _end(hand),
    }
    posts = {
        str(event.forced_bet_posted.seat): event.forced_bet_posted.amount_minor
        for event in hand.events
        if event.HasField("forced_bet_posted") and event.forced_bet_posted.kind == table_pb2.FORCED_BET_KIND_POST
    }
    if posts:
        scenario["posts"] = posts
    if draws.reshuffles:
        scenario["reshuffles"] = [" ".join(cards) for cards in draws.reshuffles]
    return scenario


def options_of(options: table_pb2.GameOptions) -> dict[str, int | str | bool]:
    """A table's options under the names that rulebooks and scenarios use."""
    found: dict[str, int | str | bool] = {
        name: getattr(options, field)
        for name, field in _NUMBERS
        if options.HasField(field)  # type: ignore[arg-type]
    }
    if options.betting in _BETTING:
        found["betting"] = _BETTING[options.betting]
    if options.betting == table_pb2.BETTING_FIXED_LIMIT:
        found["small_bet"], found["big_bet"] = options.small_bet_minor, options.big_bet_minor
    if options.betting == table_pb2.BETTING_SPREAD_LIMIT:
        found["spread_min"], found["spread_max"] = options.spread_min_minor, options.spread_max_minor
    for name in _WORDS:
        value = getattr(options, name)
        if options.HasField(name) and (value or name in _MAY_BE_EMPTY):
            found[name] = value
    found["single_four_card_draw"] = options.single_four_card_draw
    found["cut"] = options.cut
    for name in ("action_clock", "draw_clock"):
        if options.HasField(name):  # type: ignore[arg-type]
            found[f"{name}_ms"] = getattr(options, name).ToMilliseconds()
    return found


def _check(hand: Hand) -> None:
    if hand.incomplete:
        raise cannot_express(hand, "the scenario format", "a hand whose log was lost")
    if hand.outcome == table_pb2.HAND_OUTCOME_VOID:
        raise cannot_express(hand, "the scenario format", "a hand that was void")
    if any(len(seat.dealt) != 5 for seat in hand.seats):
        raise cannot_express(hand, "the scenario format", "a hand whose cards the viewer may not all see")
    dead = _dead_blinds(hand)
    if any(seat.stack_before_minor <= dead.get(seat.seat, 0) for seat in hand.seats):
        raise cannot_express(hand, "the scenario format", "a dead blind that took the last chip")


def _dead_blinds(hand: Hand) -> dict[int, int]:
    """Dead blinds by seat. A scenario has no word for them, but they are what a carry is: chips of the main pot that
    are nobody's bet, taken from their seat before the hand.
    """
    return {
        event.forced_bet_posted.seat: event.forced_bet_posted.amount_minor
        for event in hand.events
        if event.HasField("forced_bet_posted") and event.forced_bet_posted.kind == table_pb2.FORCED_BET_KIND_DEAD_BLIND
    }


class _Draws:
    """The stub and the reshuffles in the order in which their cards came."""

    def __init__(self, hand: Hand) -> None:
        self.stub: list[str] = []
        self.reshuffles: list[list[str]] = []
        self._dealt = {seat.seat: list(seat.dealt) for seat in hand.seats}
        self._drawn = {card for seat in hand.seats for card in seat.drawn}
        self._mixed = hand.options.reshuffle == "mixed"
        self._given_up: dict[int, list[str]] = {}
        self._pool: list[str] = []
        self._until_reshuffle: int | None = None
        self._drawer = 0
        for event in hand.events:
            self._follow(event)

    def _follow(self, event: event_pb2.TableEvent) -> None:
        match event.WhichOneof("body"):
            case "action_taken" if event.action_taken.kind == table_pb2.ACTION_KIND_FOLD:
                self._given_up[event.action_taken.seat] = self._dealt[event.action_taken.seat]
            case "cards_discarded":
                self._drawer = event.cards_discarded.seat
                self._given_up[self._drawer] = list(event.cards_discarded.your_discards)
            case "deck_reshuffled":
                self._until_reshuffle = event.deck_reshuffled.dealt_before
                others = [cards for seat, cards in self._given_up.items() if seat != self._drawer]
                self._pool = [card for cards in others for card in cards]
            case "card_burned":
                self._came(self._burned())
            case "cards_drawn":
                for card in event.cards_drawn.your_cards:
                    self._came(card)
                self._turn()

    def _burned(self) -> str:
        """Which card was burned nobody knows: one that could have been, and that nobody drew, does as well."""
        seen = {card for cards in self._dealt.values() for card in cards} | self._drawn
        unseen = [card for card in CARD_TEXTS if card not in seen]
        from_reshuffle = bool(self.reshuffles) or self._until_reshuffle == 0
        if not from_reshuffle:
            return unseen[0]
        late = next(seat for seat, cards in self._given_up.items() if len(cards) == FOUR)
        pool = [card for card in self._pool if card not in self._drawn and card not in self._given_up[late]]
        return (pool + unseen if self._mixed else pool)[0]

    def _came(self, card: str) -> None:
        if self._until_reshuffle is not None:
            if self._until_reshuffle == 0:
                self._turn()
            else:
                self._until_reshuffle -= 1
        (self.reshuffles[-1] if self.reshuffles else self.stub).append(card)

    def _turn(self) -> None:
        if self._until_reshuffle is not None:
            self._until_reshuffle = None
            self.reshuffles.append([])


def _script(hand: Hand) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    for event in hand.events:
        match event.WhichOneof("body"):
            case "action_taken":
                steps.append(_action(event.action_taken))
            case "cards_discarded":
                discard = event.cards_discarded
                if discard.by_clock:
                    steps.append({"clock": discard.seat})
                else:
                    steps.append({"seat": discard.seat, "do": "discard", "cards": list(discard.your_discards)})
    return steps


def _action(action: event_pb2.ActionTaken) -> dict[str, Any]:
    if action.by_clock:
        return {"clock": action.seat}
    step: dict[str, Any] = {"seat": action.seat, "do": _ACTIONS[action.kind]}
    if action.kind in (table_pb2.ACTION_KIND_BET, table_pb2.ACTION_KIND_RAISE):
        step["to"] = action.to_minor
    return step


def _end(hand: Hand) -> dict[str, Any]:
    shown = [
        event.hand_shown.seat
        for event in hand.events
        if event.HasField("hand_shown") and not event.hand_shown.voluntary
    ]
    returned: dict[str, int] = {}
    for event in hand.events:
        if event.HasField("bet_returned"):
            seat = str(event.bet_returned.seat)
            returned[seat] = returned.get(seat, 0) + event.bet_returned.amount_minor
    end: dict[str, Any] = {
        "outcome": OUTCOMES[hand.outcome],
        "stacks": {str(seat.seat): seat.stack_after_minor for seat in hand.seats},
        "carry": hand.carry_out_minor,
        "rake": hand.rake_minor,
        "returned": returned,
    }
    if hand.outcome != table_pb2.HAND_OUTCOME_PASSED_OUT:
        end["pots"] = [
            {
                "amount": pot.amount_minor,
                "winners": {str(seat): chips for seat, chips in sorted(pot.winners.items()) if chips},
            }
            for pot in hand.pots
        ]
    if _showed_as_by_default(hand):
        mucked = sorted(event.hand_mucked.seat for event in hand.events if event.HasField("hand_mucked"))
        end["shown"], end["mucked"] = shown, mucked
    return end


def _showed_as_by_default(hand: Hand) -> bool:
    """Whether certainly nobody showed a beaten hand by a player's own setting, which a scenario does not know."""
    if hand.options.losers == "show_all":
        return True
    winners = {seat for pot in hand.pots for seat, chips in pot.winners.items() if chips}
    best = 0
    for event in hand.events:
        if event.HasField("hand_shown") and not event.hand_shown.voluntary:
            value = rank(parse_cards(event.hand_shown.cards))
            if value < best and event.hand_shown.seat not in winners:
                return False
            best = max(best, value)
    return True
