"""Why a command is refused: a reason from one list, the facts, and who may be told (RULES 11, scenario reasons)."""

from __future__ import annotations

from typing import Final, Literal, get_args

Reason = Literal[
    "NOT_YOUR_TURN",
    "STALE_TURN",
    "WRONG_STAGE",
    "CANNOT_CHECK",
    "CANNOT_FOLD",
    "CANNOT_BET",
    "NOTHING_TO_CALL",
    "NOTHING_TO_RAISE",
    "BELOW_MINIMUM",
    "ABOVE_MAXIMUM",
    "STACK_EXCEEDED",
    "RAISE_CAPPED",
    "BETTING_NOT_REOPENED",
    "OPENERS_REQUIRED",
    "MAY_NOT_RAISE",
    "TOO_MANY_DISCARDS",
    "FOUR_CARD_DRAW_TAKEN",
    "CARD_NOT_HELD",
    "DUPLICATE_CARD",
    "ALREADY_DREW",
]
REASONS: Final[tuple[Reason, ...]] = get_args(Reason)

PRIVATE_REASONS: Final[frozenset[Reason]] = frozenset({"OPENERS_REQUIRED", "CARD_NOT_HELD", "DUPLICATE_CARD"})
"""Told to the seat that tried and to nobody else: they say something about its cards."""

_MESSAGES: Final[dict[Reason, str]] = {
    "NOT_YOUR_TURN": "It is not this seat's turn.",
    "STALE_TURN": "That turn is over; look at the table again.",
    "WRONG_STAGE": "This cannot be done in the stage '{stage}'.",
    "CANNOT_CHECK": "There is no check here: {instead}.",
    "CANNOT_FOLD": "Checking is free, so nobody may fold: check or bet.",
    "CANNOT_BET": "There is a bet of {level} already: call or raise it.",
    "NOTHING_TO_CALL": "There is nothing to call.",
    "NOTHING_TO_RAISE": "There is nothing that another seat could call beyond {level}.",
    "BELOW_MINIMUM": "{tried} is too little: the least is {least}, the most {most}.",
    "ABOVE_MAXIMUM": "{tried} is too much: the most is {most}, the least {least}.",
    "STACK_EXCEEDED": "{tried} is more than this seat has: its chips reach {reach}.",
    "RAISE_CAPPED": "All {cap} bets of this round are made: call or fold.",
    "BETTING_NOT_REOPENED": "No full raise was made since this seat acted: call or fold.",
    "OPENERS_REQUIRED": "To open takes a pair of {rank} or better: check.",
    "MAY_NOT_RAISE": "Who missed the draw clock may not bet or raise in this round.",
    "TOO_MANY_DISCARDS": "{tried} cards are too many: this seat may discard {most}.",
    "FOUR_CARD_DRAW_TAKEN": "Another seat has this hand's four-card draw: discard three at most.",
    "CARD_NOT_HELD": "{cards} is not in this seat's hand.",
    "DUPLICATE_CARD": "{cards} was named more than once.",
    "ALREADY_DREW": "This seat has drawn already.",
}


class Refusal(Exception):
    """A command that the rules do not allow; nothing has changed.

    `reason` is one of `REASONS`; `facts` hold what was tried and what is allowed (amounts in minor units, levels of
    this round); `private` says that only the seat that tried may be told.
    """

    def __init__(self, reason: Reason, **facts: int | str) -> None:
        super().__init__(reason)
        self.reason: Reason = reason
        self.facts = facts

    @property
    def private(self) -> bool:
        """True if the reason may only be told to the seat that tried."""
        return self.reason in PRIVATE_REASONS

    def message(self) -> str:
        """One sentence for the player, with the facts in it."""
        return _MESSAGES[self.reason].format_map(self.facts)


class CommandInvalid(ValueError):
    """A command that no correct caller sends (unknown seat, cards that are dealt already); the text says what."""


class StateBroken(RuntimeError):
    """An event or state that contradicts itself: the hand must stop and be looked at."""
