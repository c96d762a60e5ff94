"""Between the rules' values and the contract's messages: cards, options, legal actions, seats and views."""

from __future__ import annotations

from typing import Any, Final

from fivedraw.table.v1 import event_pb2, table_pb2
from google.protobuf import duration_pb2

from services.rules.betting import LegalActions
from services.rules.cards import format_card
from services.rules.hand import legal
from services.rules.rulebook import Rulebook
from services.table import preselection
from services.table import waiting as waiting_list
from services.table.state import Hand, Seat, TableSettings, TableState

SEATS_MAX: Final = 9
HOUR_MS: Final = 3_600_000
BETTING: Final = {
    "fixed_limit": table_pb2.BETTING_FIXED_LIMIT,
    "spread_limit": table_pb2.BETTING_SPREAD_LIMIT,
    "pot_limit": table_pb2.BETTING_POT_LIMIT,
    "no_limit": table_pb2.BETTING_NO_LIMIT,
}
BETTING_NAME: Final = {number: name for name, number in BETTING.items()}
STAGE: Final = {
    "forced_bets": table_pb2.STAGE_OPENING,
    "deal": table_pb2.STAGE_OPENING,
    "first_round": table_pb2.STAGE_FIRST_ROUND,
    "draw": table_pb2.STAGE_DRAW,
    "second_round": table_pb2.STAGE_SECOND_ROUND,
    "finished": table_pb2.STAGE_FINISHED,
}
ACTION: Final = {
    "fold": table_pb2.ACTION_KIND_FOLD,
    "check": table_pb2.ACTION_KIND_CHECK,
    "call": table_pb2.ACTION_KIND_CALL,
    "bet": table_pb2.ACTION_KIND_BET,
    "raise": table_pb2.ACTION_KIND_RAISE,
}
ACTION_NAME: Final = {number: name for name, number in ACTION.items()}
FORCED: Final = {
    "ante": table_pb2.FORCED_BET_KIND_ANTE,
    "small_blind": table_pb2.FORCED_BET_KIND_SMALL_BLIND,
    "big_blind": table_pb2.FORCED_BET_KIND_BIG_BLIND,
    "post": table_pb2.FORCED_BET_KIND_POST,
    "dead_post": table_pb2.FORCED_BET_KIND_DEAD_BLIND,
}
OUTCOME: Final = {
    "showdown": table_pb2.HAND_OUTCOME_SHOWDOWN,
    "uncontested": table_pb2.HAND_OUTCOME_UNCONTESTED,
    "passed_out": table_pb2.HAND_OUTCOME_PASSED_OUT,
}
STAKES_WORD: Final = {"fixed_limit": "FL", "spread_limit": "SL", "pot_limit": "PL", "no_limit": "NL"}
PRESELECTION: Final = {
    "": table_pb2.PRESELECTION_UNSPECIFIED,
    "check_fold": table_pb2.PRESELECTION_CHECK_FOLD,
    "check": table_pb2.PRESELECTION_CHECK,
    "call": table_pb2.PRESELECTION_CALL,
}
MODE: Final = {
    "open": table_pb2.TABLE_STATE_OPEN,
    "paused": table_pb2.TABLE_STATE_PAUSED,
    "closing": table_pb2.TABLE_STATE_CLOSING,
    "closed": table_pb2.TABLE_STATE_CLOSED,
}

# Contract field -> rulebook option, for those that differ by no more than the unit at the end of the name.
_AMOUNTS: Final = {
    "ante_minor": "ante",
    "small_blind_minor": "small_blind",
    "big_blind_minor": "big_blind",
    "chip_unit_minor": "chip_unit",
    "small_bet_minor": "small_bet",
    "big_bet_minor": "big_bet",
    "spread_min_minor": "spread_min",
    "spread_max_minor": "spread_max",
    "rake_cap_minor": "rake_cap",
}
_SAME: Final = (
    "seats",
    "bets_per_round",
    "first_round",
    "openers",
    "first_round_all_checked",
    "second_round",
    "second_round_all_checked",
    "max_draw",
    "single_four_card_draw",
    "cut",
    "reshuffle",
    "missed_draw",
    "losers",
    "odd_chips",
    "button_after_pass_out",
    "rake_basis_points",
)
_CLOCKS: Final = {"action_clock": "action_clock_ms", "draw_clock": "draw_clock_ms", "time_bank": "time_bank_ms"}
_PLAIN: Final = _AMOUNTS | {name: name for name in _SAME}


def duration(ms: int) -> duration_pb2.Duration:
    """Milliseconds as the well-known type."""
    value = duration_pb2.Duration()
    value.FromMilliseconds(ms)
    return value


def cards(numbers: tuple[int, ...]) -> list[str]:
    """Cards as the contract writes them."""
    return [format_card(number) for number in numbers]


def options(book: Rulebook, settings: TableSettings) -> table_pb2.GameOptions:
    """All options of a rulebook as the contract tells them."""
    told = table_pb2.GameOptions(
        betting=BETTING[book.betting],
        buy_in_min_minor=book.min_buy_in_minor,
        buy_in_max_minor=book.max_buy_in_minor,
        hand_interval=duration(settings.hand_interval_ms),
        chat=settings.chat,
        observers_max=settings.observers_max,
        disconnect_time=duration(settings.disconnect_ms),
    )
    for field, option in _PLAIN.items():
        setattr(told, field, getattr(book, option))
    for field, option in _CLOCKS.items():
        getattr(told, field).FromMilliseconds(getattr(book, option))
    return told


def overrides(asked: table_pb2.GameOptions) -> dict[str, int | str | bool]:
    """The options that a request sets, by rulebook name; buy-ins stay out, since they follow from other options."""
    given: dict[str, int | str | bool] = {}
    for field, option in _PLAIN.items():
        if asked.HasField(field):  # type: ignore[arg-type]  # the names come from the table above
            given[option] = getattr(asked, field)
    if asked.HasField("betting"):
        given["betting"] = BETTING_NAME.get(asked.betting, f"unknown ({asked.betting})")
    for field, option in _CLOCKS.items():
        if asked.HasField(field):  # type: ignore[arg-type]
            given[option] = getattr(asked, field).ToMilliseconds()
    return given


def rulebook(book: Rulebook, settings: TableSettings) -> table_pb2.Rulebook:
    """A rulebook with its texts."""
    return table_pb2.Rulebook(
        name=f"rulebooks/{book.name}",
        titles=book.titles,
        texts=book.texts,
        options=options(book, settings),
    )


def legal_actions(allowed: LegalActions) -> table_pb2.LegalActions:
    """What a seat may do, as the contract tells it."""
    told = table_pb2.LegalActions(fold=allowed.fold, check=allowed.check)
    if allowed.call is not None:
        told.call = True
        told.call_minor = allowed.call
    if allowed.bet is not None:
        told.bet.least_minor, told.bet.most_minor = allowed.bet
    if allowed.raise_ is not None:
        getattr(told, "raise").least_minor, getattr(told, "raise").most_minor = allowed.raise_
    if allowed.max_discards is not None:
        told.discard = True
        told.max_discards = allowed.max_discards
    return told


def table(state: TableState) -> table_pb2.Table:
    """The table as a lobby lists it."""
    told = table_pb2.Table(
        name=state.name,
        display_name=state.display_name,
        rulebook=f"rulebooks/{state.rulebook.name}",
        currency=state.currency,
        options=options(state.rulebook, state.settings),
        state=MODE[state.mode],
        seats_taken=len(state.seats),
        hand=state.last_hand,
        epoch=state.epoch,
        stakes=stakes(state.rulebook),
        waiting=len(state.waiting),
        seats_free=len(waiting_list.free_seats(state)),
        carry_minor=state.carry,
        stake_minor=state.rulebook.unit_stake,
        template=f"templates/{state.template}" if state.template else "",
    )
    told.average_pot_minor, told.hands_per_hour = _pace(state)
    if state.recent_hands:
        told.last_hand_time.FromMilliseconds(state.recent_hands[-1][0])
    told.create_time.FromMilliseconds(state.created_ms)
    return told


def table_key(state: TableState) -> tuple[object, ...]:
    """All that changes in `table` while a table lives: with an equal key, the message is the same."""
    return state.epoch, state.mode, tuple(state.seats), state.last_hand, state.carry, state.waiting, state.recent_hands


def seat_settings(seat: Seat) -> table_pb2.SeatSettings:
    """How a seat wants to be treated. For its player's eyes."""
    return table_pb2.SeatSettings(
        auto_muck=seat.auto_muck,
        wait_for_blind=seat.wait_for_blind,
        auto_post=seat.auto_post,
        auto_rebuy_minor=seat.auto_rebuy,
    )


def stakes(book: Rulebook) -> str:
    """The stakes in a few characters, minor units."""
    parts = [STAKES_WORD[book.betting]]
    if book.betting == "fixed_limit":
        parts.append(f"{book.small_bet}/{book.big_bet}")
    elif book.betting == "spread_limit":
        parts.append(f"{book.spread_min}-{book.spread_max}")
    elif book.big_blind:
        parts.append(f"{book.small_blind}/{book.big_blind}")
    if book.ante:
        parts.append(f"ante {book.ante}")
    return " ".join(parts)


def _pace(state: TableState) -> tuple[int, int]:
    """Average pot and hands an hour of the last hands; zeros before there were two."""
    hands = state.recent_hands
    if len(hands) < 2:
        return (hands[0][1] if hands else 0), 0
    span_ms = max(1, hands[-1][0] - hands[0][0])
    return sum(pot for _, pot in hands) // len(hands), (len(hands) - 1) * HOUR_MS // span_ms


def at_present(table: table_pb2.Table, now_ms: int) -> table_pb2.Table:
    """The same row with the pace that the time since the last hand still allows."""
    if table.hands_per_hour:
        since_ms = max(1, now_ms - table.last_hand_time.ToMilliseconds())
        table.hands_per_hour = min(table.hands_per_hour, HOUR_MS // since_ms)
    return table


def seat_view(state: TableState, seat: Seat) -> table_pb2.SeatView:
    """A seat as everybody sees it."""
    told = table_pb2.SeatView(
        seat=seat.number,
        player=seat.player,
        display_name=seat.display_name,
        stack_minor=seat.stack,
        sitting_out=seat.sitting_out,
        leaving=seat.leaving,
        drawn=-1,
        time_bank=duration(seat.time_bank_ms),
        waiting_for_blind=seat.owes_blind,
        disconnected=not seat.connected,
    )
    hand = state.hand
    if hand is not None and hand.engine is not None and hand.sittings.get(seat.number) == seat.sitting:
        _add_hand(told, hand, seat)
    return told


def _add_hand(told: table_pb2.SeatView, hand: Hand, seat: Seat) -> None:
    engine = hand.engine
    if engine is None:
        return
    at = engine.position(seat.number)
    told.dealt_in = True
    told.folded = not engine.live >> at & 1
    if not hand.settled:
        told.stack_minor = engine.stacks[at]
        told.bet_minor = engine.put[at]
        told.all_in = not told.folded and engine.stacks[at] == 0
    told.drawn = engine.drawn[at]
    told.pat_by_clock = seat.number in hand.pat_by_clock
    shown = hand.shown.get(seat.number, ())
    told.shown.extend(cards(shown))


def turn_of(state: TableState) -> table_pb2.Turn | None:
    """The turn being waited for, its deadline left open; None if nobody is to act."""
    hand = state.hand
    if hand is None or not hand.turn or state.clock is None:
        return None
    told = table_pb2.Turn(seat=state.clock.seat, turn=hand.turn)
    engine = hand.engine
    if engine is not None and engine.to_act >= 0 and engine.stage in ("first_round", "second_round"):
        at = engine.to_act
        told.to_call_minor = min(max(engine.level - engine.put[at], 0), engine.stacks[at])
    return told


def actions_of(state: TableState, seat: int) -> table_pb2.LegalActions | None:
    """What this seat may do now, or None if it is not its turn. For this seat's own eyes."""
    hand = state.hand
    if hand is None or not hand.turn or state.clock is None or state.clock.seat != seat:
        return None
    if hand.engine is None:
        return table_pb2.LegalActions(cut=True)
    return legal_actions(legal(hand.engine, seat))


def waiting(state: TableState) -> table_pb2.Waiting.ValueType:
    """What the hand waits for when nobody is to act."""
    hand = state.hand
    if hand is not None and hand.cut_seat and hand.engine is None and hand.turn:
        return table_pb2.WAITING_CUT
    for effect in state.effects:
        if type(effect).__name__ in ("OpenHand", "ShuffleDeck", "ExchangeCards", "DealLateCard"):
            return table_pb2.WAITING_DECK
        return table_pb2.WAITING_WALLET
    return table_pb2.WAITING_UNSPECIFIED


def view(state: TableState, viewer: str, deadline_ms: int, reason: str = "") -> table_pb2.TableView:
    """The table as `viewer` (`players/{player}`, or anybody else) sees it. `deadline_ms` is that of the clock, or 0."""
    told = table_pb2.TableView(
        table=table(state),
        sequence=state.sequence,
        hand=state.last_hand,
        button=state.button,
        carry_minor=state.carry,
        waiting=waiting(state),
        reason=reason,
        seed_commitment=state.commitment,
    )
    for number in sorted(state.seats):
        if not state.seats[number].joining:
            told.seats.append(seat_view(state, state.seats[number]))
    own = state.seat_of(viewer)
    if own is not None and not own.joining:
        told.your_seat = own.number
        told.your_settings.CopyFrom(seat_settings(own))
        told.your_preselection = PRESELECTION[preselection.choice_of(state, own)]
    told.your_place = waiting_list.place_of(state, viewer)
    offer = waiting_list.offer_of(state, viewer)
    if offer is not None:
        told.your_offer.CopyFrom(offer)
    turn = turn_of(state)
    if turn is not None:
        if deadline_ms:
            turn.deadline.FromMilliseconds(deadline_ms)
        told.turn.CopyFrom(turn)
    hand = state.hand
    if hand is None:
        return told
    told.button = hand.button
    if hand.engine is None:
        told.stage = table_pb2.STAGE_OPENING
    elif not hand.void:
        told.stage = STAGE[hand.engine.stage]
        if not hand.settled:
            told.pot_minor = hand.engine.pot
            told.bet_level_minor = hand.engine.level
    if own is not None and hand.players.get(own.number) == viewer and hand.sittings[own.number] == own.sitting:
        if hand.engine is not None and not hand.void:
            told.your_cards.extend(cards(hand.engine.hands[hand.engine.position(own.number)]))
        allowed = actions_of(state, own.number)
        if allowed is not None:
            told.your_actions.CopyFrom(allowed)
    return told


def turn_started(state: TableState, seat: int, turn: int, clock_ms: int) -> dict[str, Any]:
    """The public body of a turn's beginning; its deadline is relative to the commit."""
    told = table_pb2.Turn(seat=seat, turn=turn)
    engine = state.hand.engine if state.hand is not None else None
    if engine is not None and engine.stage in ("first_round", "second_round"):
        at = engine.position(seat)
        told.to_call_minor = min(max(engine.level - engine.put[at], 0), engine.stacks[at])
    told.deadline.FromMilliseconds(clock_ms)
    return {"turn_started": event_pb2.TurnStarted(turn=told)}
