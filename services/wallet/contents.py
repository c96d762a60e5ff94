"""What a stored batch asked for, against what its transfers did: the audit's answer to a line that was swapped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from services.wallet import chart
from services.wallet.chart import TransferCode

Moved = Counter[tuple[int, str, str, int]]
"""How often (code, debit, credit, amount) occurs; `*` stands for an account that the content does not name."""


def differs(operation: str, asked: dict[str, Any], lines: Sequence[tuple[Any, ...]]) -> bool:
    """Whether the transfers (rows of `transfers`) are not those that the batch's content asks for.

    Where the content names no amounts, since the ledger reads them in its own entries (cash-outs, voids, fences,
    refunds, what ends a reservation), the whole audit holds the lines to what the batches before make due (`story`).
    """
    expected_of = _EXPECTED.get(operation)
    if expected_of is None:
        return operation == "SweepHouse" and not _swept(asked, lines)
    try:
        expected = expected_of(asked)
    except (KeyError, TypeError, AttributeError):
        return True
    found: Moved = Counter()
    for _, _, code, debit, credit, currency, amount, _, _ in lines:
        found[code, _debit(code, debit), _credit(code, credit, currency), amount] += 1
    return found != expected


def decoded(content: str) -> dict[str, Any]:
    """A batch's content by its fields' names; without any where it is no content at all."""
    try:
        asked = msgspec.json.decode(content)
    except msgspec.DecodeError:
        return {}
    return asked if isinstance(asked, dict) else {}


def _debit(code: int, debit: str) -> str:
    """Whose cash a top-up comes from is the sitting's to say."""
    return "*" if code == TransferCode.TOP_UP else _unsharded(debit)


def _credit(code: int, credit: str, currency: str) -> str:
    """The currency of the rake is the table's to say; it is that of the line."""
    rake = code == TransferCode.RAKE and credit.startswith(f"rake/{currency}/")
    return "rake/*" if rake else _unsharded(credit)


def _unsharded(account: str) -> str:
    """Which sub-account of the rake or the cashier took it is the writer's business."""
    kind, _, rest = account.partition("/")
    return f"{kind}/{rest.partition('/')[0]}" if kind in {"rake", "cashier"} else account


def _swept(asked: dict[str, Any], lines: Sequence[tuple[Any, ...]]) -> bool:
    """Whether a sweep moved between accounts of its own currency only."""
    ours = {f"{kind}/{asked.get('currency')}" for kind in ("rake", "cashier")}
    return all(
        line[2] == TransferCode.SWEEP and _unsharded(line[3]) == _unsharded(line[4]) and _unsharded(line[3]) in ours
        for line in lines
    )


def _nothing(_: dict[str, Any]) -> Moved:
    return Counter()


def _deposit(asked: dict[str, Any]) -> Moved:
    currency = asked["currency"]
    cash = chart.cash_account(asked["player"], currency)
    return Counter([(int(TransferCode.DEPOSIT), f"cashier/{currency}", cash, asked["amount_minor"])])


def _withdraw(asked: dict[str, Any]) -> Moved:
    currency = asked["currency"]
    cash = chart.cash_account(asked["player"], currency)
    return Counter([(int(TransferCode.WITHDRAWAL), cash, f"cashier/{currency}", asked["amount_minor"])])


def _adjust_balance(asked: dict[str, Any]) -> Moved:
    currency, amount = asked["currency"], asked["amount_minor"]
    house, cash = f"cashier/{currency}", chart.cash_account(asked["player"], currency)
    accounts = (house, cash) if amount > 0 else (cash, house)
    return Counter([(int(TransferCode.ADJUSTMENT), *accounts, abs(amount))])


def _buy_in(asked: dict[str, Any]) -> Moved:
    cash = chart.cash_account(asked["player"], asked["currency"])
    stack = chart.stack_account(asked["sitting"])
    return Counter([(int(TransferCode.BUY_IN), cash, stack, asked["amount_minor"])])


def _top_up(asked: dict[str, Any]) -> Moved:
    return Counter([(int(TransferCode.TOP_UP), "*", chart.stack_account(asked["sitting"]), asked["amount_minor"])])


def _reserve_buy_in(asked: dict[str, Any]) -> Moved:
    cash = chart.cash_account(asked["player"], asked["currency"])
    held = chart.reserved_account(asked["reservation"])
    return Counter([(int(TransferCode.RESERVE), cash, held, asked["amount_minor"])])


def _post_forced(asked: dict[str, Any]) -> Moved:
    pot = chart.pot_account(asked["table"], asked["hand"])
    moved = _lines(asked["postings"], pot, into=True)
    if asked["carry_in_minor"]:
        carry = chart.carry_account(asked["table"])
        moved[int(TransferCode.CARRY_IN), carry, pot, asked["carry_in_minor"]] += 1
    return moved


def _collect_bets(asked: dict[str, Any]) -> Moved:
    pot = chart.pot_account(asked["table"], asked["hand"])
    return _lines(asked["bets"], pot, into=True) + _lines(asked["returned"], pot, into=False)


def _award_pot(asked: dict[str, Any]) -> Moved:
    pot = chart.pot_account(asked["table"], asked["hand"])
    moved = _lines(asked["wins"], pot, into=False)
    if asked["rake_minor"]:
        moved[int(TransferCode.RAKE), pot, "rake/*", asked["rake_minor"]] += 1
    if asked["carry_out_minor"]:
        moved[int(TransferCode.CARRY_OUT), pot, chart.carry_account(asked["table"]), asked["carry_out_minor"]] += 1
    return moved


def _lines(asked: Sequence[dict[str, Any]], pot: str, *, into: bool) -> Moved:
    moved: Moved = Counter()
    for line in asked:
        stack = chart.stack_account(line["sitting"])
        accounts = (stack, pot) if into else (pot, stack)
        moved[line["code"], *accounts, line["amount_minor"]] += 1
    return moved


_EXPECTED: Final[dict[str, Callable[[dict[str, Any]], Moved]]] = {
    "CreatePlayer": _nothing,
    "SetPlayerState": _nothing,
    "SetPlayerLimits": _nothing,
    "Deposit": _deposit,
    "Withdraw": _withdraw,
    "AdjustBalance": _adjust_balance,
    "BuyIn": _buy_in,
    "TopUp": _top_up,
    "ReserveBuyIn": _reserve_buy_in,
    "PostForced": _post_forced,
    "CollectBets": _collect_bets,
    "AwardPot": _award_pot,
}
