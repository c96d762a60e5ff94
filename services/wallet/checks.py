"""The form of a command, judged before anything is read: fields, ranges, repetitions.

Every check raises `Fault` INVALID_REQUEST with the field's name. Nothing of this is stored, so the same id may be used
again with a corrected command.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from services.runtime.errors import Fault
from services.wallet import commands as c
from services.wallet import names
from services.wallet.chart import BALANCE_MAX_MINOR, SEAT_MAX, TransferCode

BATCH_ID_CHARS_MAX: Final = 128
REASON_CHARS_MAX: Final = 500
DEALT_IN_MAX: Final = SEAT_MAX
POSTINGS_MAX: Final = 3 * SEAT_MAX
NUMBER_MAX: Final = 2**53
# A second is the least that a sweep can tell; a week, the longest that somebody's cash waits for a yes.
HOLD_MS_MIN: Final = 1_000
HOLD_MS_MAX: Final = 7 * 24 * 3_600_000

# As the subject of a token, which is a player's id.
_PLAYER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,62}")
_TABLE: Final = re.compile(r"[a-z0-9_-]{1,64}")
_SITTING: Final = re.compile(r"[A-Za-z0-9_.:/-]{1,128}")
# Shorter than a batch's id, since the batch that expires a reservation is named for it.
_RESERVATION: Final = re.compile(r"[A-Za-z0-9_.:/-]{1,120}")
_CURRENCY: Final = re.compile(r"[A-Z]{3,8}")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")

_FORCED_CODES: Final = frozenset({TransferCode.ANTE, TransferCode.BLIND})
_BET_CODES: Final = frozenset({TransferCode.BET})
_RETURN_CODES: Final = frozenset({TransferCode.RETURN})
_WIN_CODES: Final = frozenset({TransferCode.WIN, TransferCode.RETURN})


def check(command: c.Command) -> None:
    """Raises `Fault` INVALID_REQUEST, with metadata `field`, where the command's form is wrong."""
    _CHECKS[type(command)](command)


def check_player(player: str) -> None:
    """Refuses what cannot be a player's id."""
    _match("player", player, _PLAYER, "1 to 63 of A-Z a-z 0-9 . _ ~ -, the first a letter or digit")


def check_table(table: str) -> None:
    """Refuses what cannot be a table's id."""
    _match("table", table, _TABLE, "1 to 64 of a-z 0-9 _ -")


def check_hand(hand: int) -> None:
    """Refuses what cannot be a hand's number."""
    _number("hand", hand, least=1)


def check_reservation(reservation: str, field: str = "reservation") -> None:
    """Refuses what cannot be a reservation's id."""
    _match(field, reservation, _RESERVATION, "1 to 120 of A-Z a-z 0-9 _ . : / -")


def invalid(field: str, message: str) -> Fault:
    """The refusal of a malformed field."""
    return Fault("INVALID_REQUEST", f"{field}: {message}", field=field)


def _create_player(command: c.CreatePlayer) -> None:
    _batch_id(command.batch_id)
    check_player(command.player)
    wrong = names.fault_of(command.display_name)
    if wrong:
        raise invalid("display_name", wrong)


def _set_player_state(command: c.SetPlayerState) -> None:
    check_player(command.player)
    _text("reason", command.reason, required=True)


def _set_player_limits(command: c.SetPlayerLimits) -> None:
    check_player(command.player)
    _currency(command.currency)
    _number("deposit_day_max_minor", command.deposit_day_max_minor, least=0, most=BALANCE_MAX_MINOR)
    _number("buy_in_day_max_minor", command.buy_in_day_max_minor, least=0, most=BALANCE_MAX_MINOR)
    _text("reason", command.reason, required=True)


def _cash(command: c.Deposit | c.Withdraw) -> None:
    _batch_id(command.batch_id)
    check_player(command.player)
    _currency(command.currency)
    _amount("amount_minor", command.amount_minor)
    _text("note", command.note, required=False)


def _adjust_balance(command: c.AdjustBalance) -> None:
    _batch_id(command.batch_id)
    check_player(command.player)
    _currency(command.currency)
    if not command.amount_minor:
        raise invalid("amount_minor", "above 0 to give, below 0 to take")
    _number("amount_minor", command.amount_minor, least=-BALANCE_MAX_MINOR, most=BALANCE_MAX_MINOR)
    _text("reason", command.reason, required=True)


def _buy_in(command: c.BuyIn | c.ReserveBuyIn) -> None:
    _step(command)
    _match("sitting", command.sitting, _SITTING, "1 to 128 of A-Z a-z 0-9 _ . : / -")
    check_player(command.player)
    _currency(command.currency)
    _amount("amount_minor", command.amount_minor)
    _number("seat", command.seat, least=1, most=SEAT_MAX)


def _reserve_buy_in(command: c.ReserveBuyIn) -> None:
    _buy_in(command)
    check_reservation(command.reservation)
    _number("hold", command.hold_ms, least=HOLD_MS_MIN, most=HOLD_MS_MAX)


def _end_reservation(command: c.CommitReservation | c.ReleaseReservation | c.ExpireReservation) -> None:
    _batch_id(command.batch_id)
    check_table(command.table)
    check_reservation(command.reservation)


def _sweep_house(command: c.SweepHouse) -> None:
    _batch_id(command.batch_id)
    _currency(command.currency)


def _top_up(command: c.TopUp) -> None:
    _step(command)
    _match("sitting", command.sitting, _SITTING, "1 to 128 of A-Z a-z 0-9 _ . : / -")
    _amount("amount_minor", command.amount_minor)


def _cash_out(command: c.CashOut) -> None:
    _step(command)
    _match("sitting", command.sitting, _SITTING, "1 to 128 of A-Z a-z 0-9 _ . : / -")


def _post_forced(command: c.PostForced) -> None:
    _step(command)
    check_hand(command.hand)
    if not 1 <= len(command.dealt_in) <= DEALT_IN_MAX:
        raise invalid("dealt_in", f"1 to {DEALT_IN_MAX} sittings")
    if len(set(command.dealt_in)) != len(command.dealt_in):
        raise invalid("dealt_in", "names a sitting twice")
    for sitting in command.dealt_in:
        _match("dealt_in", sitting, _SITTING, "1 to 128 of A-Z a-z 0-9 _ . : / -")
    _amounts("postings", command.postings, _FORCED_CODES)
    _currency(command.currency)
    _number("carry_in_minor", command.carry_in_minor, least=0, most=BALANCE_MAX_MINOR)


def _collect_bets(command: c.CollectBets) -> None:
    _step(command)
    check_hand(command.hand)
    _number("round", command.round, least=1, most=2)
    _amounts("bets", command.bets, _BET_CODES)
    _amounts("returned", command.returned, _RETURN_CODES)


def _award_pot(command: c.AwardPot) -> None:
    _step(command)
    check_hand(command.hand)
    _amounts("wins", command.wins, _WIN_CODES)
    _number("rake_minor", command.rake_minor, least=0, most=BALANCE_MAX_MINOR)
    _number("carry_out_minor", command.carry_out_minor, least=0, most=BALANCE_MAX_MINOR)


def _void_hand(command: c.VoidHand) -> None:
    _step(command)
    check_hand(command.hand)
    _text("reason", command.reason, required=True)


def _refund_carry(command: c.RefundCarry) -> None:
    _step(command)


def _fence_table(command: c.FenceTable) -> None:
    check_table(command.table)
    _number("epoch", command.epoch, least=1)
    _text("reason", command.reason, required=False)


_CHECKS: Final[dict[type, Callable[..., None]]] = {
    c.CreatePlayer: _create_player,
    c.SetPlayerState: _set_player_state,
    c.SetPlayerLimits: _set_player_limits,
    c.Deposit: _cash,
    c.Withdraw: _cash,
    c.AdjustBalance: _adjust_balance,
    c.BuyIn: _buy_in,
    c.ReserveBuyIn: _reserve_buy_in,
    c.CommitReservation: _end_reservation,
    c.ReleaseReservation: _end_reservation,
    c.ExpireReservation: _end_reservation,
    c.SweepHouse: _sweep_house,
    c.TopUp: _top_up,
    c.CashOut: _cash_out,
    c.PostForced: _post_forced,
    c.CollectBets: _collect_bets,
    c.AwardPot: _award_pot,
    c.VoidHand: _void_hand,
    c.RefundCarry: _refund_carry,
    c.FenceTable: _fence_table,
}


def _step(command: c.BuyIn | c.ReserveBuyIn | c.TopUp | c.CashOut | c.HandCommand | c.RefundCarry) -> None:
    _batch_id(command.batch_id)
    check_table(command.table)
    _number("epoch", command.epoch, least=1)


def _batch_id(batch_id: str) -> None:
    if not 1 <= len(batch_id) <= BATCH_ID_CHARS_MAX:
        raise invalid("batch_id", f"1 to {BATCH_ID_CHARS_MAX} characters")
    if _CONTROL.search(batch_id):
        raise invalid("batch_id", "has a control character")


def _text(field: str, text: str, *, required: bool) -> None:
    if len(text) > REASON_CHARS_MAX or (required and not text.strip()):
        raise invalid(field, f"{'1' if required else '0'} to {REASON_CHARS_MAX} characters")
    if _CONTROL.search(text):
        raise invalid(field, "has a control character")


def _match(field: str, text: str, pattern: re.Pattern[str], form: str) -> None:
    if not pattern.fullmatch(text):
        raise invalid(field, form)


def _currency(currency: str) -> None:
    _match("currency", currency, _CURRENCY, "3 to 8 capital letters")


def _number(field: str, number: int, *, least: int, most: int = NUMBER_MAX) -> None:
    if not least <= number <= most:
        raise invalid(field, f"at least {least} and at most {most}")


def _amount(field: str, amount_minor: int) -> None:
    _number(field, amount_minor, least=1, most=BALANCE_MAX_MINOR)


def _amounts(field: str, amounts: tuple[c.SittingAmount, ...], codes: frozenset[TransferCode]) -> None:
    if len(amounts) > POSTINGS_MAX:
        raise invalid(field, f"at most {POSTINGS_MAX} lines")
    for line in amounts:
        _match(f"{field}.sitting", line.sitting, _SITTING, "1 to 128 of A-Z a-z 0-9 _ . : / -")
        _amount(f"{field}.amount_minor", line.amount_minor)
        if line.code not in codes:
            raise invalid(f"{field}.code", f"one of {', '.join(sorted(code.name for code in codes))}")
