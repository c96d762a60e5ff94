"""All of a table, as one value: seats, the hand being played, clocks and the effects that are still to be done.

A `TableState` is stored sealed, since a hand's cards are in it. Amounts are minor units.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from services.rules.rulebook import Rulebook
from services.rules.state import HandState

STATE_VERSION: Final = 1
ANSWERS_PER_CALLER_MAX: Final = 8
CALLERS_REMEMBERED_MAX: Final = 64
RECENT_HANDS_MAX: Final = 20
WAITING_MAX: Final = 50
DEBTS_MAX: Final = 200

Mode = Literal["open", "paused", "closing", "closed"]
ClockKind = Literal["act", "draw", "cut", "next_hand", "idle_carry"]
LeaveWhy = Literal["asked", "table_closed", "absent"]
Preselected = Literal["", "check_fold", "check", "call"]


class TableSettings(msgspec.Struct, frozen=True, gc=False):
    """How a table is run, beside its game: pause between hands, chat, watchers, and time for lost connections."""

    hand_interval_ms: int = 2_000
    chat: bool = False
    observers_max: int = 100
    disconnect_ms: int = 15_000


class Waiting(msgspec.Struct, frozen=True, gc=False):
    """A player on the waiting list. `seat` is kept for them until `until_ms` (store's time); 0 while none is."""

    player: str
    seat: int = 0
    until_ms: int = 0


class Debt(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Blinds that a player missed before leaving, the small one too if `is_dead`; until `until_ms` (store's time)."""

    player: str
    until_ms: int
    is_dead: bool


class Seat(msgspec.Struct, frozen=True, gc=False):
    """One taken seat. `stack` is what it had before the hand being played, and between hands what it has.

    joining        its buy-in is not confirmed yet
    owes_blind     newcomer, or back after missing blinds: posts a big blind when next dealt in
    owes_dead      it was missed blinds, never without `owes_blind`: posts the small one dead
    out_of_chips   sits out for want of chips alone, and comes back in when it has some
    missed_clocks  clocks missed in a row
    held           sits out since the table's state was lost, until its player is there or asks in
    top_up         chips to add after the hand, 0 for none
    top_up_id      names that promise to the ledger: `{epoch}.{sequence}` of when it was given
    wait_for_blind waits for the big blind instead of posting one
    auto_post      posts antes and blinds without being asked
    auto_rebuy     chips to buy whenever the stack is empty, 0 for none
    preselected    what to do when the turn comes in hand `preselected_hand`: `check_fold`, `check` or `call`
    call_most      most chips that a preselected call may add
    connected      a stream of its player is open
    seed           its player's own entropy for the next shuffle, empty for none
    """

    number: int
    player: str
    sitting: str
    display_name: str = ""
    stack: int = 0
    joining: bool = True
    sitting_out: bool = False
    leaving: bool = False
    auto_muck: bool = True
    owes_blind: bool = False
    owes_dead: bool = False
    missed_clocks: int = 0
    time_bank_ms: int = 0
    top_up: int = 0
    leave_why: LeaveWhy = "asked"
    wait_for_blind: bool = False
    auto_post: bool = True
    auto_rebuy: int = 0
    preselected: Preselected = ""
    preselected_hand: int = 0
    call_most: int = 0
    connected: bool = True
    seed: bytes = b""
    out_of_chips: bool = False
    held: bool = False
    top_up_id: str = ""


class TableClock(msgspec.Struct, frozen=True, gc=False):
    """A clock that runs. Its deadline is kept beside the state, in the store's own time.

    `on_bank`: the action clock is over and the seat's time bank runs. `left_ms`: what was left when the table was
    paused, -1 while it runs. `extended`: it was given once more because the house had been away.
    """

    kind: ClockKind
    duration_ms: int
    seat: int = 0
    turn: int = 0
    on_bank: bool = False
    left_ms: int = -1
    extended: bool = False


class Request(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Who asked for something, under which id of their own, and a digest of what was asked."""

    caller: str
    request_id: str
    digest: bytes


class Effect(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Something that another service must do. `number` is never used twice at a table within an epoch."""

    number: int
    hand: int


class OpenHand(Effect, frozen=True, gc=False):
    """Take the hand's number, draw lots for the first button (0), and open a deck."""

    seats: tuple[int, ...]
    button: int


class SeatSeed(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A player's own entropy for a shuffle."""

    seat: int
    seed: bytes


class ShuffleDeck(Effect, frozen=True, gc=False):
    """Shuffle with the cutter's entropy, which may be empty, and that of other seats, ascending."""

    cut: bytes
    cut_by: int
    seeds: tuple[SeatSeed, ...] = ()


class SeatChips(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Chips of one sitting in a step of a hand; `code` is a `TransferCode` of the wallet."""

    sitting: str
    amount: int
    code: int


class DealHand(Effect, frozen=True, gc=False):
    """Post the forced bets, then deal to `seats` in this order."""

    seats: tuple[int, ...]
    dealt_in: tuple[str, ...]
    postings: tuple[SeatChips, ...]
    carry_in: int


class CollectBets(Effect, frozen=True, gc=False):
    """Move a round's bets into the pot."""

    round: int
    bets: tuple[SeatChips, ...]
    returned: tuple[SeatChips, ...]


class ExchangeCards(Effect, frozen=True, gc=False):
    """Give a seat new cards for its discards."""

    seat: int
    discards: tuple[int, ...]
    draw_now: int
    folded: tuple[int, ...]
    mixed: bool


class DealLateCard(Effect, frozen=True, gc=False):
    """Give a seat the fourth card of its four-card draw."""

    seat: int
    burn: bool
    folded: tuple[int, ...]
    mixed: bool


class SettleHand(Effect, frozen=True, gc=False):
    """Collect the last round (0: nothing to collect), pay the pot out, close the deck, see to the history.

    `first_epoch` and `first` are the place of the hand's first event.
    """

    round: int
    bets: tuple[SeatChips, ...]
    returned: tuple[SeatChips, ...]
    wins: tuple[SeatChips, ...]
    rake: int
    carry_out: int
    first_epoch: int
    first: int


class UndoHand(Effect, frozen=True, gc=False):
    """Void the hand in the ledger, close its deck, see to the history."""

    reason: str
    by: str
    first_epoch: int
    first: int
    request: Request | None = None


class BuyIn(Effect, frozen=True, gc=False):
    """Enter a sitting into the registry and move the buy-in into its stack."""

    seat: int
    sitting: str
    player: str
    amount: int
    request: Request | None = None


class TopUp(Effect, frozen=True, gc=False):
    """Move more of a player's cash into its stack.

    `promise` names it to the ledger, over rebuilds too; empty for what the table does by itself. It is the seat's
    `top_up_id` where it was noted in a hand, else made of the request.
    """

    seat: int
    sitting: str
    amount: int
    request: Request | None = None
    promise: str = ""


class CashOut(Effect, frozen=True, gc=False):
    """Move a stack to the player's cash and end the sitting."""

    seat: int
    sitting: str
    request: Request | None = None


class RefundCarry(Effect, frozen=True, gc=False):
    """Give the carry back to those who paid it."""


class WriteHistory(Effect, frozen=True, gc=False):
    """Ask for the history of a settled hand, now that nothing more can happen in it."""

    epoch: int


class CloseRegistry(Effect, frozen=True, gc=False):
    """Say in the registry that the table is over."""


AnyEffect = (
    OpenHand
    | ShuffleDeck
    | DealHand
    | CollectBets
    | ExchangeCards
    | DealLateCard
    | SettleHand
    | UndoHand
    | BuyIn
    | TopUp
    | CashOut
    | RefundCarry
    | WriteHistory
    | CloseRegistry
)
HAND_EFFECTS: Final = (
    OpenHand,
    ShuffleDeck,
    DealHand,
    CollectBets,
    ExchangeCards,
    DealLateCard,
    SettleHand,
    UndoHand,
)


class Uncollected(msgspec.Struct, frozen=True, gc=False):
    """A round that is over and whose bets are not in the pot's account yet."""

    round: int
    bets: tuple[SeatChips, ...]
    returned: tuple[SeatChips, ...]


class Hand(msgspec.Struct, frozen=True, gc=False):
    """The hand being played, from the moment its number is asked for until the next one begins.

    engine        the rules' state, None until the forced bets
    sittings      seat -> sitting, of those dealt in
    first_epoch, first  the place of its first event
    cut_seat      who may cut now, 0 for nobody
    turn          number of the turn being waited for, 0 for none
    decided       its payout is decided: it can no longer be void
    settled       its money is where it belongs; it stays here until the next one begins, so that hands can be shown
    void          it is being undone, or was
    shown         seat -> cards shown to everybody
    pat_by_clock  seats that stood pat because their clock ran out
    repeated      the button stayed for it
    owed          sitting -> whether it owed a blind, and the dead one, before it: what a void gives back
    """

    number: int
    seats: tuple[int, ...]
    sittings: dict[int, str]
    players: dict[int, str]
    carry_in: int
    first_epoch: int
    first: int
    button: int = 0
    engine: HandState | None = None
    cut_seat: int = 0
    turn: int = 0
    uncollected: Uncollected | None = None
    decided: bool = False
    settled: bool = False
    void: bool = False
    pat_by_clock: tuple[int, ...] = ()
    shown: dict[int, tuple[int, ...]] = {}
    repeated: bool = False
    owed: dict[str, tuple[bool, bool]] = {}


class Answered(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A request that was taken in: its id, a digest of its content, and the answer (empty while it is awaited)."""

    request_id: str
    digest: bytes
    answer: bytes


class TableState(msgspec.Struct):
    """A table. Only a fork is ever changed; what it holds is frozen, and containers are replaced or copied by `fork`.

    sequence  of the last event in this epoch
    turns     turns given so far; never reset within an epoch
    effects   what is still to be done, the first first
    answers   caller -> its last requests
    waiting   the waiting list, first come first
    debts     of players who left lately, the oldest first
    pause_after   why the table pauses after this hand; empty if it does not
    mode_number   of changes of the mode and of `pause_after` so far
    recent_hands  (time, pot) of the last hands
    chatted   player -> times of its last messages
    commitment  to the seed of the deck that players may give entropy for now; empty while they may for none
    """

    table_id: str
    display_name: str
    rulebook: Rulebook
    currency: str
    created_ms: int
    settings: TableSettings
    epoch: int
    template: str = ""
    overrides: dict[str, int | str | bool] = {}
    version: int = STATE_VERSION
    sequence: int = 0
    mode: Mode = "open"
    mode_reason: str = ""
    mode_number: int = 0
    seats: dict[int, Seat] = {}
    button: int = 0
    button_stays: bool = False
    last_hand: int = 0
    carry: int = 0
    hand: Hand | None = None
    turns: int = 0
    clock: TableClock | None = None
    effects: tuple[AnyEffect, ...] = ()
    effects_made: int = 0
    answers: dict[str, tuple[Answered, ...]] = {}
    waiting: tuple[Waiting, ...] = ()
    debts: tuple[Debt, ...] = ()
    pause_after: str = ""
    recent_hands: tuple[tuple[int, int], ...] = ()
    chatted: dict[str, tuple[int, ...]] = {}
    commitment: bytes = b""

    def fork(self) -> TableState:
        """A copy to change; the original stays as it is."""
        copy = msgspec.structs.replace(self)
        copy.seats = dict(self.seats)
        copy.answers = dict(self.answers)
        copy.chatted = dict(self.chatted)
        return copy

    @property
    def name(self) -> str:
        """The resource name, `tables/{table}`."""
        return f"tables/{self.table_id}"

    def seat_of(self, player: str) -> Seat | None:
        """The seat of this player (`players/{player}`), or None."""
        return next((seat for seat in self.seats.values() if seat.player == player), None)

    @property
    def playing(self) -> Hand | None:
        """The hand whose outcome or money is still open, or None."""
        return self.hand if self.hand is not None and not self.hand.settled else None

    @property
    def hand_is_waiting(self) -> bool:
        """Whether an effect of the hand is still to be done, so that nobody is to act."""
        return any(isinstance(effect, HAND_EFFECTS) for effect in self.effects)


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(TableState)


def dump_state(state: TableState) -> bytes:
    """The state as bytes, not sealed yet."""
    return _ENCODER.encode(state)


def load_state(packed: bytes) -> TableState:
    """The state that `dump_state` wrote. Raises `msgspec.DecodeError`."""
    return _DECODER.decode(packed)
