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


def differs(operation: str, content: str, lines: Sequence[tuple[Any, ...]]) -> bool:
    """Whether the transfers (rows of `transfers`) are not those that the batch's content asks for.

    Operations that read the ledger's own entries (cash-outs, voids, fences, refunds) name no amounts; their lines are
    held to the running balances and to the empty pot instead.
    """
    expected_of = _EXPECTED.get(operation)
    if expected_of is None:
        return False
    try:
        expected = expected_of(msgspec.json.decode(content))
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError):
        return True
    found: Moved = Counter()
    for _, _, code, debit, credit, _, amount, _, _ in lines:
        found[code, _unsharded(debit), _unsharded(credit), amount] += 1
    return found != expected


def _unsharded(account: str) -> str:
    """Which sub-account of the rake or the cashier took it is the writer's business."""
    kind, _, rest = account.partition("/")
    return f"{kind}/{rest.partition('/')[0]}" if kind in {"rake", "cashier"} else account


def _create_player(_: dict[str, Any]) -> Moved:
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


def _lines(asked: Sequence[dict[str, Any]], pot: str, *, into: bool) -> Moved:
    moved: Moved = Counter()
    for line in asked:
        stack = chart.stack_account(line["sitting"])
        accounts = (stack, pot) if into else (pot, stack)
        moved[line["code"], *accounts, line["amount_minor"]] += 1
    return moved


_EXPECTED: Final[dict[str, Callable[[dict[str, Any]], Moved]]] = {
    "CreatePlayer": _create_player,
    "Deposit": _deposit,
    "Withdraw": _withdraw,
    "AdjustBalance": _adjust_balance,
    "BuyIn": _buy_in,
    "ReserveBuyIn": _reserve_buy_in,
    "PostForced": _post_forced,
    "CollectBets": _collect_bets,
}
