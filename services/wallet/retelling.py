"""The ledger's batches one by one, told into a `Story`: what each opens, closes, locks and makes due."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from services.wallet import changes, chart
from services.wallet.books import HandRow, Move, ReservationRow, SittingRow
from services.wallet.chart import HandOutcome, ReservationState, TransferCode
from services.wallet.closing_desk import proportional_shares
from services.wallet.group import OK
from services.wallet.story import OpenHand, Payer, Story, Table

# These take note of a newer epoch even where something else then refuses them.
_NOTE_EPOCHS: Final = frozenset(
    {"BuyIn", "TopUp", "CashOut", "ReserveBuyIn", "PostForced", "CollectBets", "AwardPot", "VoidHand", "RefundCarry"}
)

Line = tuple[Any, ...]
"""A row of `transfers`."""


def tell(story: Story, batch: tuple[Any, ...], asked: dict[str, Any], lines: Sequence[Line]) -> None:
    """Goes on by one batch (a row of `batches`, its decoded content, its lines), refused ones too.

    To be called before the lines are added to the story's balances. Raises KeyError, TypeError or ValueError for
    content that is not its operation's.
    """
    operation, table_id, outcome = batch[2], batch[3], batch[6]
    if operation in _NOTE_EPOCHS and outcome != "STALE_EPOCH":
        row = story.table(table_id).row
        row.epoch = max(row.epoch, asked["epoch"])
    if outcome == OK:
        step = _STEPS.get(operation)
        if step is not None:
            step(_Step(story, batch, asked, lines))
    elif operation == "CashOut" and outcome == "SITTING_NOT_FOUND" and asked["sitting"] not in story.sittings:
        story.over.marked_sittings.add(asked["sitting"])
    elif operation == "ReleaseReservation" and outcome == "RESERVATION_NOT_FOUND":
        story.over.marked_reservations.add(asked["reservation"])


class _Step:
    """One batch that was not refused."""

    def __init__(self, story: Story, batch: tuple[Any, ...], asked: dict[str, Any], lines: Sequence[Line]) -> None:
        self._story = story
        self._number: int = batch[0]
        self._key: str = batch[1]
        self._now_ms: int = batch[9]
        self._asked = asked
        self._lines = lines

    def create_player(self) -> None:
        asked, story = self._asked, self._story
        story.made["players"] += 1
        story.over.players[asked["player"]] = (asked["display_name"], self._now_ms)

    def change_player(self) -> None:
        asked, story = self._asked, self._story
        reason = asked["reason"]
        if "currency" in asked:
            maxima = asked["deposit_day_max_minor"], asked["buy_in_day_max_minor"]
            account = chart.cash_account(asked["player"], asked["currency"])
            story.limits.pop(account, None)
            if any(maxima):
                story.limits[account] = (asked["player"], asked["currency"], *maxima)
            reason = changes.limits_in_words(asked["currency"], *maxima, reason)
        else:
            story.states[asked["player"]] = asked["state"]
        story.made["player_changes"] += 1
        story.over.changes[int(self._key.rpartition(" ")[2])] = (
            asked["player"],
            asked["state"],
            reason,
            asked["changed_by"],
            self._now_ms,
        )

    def buy_in(self) -> None:
        asked = self._asked
        self._open_sitting(asked["table"], asked["sitting"], asked["player"], asked["seat"], asked["currency"])

    def top_up(self) -> None:
        sitting = self._sitting(self._asked["sitting"])
        if sitting is not None:
            self._require_unlocked(sitting)
            cash = chart.cash_account(sitting.player, sitting.currency)
            stack = chart.stack_account(sitting.sitting)
            self._require([Move(TransferCode.TOP_UP, cash, stack, self._asked["amount_minor"])])

    def cash_out(self) -> None:
        story = self._story
        sitting = story.sittings.get(self._asked["sitting"])
        if sitting is None:
            # It was closed before, and this is only told again.
            self._require([])
            return
        self._require_unlocked(sitting)
        stack = chart.stack_account(sitting.sitting)
        amount = story.balances.get(stack, 0)
        cash = chart.cash_account(sitting.player, sitting.currency)
        self._require([Move(TransferCode.CASH_OUT, stack, cash, amount)] if amount else [])
        sitting.open = False
        sitting.cashed_out = amount
        story.over.sittings.append(story.sittings.pop(sitting.sitting))

    def reserve_buy_in(self) -> None:
        asked = self._asked
        self._story.made["reservations"] += 1
        self._story.reservations[asked["reservation"]] = ReservationRow(
            reservation=asked["reservation"],
            table_id=asked["table"],
            epoch=asked["epoch"],
            sitting=asked["sitting"],
            player=asked["player"],
            seat=asked["seat"],
            currency=asked["currency"],
            amount=asked["amount_minor"],
            state=ReservationState.OPEN,
            opened_ms=self._now_ms,
            expires_ms=self._now_ms + asked["hold_ms"],
            closed_ms=0,
        )

    def commit_reservation(self) -> None:
        row = self._end_reservation(ReservationState.COMMITTED)
        if row is not None:
            held, stack = chart.reserved_account(row.reservation), chart.stack_account(row.sitting)
            self._require([Move(TransferCode.BUY_IN, held, stack, row.amount)])
            self._open_sitting(row.table_id, row.sitting, row.player, row.seat, row.currency)

    def release_reservation(self) -> None:
        self._give_back(ReservationState.RELEASED)

    def expire_reservation(self) -> None:
        self._give_back(ReservationState.EXPIRED)

    def post_forced(self) -> None:
        asked = self._asked
        table = self._story.table(asked["table"])
        dealt_in = {name: sitting for name in asked["dealt_in"] if (sitting := self._sitting(name)) is not None}
        number = asked["hand"]
        row = HandRow(
            asked["table"], number, asked["epoch"], HandOutcome.OPEN, 1, 0, self._now_ms, closed_ms=0, reason=""
        )
        table.hand = OpenHand(row, dealt_in, carried_in=asked["carry_in_minor"])
        for sitting in dealt_in.values():
            sitting.locked_hand = number
        table.row.currency = table.row.currency or asked["currency"]
        table.row.open_hand = table.row.last_hand = number
        table.marks = {mark for mark in table.marks if mark > number}
        self._pay(table.hand)

    def collect_bets(self) -> None:
        hand = self._story.table(self._asked["table"]).hand
        if hand is not None and hand.row.hand == self._asked["hand"]:
            hand.row.last_round = self._asked["round"]
            hand.row.steps += 1
            self._pay(hand)

    def award_pot(self) -> None:
        asked = self._asked
        table = self._story.table(asked["table"])
        hand = table.hand
        if hand is None or hand.row.hand != asked["hand"]:
            return
        self._pay(hand)
        if not asked["carry_out_minor"]:
            table.row.carry_since_hand = 0
            table.payers.clear()
        else:
            table.row.carry_since_hand = table.row.carry_since_hand or asked["hand"]
            for stack, paid in hand.paid.items():
                name = stack.removeprefix("stack/")
                if name in hand.dealt_in:
                    table.payers.setdefault(name, Payer(hand.dealt_in[name])).paid += paid
        self._close_hand(table, hand, HandOutcome.AWARDED, "")

    def void_hand(self) -> None:
        asked = self._asked
        table = self._story.table(asked["table"])
        number = asked["hand"]
        if table.hand is not None and table.hand.row.hand == number:
            self._undo(table, table.hand, asked["reason"])
            return
        self._require([])
        row = table.row
        if number <= row.last_hand or number in table.marks:
            # Void before, or passed over: which of them, and since when, is not remembered.
            self._story.over.marked_hands.add((row.table_id, number))
            return
        self._story.over.hands.append(
            HandRow(
                row.table_id,
                number,
                asked["epoch"],
                HandOutcome.VOID,
                1,
                0,
                self._now_ms,
                closed_ms=self._now_ms,
                reason=asked["reason"],
            )
        )
        if row.open_hand:
            table.marks.add(number)
        else:
            row.last_hand = number

    def fence_table(self) -> None:
        asked = self._asked
        table = self._story.table(asked["table"])
        table.row.epoch = max(table.row.epoch, asked["epoch"])
        table.row.fenced_epoch = asked["epoch"]
        table.row.fenced_hand = 0
        if table.hand is not None and table.hand.row.epoch < asked["epoch"]:
            table.row.fenced_hand = table.hand.row.hand
            self._undo(table, table.hand, asked["reason"] or f"fenced by epoch {asked['epoch']}")
        else:
            self._require([])

    def refund_carry(self) -> None:
        table = self._story.table(self._asked["table"])
        carry = chart.carry_account(table.row.table_id)
        amount = self._story.balances.get(carry, 0)
        if not amount:
            self._require([])
            return
        payers = sorted(
            (payer for payer in table.payers.values() if payer.paid > 0),
            key=lambda payer: (payer.sitting.seat, payer.sitting.opened_ms, payer.sitting.sitting),
        )
        shares = proportional_shares(amount, [payer.paid for payer in payers]) if payers else []
        self._require(
            [
                Move(
                    TransferCode.CARRY_REFUND,
                    carry,
                    chart.cash_account(payer.sitting.player, payer.sitting.currency),
                    share,
                )
                for payer, share in zip(payers, shares, strict=True)
                if share
            ]
        )
        table.row.carry_since_hand = 0
        table.payers.clear()

    def _open_sitting(self, table_id: str, name: str, player: str, seat: int, currency: str) -> None:
        story = self._story
        story.made["sittings"] += 1
        story.sittings[name] = SittingRow(name, table_id, player, seat, currency, True, 0, 0, self._now_ms)
        table = story.table(table_id)
        table.row.currency = table.row.currency or currency

    def _sitting(self, name: str) -> SittingRow | None:
        sitting = self._story.sittings.get(name)
        if sitting is None or sitting.table_id != self._asked["table"]:
            self._story.fault("NOT_DUE", f"batch {self._number} moves chips of {name}, which sits at no such table")
            return None
        return sitting

    def _require_unlocked(self, sitting: SittingRow) -> None:
        if sitting.locked_hand:
            self._story.fault(
                "NOT_DUE",
                f"batch {self._number} moves the stack of {sitting.sitting}, which hand {sitting.locked_hand} holds",
            )

    def _pay(self, hand: OpenHand) -> None:
        """Takes a step's lines into what was paid; whoever pays or wins must have been dealt in."""
        for _, _, code, debit, credit, _, amount, _, _ in self._lines:
            chart.note_paid(hand.paid, code, debit, credit, amount)
            for account in (debit, credit):
                kind, _, name = account.partition("/")
                if kind == "stack" and name not in hand.dealt_in:
                    self._story.fault(
                        "NOT_DUE",
                        f"batch {self._number} moves chips of {name}, which was not dealt into hand {hand.row.hand}",
                    )

    def _undo(self, table: Table, hand: OpenHand, reason: str) -> None:
        pot = chart.pot_account(table.row.table_id, hand.row.hand)
        due = [Move(TransferCode.BET, stack, pot, -paid) for stack, paid in hand.paid.items() if paid < 0]
        due += [Move(TransferCode.VOID, pot, self._refunded(stack, hand), p) for stack, p in hand.paid.items() if p > 0]
        if hand.carried_in:
            carry = chart.carry_account(table.row.table_id)
            due.append(Move(TransferCode.VOID, pot, carry, hand.carried_in))
        self._require(due)
        self._close_hand(table, hand, HandOutcome.VOID, reason)

    def _refunded(self, stack: str, hand: OpenHand) -> str:
        sitting = hand.dealt_in.get(stack.removeprefix("stack/"))
        if sitting is None or sitting.open:
            return stack
        return chart.cash_account(sitting.player, sitting.currency)

    def _close_hand(self, table: Table, hand: OpenHand, outcome: HandOutcome, reason: str) -> None:
        row = hand.row
        row.outcome = outcome
        row.steps += 1
        row.closed_ms = self._now_ms
        row.reason = reason
        self._story.over.hands.append(row)
        for sitting in hand.dealt_in.values():
            sitting.locked_hand = 0
        table.hand = None
        table.row.open_hand = 0

    def _end_reservation(self, state: ReservationState) -> ReservationRow | None:
        """The reservation, if it was open until now."""
        row = self._story.reservations.pop(self._asked["reservation"], None)
        if row is None:
            self._require([])
            return None
        row.state = state
        row.closed_ms = self._now_ms
        self._story.over.reservations.append(row)
        return row

    def _give_back(self, state: ReservationState) -> None:
        row = self._end_reservation(state)
        if row is not None:
            held, cash = chart.reserved_account(row.reservation), chart.cash_account(row.player, row.currency)
            self._require([Move(TransferCode.RELEASE, held, cash, row.amount)])

    def _require(self, due: Iterable[Move]) -> None:
        """The lines must be these, in any order."""
        expected = Counter((int(move.code), move.debit, move.credit, move.amount_minor) for move in due)
        found = Counter((code, debit, credit, amount) for _, _, code, debit, credit, _, amount, _, _ in self._lines)
        if found != expected:
            wrong = sorted((found - expected) or (expected - found))[0]
            self._story.fault(
                "NOT_DUE",
                f"batch {self._number} moves {wrong[3]} from {wrong[1]} to {wrong[2]}, which was not due"
                if found - expected
                else f"batch {self._number} does not move {wrong[3]} from {wrong[1]} to {wrong[2]}, which was due",
            )


_STEPS: Final[dict[str, Callable[[_Step], None]]] = {
    "CreatePlayer": _Step.create_player,
    "SetPlayerState": _Step.change_player,
    "SetPlayerLimits": _Step.change_player,
    "BuyIn": _Step.buy_in,
    "TopUp": _Step.top_up,
    "CashOut": _Step.cash_out,
    "ReserveBuyIn": _Step.reserve_buy_in,
    "CommitReservation": _Step.commit_reservation,
    "ReleaseReservation": _Step.release_reservation,
    "ExpireReservation": _Step.expire_reservation,
    "PostForced": _Step.post_forced,
    "CollectBets": _Step.collect_bets,
    "AwardPot": _Step.award_pot,
    "VoidHand": _Step.void_hand,
    "FenceTable": _Step.fence_table,
    "RefundCarry": _Step.refund_carry,
}
