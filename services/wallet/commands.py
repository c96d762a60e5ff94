"""What the ledger is asked and what it answers, as frozen values.

Tables, players and sittings are bare ids here (`t1`, `alice`), without the resource prefixes of the contract; amounts
are minor units of the table's or account's currency. Every command but `SetPlayerState` and `FenceTable` has a
`batch_id` chosen by its caller, which makes it idempotent within the caller's namespace.
"""

from __future__ import annotations

from msgspec import Struct

from services.wallet.chart import AccountKind, HandOutcome, PlayerState, ReservationState, TransferCode


class CreatePlayer(Struct, frozen=True, gc=False):
    """Makes a player's profile."""

    batch_id: str
    player: str
    display_name: str


class SetPlayerState(Struct, frozen=True, gc=False):
    """Freezes or unfreezes a player."""

    player: str
    state: PlayerState
    reason: str


class SetPlayerLimits(Struct, frozen=True, gc=False):
    """Limits what a player may deposit, and take to tables, in a day (UTC) in one currency; 0 is no limit."""

    player: str
    currency: str
    deposit_day_max_minor: int
    buy_in_day_max_minor: int
    reason: str


class Deposit(Struct, frozen=True, gc=False):
    """Cashier to player."""

    batch_id: str
    player: str
    currency: str
    amount_minor: int
    note: str = ""


class Withdraw(Struct, frozen=True, gc=False):
    """Player to cashier."""

    batch_id: str
    player: str
    currency: str
    amount_minor: int
    note: str = ""


class AdjustBalance(Struct, frozen=True, gc=False, omit_defaults=True):
    """Gives a player's cash (above 0) or takes from it (below 0), against the account of adjustments.

    `approved_by` is the second person (`person/bob`), booked with the batch; the first is in its key.
    """

    batch_id: str
    player: str
    currency: str
    amount_minor: int
    reason: str
    approved_by: str = ""


class BuyIn(Struct, frozen=True, gc=False):
    """Opens a sitting with a stack from the player's cash."""

    batch_id: str
    table: str
    epoch: int
    sitting: str
    player: str
    currency: str
    amount_minor: int
    seat: int


class TopUp(Struct, frozen=True, gc=False):
    """Adds cash to the stack of an open sitting."""

    batch_id: str
    table: str
    epoch: int
    sitting: str
    amount_minor: int


class CashOut(Struct, frozen=True, gc=False):
    """Closes a sitting; its stack goes to the player's cash."""

    batch_id: str
    table: str
    epoch: int
    sitting: str


class ReserveBuyIn(Struct, frozen=True, gc=False):
    """Holds a player's cash for a buy-in that somebody outside must confirm, for at most `hold_ms`."""

    batch_id: str
    table: str
    epoch: int
    reservation: str
    sitting: str
    player: str
    currency: str
    amount_minor: int
    seat: int
    hold_ms: int


class CommitReservation(Struct, frozen=True, gc=False):
    """Opens the sitting with what was held."""

    batch_id: str
    table: str
    reservation: str


class ReleaseReservation(Struct, frozen=True, gc=False):
    """Gives what was held back to the player's cash."""

    batch_id: str
    table: str
    reservation: str


class ExpireReservation(Struct, frozen=True, gc=False):
    """Gives back what was held too long; the ledger says this to itself."""

    batch_id: str
    table: str
    reservation: str


class SweepHouse(Struct, frozen=True, gc=False):
    """Gathers one currency's sub-accounts of rake and cashier into their heads; the ledger says this to itself."""

    batch_id: str
    currency: str


class SittingAmount(Struct, frozen=True, gc=False):
    """Chips of one sitting in a step of a hand; the code says what for."""

    sitting: str
    amount_minor: int
    code: TransferCode


class PostForced(Struct, frozen=True):
    """Opens a hand and locks the stacks dealt in; `carry_in_minor` must be what the table carries."""

    batch_id: str
    table: str
    epoch: int
    hand: int
    dealt_in: tuple[str, ...]
    postings: tuple[SittingAmount, ...]
    currency: str
    carry_in_minor: int = 0


class CollectBets(Struct, frozen=True):
    """Moves a round's bets into the pot, and unmatched forced bets back out of it."""

    batch_id: str
    table: str
    epoch: int
    hand: int
    round: int
    bets: tuple[SittingAmount, ...]
    returned: tuple[SittingAmount, ...] = ()


class AwardPot(Struct, frozen=True):
    """Pays the whole pot out and closes the hand."""

    batch_id: str
    table: str
    epoch: int
    hand: int
    wins: tuple[SittingAmount, ...]
    rake_minor: int = 0
    carry_out_minor: int = 0


class VoidHand(Struct, frozen=True, gc=False):
    """Undoes a hand and closes it."""

    batch_id: str
    table: str
    epoch: int
    hand: int
    reason: str


class RefundCarry(Struct, frozen=True, gc=False):
    """Gives a table's carry back to those who paid it."""

    batch_id: str
    table: str
    epoch: int


class FenceTable(Struct, frozen=True, gc=False):
    """Shuts all older epochs out, and voids a hand that one of them left open."""

    table: str
    epoch: int
    reason: str = ""


ReservationCommand = ReserveBuyIn | CommitReservation | ReleaseReservation | ExpireReservation
HandCommand = PostForced | CollectBets | AwardPot | VoidHand
TableCommand = BuyIn | TopUp | CashOut | HandCommand | RefundCarry | FenceTable | ReservationCommand
CashCommand = CreatePlayer | SetPlayerState | SetPlayerLimits | Deposit | Withdraw | AdjustBalance
Command = TableCommand | CashCommand | SweepHouse


class PlayerLimits(Struct, frozen=True, gc=False):
    """What a player may deposit and take to tables in a day, in one currency; 0 is no limit."""

    currency: str
    deposit_day_max_minor: int
    buy_in_day_max_minor: int


class Player(Struct, frozen=True, gc=False):
    """A profile as stored."""

    player: str
    display_name: str
    state: PlayerState
    created_ms: int
    limits: tuple[PlayerLimits, ...] = ()


class Balance(Struct, frozen=True, gc=False):
    """One amount in one currency."""

    currency: str
    amount_minor: int


class Stack(Struct, frozen=True, gc=False):
    """A stack after a buy-in or top-up."""

    stack_minor: int


class CashedOut(Struct, frozen=True, gc=False):
    """What a sitting took home."""

    amount_minor: int


class Reservation(Struct, frozen=True, gc=False):
    """Cash held for a buy-in; `closed_ms` is 0 while it is open."""

    reservation: str
    table: str
    epoch: int
    sitting: str
    player: str
    seat: int
    currency: str
    amount_minor: int
    state: ReservationState
    opened_ms: int
    expires_ms: int
    closed_ms: int


class Released(Struct, frozen=True, gc=False):
    """What a reservation gave back to the player's cash."""

    amount_minor: int


class Swept(Struct, frozen=True, gc=False):
    """What a sweep moved in one currency: the sum of its transfers of each kind."""

    rake_minor: int
    cashier_minor: int


class Pot(Struct, frozen=True, gc=False):
    """A pot after forced bets or a collected round."""

    pot_minor: int


class SittingStack(Struct, frozen=True, gc=False):
    """One sitting's stack."""

    sitting: str
    player: str
    stack_minor: int
    open: bool


class Awarded(Struct, frozen=True):
    """Stacks of the hand's sittings after the award."""

    stacks: tuple[SittingStack, ...]


class Voided(Struct, frozen=True):
    """Stacks of the hand's sittings and the table's carry after a void."""

    stacks: tuple[SittingStack, ...]
    carry_minor: int


class CarryRefunded(Struct, frozen=True, gc=False):
    """What a table's carry gave back in all."""

    amount_minor: int


class TableLedger(Struct, frozen=True):
    """What the ledger knows of a table; `last_hand_outcome` is `None` where no hand was ever seen."""

    epoch: int
    last_hand: int
    last_hand_outcome: HandOutcome | None
    last_hand_steps: int
    stacks: tuple[SittingStack, ...]
    carry_minor: int


class Fenced(Struct, frozen=True):
    """A table after a fence; `voided_hand` is the hand that this epoch's fence made void, or 0."""

    ledger: TableLedger
    voided_hand: int


CashAnswer = Player | Balance | Swept
TableAnswer = Stack | CashedOut | Pot | Awarded | Voided | CarryRefunded | Fenced | Reservation | Released
Answer = CashAnswer | TableAnswer


class Balances(Struct, frozen=True):
    """A player's chips by currency: cash, on tables, and held by reservations."""

    cash: tuple[Balance, ...]
    on_tables: tuple[Balance, ...]
    reserved: tuple[Balance, ...] = ()


class Entry(Struct, frozen=True, gc=False):
    """One line of a statement: the amount is negative for a debit of the account; `hand` is 0 where there is none."""

    entry_id: int
    batch_id: str
    code: TransferCode
    currency: str
    amount_minor: int
    balance_minor: int
    table: str
    hand: int
    committed_ms: int
    account: str


class EntryPage(Struct, frozen=True):
    """A page of a statement, newest first; `next_before` is the entry id to go on below, or 0 on the last page."""

    entries: tuple[Entry, ...]
    next_before: int


class KindTotal(Struct, frozen=True, gc=False):
    """Sum of balances of one kind of account in one currency."""

    kind: AccountKind
    currency: str
    amount_minor: int
    accounts: int


class LedgerSummary(Struct, frozen=True):
    """The ledger's totals; every amount of `imbalance` must be 0."""

    totals: tuple[KindTotal, ...]
    imbalance: tuple[Balance, ...]
    batches: int
    open_hands: int


class AuditReport(Struct, frozen=True):
    """What an audit found: at most 100 faults, the first first; `head` is the chain's head in hex."""

    faults: tuple[str, ...]
    entries_checked: int
    head: str

    @property
    def clean(self) -> bool:
        """Whether nothing was found."""
        return not self.faults
