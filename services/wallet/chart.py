"""The chart of accounts: kinds, codes, names, and which kind may pay which (DESIGN 4; docs/ledger.md)."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class AccountKind(IntEnum):
    """A kind of account; the numbers are those of the contract."""

    PLAYER = 1
    STACK = 2
    POT = 3
    CARRY = 4
    RAKE = 5
    CASHIER = 6
    RESERVED = 7


class TransferCode(IntEnum):
    """What a transfer moved chips for; the numbers are those of the contract."""

    DEPOSIT = 1
    WITHDRAWAL = 2
    BUY_IN = 3
    TOP_UP = 4
    CASH_OUT = 5
    ANTE = 6
    BLIND = 7
    BET = 8
    WIN = 9
    RAKE = 10
    CARRY_OUT = 11
    CARRY_IN = 12
    VOID = 13
    CARRY_REFUND = 14
    RETURN = 15
    ADJUSTMENT = 16
    SWEEP = 17
    RESERVE = 18
    RELEASE = 19


class PlayerState(IntEnum):
    """Whether a player may take new risk."""

    ACTIVE = 1
    FROZEN = 2


class ReservationState(IntEnum):
    """What became of a reservation."""

    OPEN = 1
    COMMITTED = 2
    RELEASED = 3
    EXPIRED = 4


class HandOutcome(IntEnum):
    """How a hand stands in the ledger."""

    OPEN = 1
    AWARDED = 2
    VOID = 3


_K = AccountKind
_C = TransferCode

# From which kind to which kind each code may move chips. The audit holds every transfer to it.
MOVES: Final[dict[TransferCode, frozenset[tuple[AccountKind, AccountKind]]]] = {
    _C.DEPOSIT: frozenset({(_K.CASHIER, _K.PLAYER)}),
    _C.WITHDRAWAL: frozenset({(_K.PLAYER, _K.CASHIER)}),
    _C.BUY_IN: frozenset({(_K.PLAYER, _K.STACK), (_K.RESERVED, _K.STACK)}),
    _C.TOP_UP: frozenset({(_K.PLAYER, _K.STACK)}),
    _C.CASH_OUT: frozenset({(_K.STACK, _K.PLAYER)}),
    _C.ANTE: frozenset({(_K.STACK, _K.POT)}),
    _C.BLIND: frozenset({(_K.STACK, _K.POT)}),
    _C.BET: frozenset({(_K.STACK, _K.POT)}),
    _C.WIN: frozenset({(_K.POT, _K.STACK)}),
    _C.RAKE: frozenset({(_K.POT, _K.RAKE)}),
    _C.CARRY_OUT: frozenset({(_K.POT, _K.CARRY)}),
    _C.CARRY_IN: frozenset({(_K.CARRY, _K.POT)}),
    _C.VOID: frozenset({(_K.POT, _K.STACK), (_K.POT, _K.PLAYER), (_K.POT, _K.CARRY)}),
    _C.CARRY_REFUND: frozenset({(_K.CARRY, _K.PLAYER)}),
    _C.RETURN: frozenset({(_K.POT, _K.STACK)}),
    _C.ADJUSTMENT: frozenset({(_K.CASHIER, _K.PLAYER), (_K.PLAYER, _K.CASHIER)}),
    _C.SWEEP: frozenset({(_K.RAKE, _K.RAKE), (_K.CASHIER, _K.CASHIER)}),
    _C.RESERVE: frozenset({(_K.PLAYER, _K.RESERVED)}),
    _C.RELEASE: frozenset({(_K.RESERVED, _K.PLAYER)}),
}

# What a sitting paid into a hand's pot, and what it got back of that: unmatched, or because the hand is void.
PAYING_IN: Final = frozenset({_C.ANTE, _C.BLIND, _C.BET})
PAYING_BACK: Final = frozenset({_C.RETURN, _C.VOID})


def note_paid(paid: dict[str, int], code: int, debit: str, credit: str, amount_minor: int) -> None:
    """Takes one transfer of a hand into `paid`: what each account put into the pot and did not get back of that."""
    if code in PAYING_IN:
        paid[debit] = paid.get(debit, 0) + amount_minor
    elif code in PAYING_BACK:
        paid[credit] = paid.get(credit, 0) - amount_minor


_OWNED: Final = frozenset({AccountKind.PLAYER, AccountKind.STACK})

# The codes whose debit, or credit, may be a player's cash or a stack: the sides that statements are made of, and that
# the database has indexes of. As SQL, since an index with a condition serves only queries that say it literally.
OWNED_DEBITS: Final = tuple(int(code) for code, moves in MOVES.items() if any(debit in _OWNED for debit, _ in moves))
OWNED_CREDITS: Final = tuple(int(code) for code, moves in MOVES.items() if any(credit in _OWNED for _, credit in moves))

BALANCE_MAX_MINOR: Final = 2**63 - 1

# Hot accounts are split: each writer posts to a sub-account of its own, so that writers do not wait for each other.
SHARDS: Final = 16

# The cashier's account of what people corrected by hand; it is never swept, so that its balance tells their sum.
ADJUSTMENTS: Final = "adjustments"

# The head of a hot account takes in what its sub-accounts hold.
HEAD: Final = "head"

# What the cashier's head, its adjustments and all its sub-accounts may have issued together fits one balance, so no
# credit can ever overflow.
ISSUED_BY_ADJUSTMENTS_MAX_MINOR: Final = 2**60
ISSUED_BY_HEAD_MAX_MINOR: Final = 2**62 - 1 - ISSUED_BY_ADJUSTMENTS_MAX_MINOR
ISSUED_PER_SHARD_MAX_MINOR: Final = 2**62 // SHARDS

SEAT_MAX: Final = 9

_OF_TABLES: Final = ("stack/", "pot/", "carry/")


def cash_account(player: str, currency: str) -> str:
    """The name of a player's cash in one currency."""
    return f"player/{player}/{currency}"


def stack_account(sitting: str) -> str:
    """The name of a sitting's stack."""
    return f"stack/{sitting}"


def reserved_account(reservation: str) -> str:
    """The name of what one open reservation holds."""
    return f"reserved/{reservation}"


def pot_account(table: str, hand: int) -> str:
    """The name of a hand's pot."""
    return f"pot/{table}/{hand}"


def carry_account(table: str) -> str:
    """The name of a table's carry."""
    return f"carry/{table}"


def rake_account(currency: str, shard: int | str) -> str:
    """The name of one sub-account of the house's rake, or of its `HEAD`."""
    return f"rake/{currency}/{shard}"


def cashier_account(currency: str, shard: int | str) -> str:
    """The name of one sub-account of the outside world, or of its `HEAD` or `ADJUSTMENTS`."""
    return f"cashier/{currency}/{shard}"


def is_tables(account: str) -> bool:
    """Whether an account belongs to one table, whose lock is its lock: a stack, a pot, a carry."""
    return account.startswith(_OF_TABLES)


def hot_accounts(currency: str) -> list[str]:
    """Heads and sub-accounts of rake and cashier in one currency."""
    return [name(currency, shard) for name in (rake_account, cashier_account) for shard in (HEAD, *range(SHARDS))]


def issued_max_minor(cashier: str) -> int:
    """What one account of the cashier may have issued."""
    most = {HEAD: ISSUED_BY_HEAD_MAX_MINOR, ADJUSTMENTS: ISSUED_BY_ADJUSTMENTS_MAX_MINOR}
    return most.get(cashier.rpartition("/")[2], ISSUED_PER_SHARD_MAX_MINOR)
