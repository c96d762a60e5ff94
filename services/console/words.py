"""Messages of the services as values that the pages show: named one by one, so that nothing else can get out.

No field that holds a viewer's own cards is ever read here; the cards in these values were shown to everybody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from fivedraw.table.v1 import event_pb2, table_pb2

from services.runtime.money import grouped, number

SUITS: Final = {
    "c": ("♣", "clubs", "black"),
    "d": ("♦", "diamonds", "red"),
    "h": ("♥", "hearts", "red"),
    "s": ("♠", "spades", "black"),
}
RANKS: Final = {"T": "10"}
_BETTING: Final[dict[int, str]] = {
    table_pb2.BETTING_FIXED_LIMIT: "FL",
    table_pb2.BETTING_SPREAD_LIMIT: "SL",
    table_pb2.BETTING_POT_LIMIT: "PL",
    table_pb2.BETTING_NO_LIMIT: "NL",
}
NAME_MAX: Final = 14

# Places round the table's rim, by number of seats the same: centre in a picture of 900 by 480.
PLACES: Final = ((450, 420), (225, 400), (95, 290), (110, 150), (270, 65), (450, 55), (630, 65), (790, 150), (805, 290))


@dataclass(frozen=True, slots=True)
class CardPicture:
    """A card that everybody may see."""

    rank: str
    suit: str
    name: str
    colour: str


@dataclass(frozen=True, slots=True)
class SeatPicture:
    """A seat as it is drawn."""

    number: int
    x: int
    y: int
    player: str
    name: str
    stack: str
    bet: str
    state: str
    is_turn: bool
    is_button: bool
    cards: list[CardPicture]
    backs: int


@dataclass(frozen=True, slots=True)
class TablePicture:
    """A table as it is drawn."""

    id: str
    name: str
    rulebook: str
    currency: str
    state: str
    hand: int
    stage: str
    pot: str
    carry: str
    waiting: str
    playing: bool
    deadline_ms: int
    epoch: int
    sequence: int
    seats: list[SeatPicture] = field(default_factory=list)


def short(name: str) -> str:
    """A name as it fits a seat's picture: of a long one both ends, since names often differ at their end."""
    return name if len(name) <= NAME_MAX else f"{name[: NAME_MAX // 2 - 1]}…{name[-NAME_MAX // 2 :]}"


def id_of(name: str) -> str:
    """The last part of a resource name."""
    return name.rpartition("/")[2]


def table_state(state: int) -> str:
    """A table's state in a word."""
    return table_pb2.TableState.Name(state).removeprefix("TABLE_STATE_").lower()  # type: ignore[arg-type]


def stakes(table: table_pb2.Table) -> str:
    """A table's stakes in a few characters, in the currency's own unit as every amount here: `NL 0.05/0.10 EUR`."""
    options, currency = table.options, table.currency

    def unit(*amounts_minor: int, between: str = "/") -> str:
        return between.join(number(each, currency) for each in amounts_minor)

    parts = [_BETTING.get(options.betting, "")]
    if options.betting == table_pb2.BETTING_FIXED_LIMIT:
        parts.append(unit(options.small_bet_minor, options.big_bet_minor))
    elif options.betting == table_pb2.BETTING_SPREAD_LIMIT:
        parts.append(unit(options.spread_min_minor, options.spread_max_minor, between="-"))
    elif options.big_blind_minor:
        parts.append(unit(options.small_blind_minor, options.big_blind_minor))
    if options.ante_minor:
        parts.append(f"ante {unit(options.ante_minor)}")
    return " ".join(part for part in [*parts, currency] if part)


def stage_name(stage: int) -> str:
    """A stage in words."""
    name = table_pb2.Stage.Name(stage).removeprefix("STAGE_")  # type: ignore[arg-type]
    return "between hands" if name == "UNSPECIFIED" else name.lower().replace("_", " ")


def in_hand(view: table_pb2.TableView) -> bool:
    """Whether a hand is open: being played, paid out or undone."""
    if view.stage == table_pb2.STAGE_FINISHED:
        return view.pot_minor > 0
    return view.stage != table_pb2.STAGE_UNSPECIFIED or view.waiting != table_pb2.WAITING_UNSPECIFIED


def waited_for(view: table_pb2.TableView) -> str:
    """What a hand waits for, in words."""
    if view.waiting:
        return "waits for the " + table_pb2.Waiting.Name(view.waiting).removeprefix("WAITING_").lower()
    return f"seat {view.turn.seat} to act" if view.HasField("turn") else "nobody to act"


def lasting(milliseconds: int) -> str:
    """A time in one figure, rounded down so that it changes seldom: `20 s`, `7 min`, `3 h`; empty below ten seconds."""
    seconds = milliseconds // 1000
    if seconds < 60:
        return f"{seconds // 10 * 10} s" if seconds >= 10 else ""
    if seconds < 3_600:
        return f"{seconds // 60} min"
    return f"{seconds // 3_600} h" if seconds < 172_800 else f"{seconds // 86_400} days"


def cards(shown: Iterable[str]) -> list[CardPicture]:
    """Pictures of cards that were shown to everybody."""
    pictures = []
    for card in shown:
        sign, suit, colour = SUITS[card[1]]
        rank = RANKS.get(card[0], card[0])
        pictures.append(CardPicture(rank, sign, f"{rank} of {suit}", colour))
    return pictures


def picture(view: table_pb2.TableView) -> TablePicture:
    """A table as everybody may see it."""
    table = view.table
    drawn = TablePicture(
        id=id_of(table.name),
        name=table.display_name,
        rulebook=id_of(table.rulebook),
        currency=table.currency,
        state=table_state(table.state),
        hand=view.hand,
        stage=stage_name(view.stage),
        pot=grouped(view.pot_minor, table.currency),
        carry=grouped(view.carry_minor, table.currency) if view.carry_minor else "",
        waiting=waited_for(view) if view.waiting else "",
        playing=in_hand(view),
        deadline_ms=view.turn.deadline.ToMilliseconds() if view.HasField("turn") else 0,
        epoch=table.epoch,
        sequence=view.sequence,
    )
    to_act = view.turn.seat if view.HasField("turn") else 0
    drawn.seats.extend(_seat(seat, to_act, view.button, table.currency) for seat in view.seats)
    return drawn


def _seat(seat: table_pb2.SeatView, to_act: int, button: int, currency: str) -> SeatPicture:
    x, y = PLACES[(seat.seat - 1) % len(PLACES)]
    shown = cards(seat.shown)
    has_hand = seat.dealt_in and not seat.folded and not shown
    return SeatPicture(
        number=seat.seat,
        x=x,
        y=y,
        player=id_of(seat.player),
        name=seat.display_name or id_of(seat.player),
        stack=grouped(seat.stack_minor, currency),
        bet=grouped(seat.bet_minor, currency) if seat.bet_minor else "",
        state=_seat_state(seat),
        is_turn=seat.seat == to_act,
        is_button=seat.seat == button,
        cards=shown,
        backs=5 if has_hand else 0,
    )


def _seat_state(seat: table_pb2.SeatView) -> str:
    words = [
        (seat.folded, "folded"),
        (seat.all_in, "all in"),
        (seat.sitting_out, "sitting out"),
        (seat.leaving, "leaving"),
        (seat.disconnected, "disconnected"),
        (seat.drawn == 0, "stands pat"),
        (seat.drawn > 0, f"drew {seat.drawn}"),
        (bool(seat.hand_name), seat.hand_name),
    ]
    return ", ".join(word for holds, word in words if holds)


def line(event: event_pb2.TableEvent, currency: str) -> str:
    """A public event of a table in that currency in one line; empty for what is nobody's business but a seat's."""
    kind = event.WhichOneof("body") or ""
    if kind in _MONEY_LINES:
        return _MONEY_LINES[kind](event, currency)
    if kind in _LINES:
        return _LINES[kind](event)
    return "" if kind in ("", "hidden", "action_preselected", "chat_sent") else kind.replace("_", " ")


def _action(event: event_pb2.TableEvent, currency: str) -> str:
    took = event.action_taken
    kind = table_pb2.ActionKind.Name(took.kind).removeprefix("ACTION_KIND_").lower()
    has_level = took.to_minor and kind not in ("fold", "check")
    level = f" to {grouped(took.to_minor, currency)}" if has_level else ""
    return f"seat {took.seat}: {kind}{level}{' (all in)' if took.all_in else ''}{' (clock)' if took.by_clock else ''}"


def _shown(event: event_pb2.TableEvent) -> str:
    told = event.hand_shown
    hand = " ".join(card.rank + card.suit for card in cards(told.cards))
    return f"seat {told.seat} shows {hand}: {told.hand_name}"


def _posted(event: event_pb2.TableEvent, currency: str) -> str:
    posted = event.forced_bet_posted
    return f"seat {posted.seat} posts {grouped(posted.amount_minor, currency)}"


def _stage(event: event_pb2.TableEvent, currency: str) -> str:
    began = event.stage_started
    return f"{stage_name(began.stage)}, pot {grouped(began.pot_minor, currency)}"


def _awarded(event: event_pb2.TableEvent, currency: str) -> str:
    pot = event.pot_awarded.pot
    winners = ", ".join(f"seat {seat} {grouped(amount, currency)}" for seat, amount in sorted(pot.winners.items()))
    return f"pot of {grouped(pot.amount_minor, currency)}: {winners}"


def _ended(event: event_pb2.TableEvent) -> str:
    outcome = table_pb2.HandOutcome.Name(event.hand_ended.outcome).removeprefix("HAND_OUTCOME_")
    return f"hand {event.hand} ends: {outcome.lower().replace('_', ' ')}"


_LINES: Final[dict[str, Callable[[event_pb2.TableEvent], str]]] = {
    "hand_started": lambda event: f"hand {event.hand} begins, button on seat {event.hand_started.button}",
    "cards_dealt": lambda event: f"five cards to seats {', '.join(map(str, event.cards_dealt.seats))}",
    "turn_started": lambda event: f"seat {event.turn_started.turn.seat} to act",
    "cards_discarded": lambda event: f"seat {event.cards_discarded.seat} discards {event.cards_discarded.count}",
    "cards_drawn": lambda event: f"seat {event.cards_drawn.seat} gets {event.cards_drawn.count}",
    "hand_shown": _shown,
    "hand_mucked": lambda event: f"seat {event.hand_mucked.seat} mucks",
    "hand_ended": _ended,
    "hand_voided": lambda event: f"hand {event.hand} is void: {event.hand_voided.reason} ({event.hand_voided.by})",
    "table_paused": lambda event: f"paused: {event.table_paused.reason}",
    "table_resumed": lambda event: "the table goes on",
    "table_closed": lambda event: f"closed: {event.table_closed.reason}",
    "table_rebuilt": lambda event: f"rebuilt from the ledger: {event.table_rebuilt.reason}",
    "seat_taken": lambda event: f"{event.seat_taken.seat.display_name} takes seat {event.seat_taken.seat.seat}",
    "seat_left": lambda event: f"seat {event.seat_left.seat} is left",
}

_MONEY_LINES: Final[dict[str, Callable[[event_pb2.TableEvent, str], str]]] = {
    "forced_bet_posted": _posted,
    "stage_started": _stage,
    "action_taken": _action,
    "pot_awarded": _awarded,
}
