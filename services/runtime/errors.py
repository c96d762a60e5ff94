"""Every reason for which the house refuses a call, in one place, and the typed refusal that carries one.

A refusal travels as a `google.rpc.Status` with one `google.rpc.ErrorInfo` (domain `fivedraw`): its reason is stable
and made for programs, its metadata holds the facts, and its message says to a person what to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import grpc
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc import StatusCode

DOMAIN: Final = "fivedraw"

# A refusal travels in the headers, which are bounded: what it quotes of a request must not keep it from arriving.
MESSAGE_CHARACTERS_MAX: Final = 1_000
FACT_CHARACTERS_MAX: Final = 200
FACTS_MAX: Final = 32

_DETAILS_KEY: Final = "grpc-status-details-bin"
_CODE_BY_NUMBER: Final = {code.value[0]: code for code in StatusCode}


@dataclass(frozen=True, slots=True)
class Reason:
    """How one reason is answered: its gRPC status, and one line of what the caller can do about it."""

    status: StatusCode
    advice: str


def _reasons() -> dict[str, Reason]:
    by_status: dict[StatusCode, dict[str, str]] = {
        StatusCode.INVALID_ARGUMENT: {
            "INVALID_REQUEST": "correct the named field",
            "CARD_NOT_HELD": "discard only cards that you hold",
            "DUPLICATE_CARD": "name each card once",
            "TOO_MANY_DISCARDS": "discard no more cards than the table allows",
            "RULEBOOK_INVALID": "correct the named option of the rulebook",
        },
        StatusCode.UNAUTHENTICATED: {
            "UNAUTHENTICATED": "call again with a valid bearer token",
        },
        StatusCode.PERMISSION_DENIED: {
            "PERMISSION_DENIED": "call as someone who may use this method",
            "SECOND_PERSON_REQUIRED": "send the token of a second person who may make this call beside your own",
            "ROLE_MAY_NOT_SIT": "operators and auditors take no seat; play with a player's own account",
        },
        StatusCode.NOT_FOUND: {
            "PLAYER_NOT_FOUND": "check the player's name",
            "SITTING_NOT_FOUND": "check the sitting's id; it may be closed",
            "HAND_NOT_FOUND": "check the table and the hand's number",
            "TABLE_NOT_FOUND": "check the table's name",
            "RESERVATION_NOT_FOUND": "check the table and the reservation's id",
            "REPLICA_NOT_FOUND": "list the processes again: this one has ended",
            "SEAT_NOT_FOUND": "choose a seat that the table has",
            "TEMPLATE_NOT_FOUND": "choose one of the listed templates",
            "RULEBOOK_NOT_FOUND": "choose one of the listed rulebooks",
        },
        StatusCode.ALREADY_EXISTS: {
            "BATCH_CONFLICT": "this id was used with other content; take a new id for a new batch",
            "STEP_CONFLICT": "this id was used with other content; take a new id for a new step",
            "ACTION_CONFLICT": "this id was used with other content; take a new id for a new action",
            "PLAYER_EXISTS": "use the profile that is there",
            "SITTING_EXISTS": "take a new id for a new sitting",
            "RESERVATION_EXISTS": "take a new id for a new reservation",
            "DISPLAY_NAME_TAKEN": "choose another display name",
        },
        StatusCode.OUT_OF_RANGE: {
            "BALANCE_OVERFLOW": "move a smaller amount",
            "BUY_IN_OUT_OF_RANGE": "buy in for an amount within the table's limits",
            "BELOW_MINIMUM": "bet at least the minimum",
            "ABOVE_MAXIMUM": "bet at most the maximum",
            "STACK_EXCEEDED": "bet no more than your stack",
        },
        StatusCode.ABORTED: {
            "STALE_TURN": "read the table again and act on its present turn",
        },
        StatusCode.FAILED_PRECONDITION: {
            "SEAT_TAKEN": "choose a free seat",
            "ALREADY_SEATED": "use the seat that you have at this table",
            "REENTRY_BELOW_LEFT_STACK": "come back with at least the stack that you left with",
            "FORMAT_CANNOT_EXPRESS": "ask for another format of this hand",
            "STALE_EPOCH": "load the table again at its newer epoch",
            "OTHER_HAND_OPEN": "close the open hand first",
            "HAND_CLOSED": "the hand is over; its outcome is in the metadata",
            "HAND_NOT_OPEN": "open the hand first",
            "HAND_NOT_CLOSED": "ask again when the hand is over",
            "LIMIT_EXCEEDED": "choose an amount within what is left of the day's limit, or wait for the next day (UTC)",
            "INSUFFICIENT_FUNDS": "deposit, or choose a smaller amount",
            "PLAYER_FROZEN": "ask the house to lift the freeze; cash-outs still work",
            "RESERVATION_CLOSED": "the reservation has ended; its outcome is in the metadata",
            "SITTING_CLOSED": "sit down again under a new sitting",
            "SITTING_NOT_DEALT_IN": "move only chips of the sittings dealt into the hand",
            "STEP_OUT_OF_ORDER": "the step, or a later one, is in; go on from the metadata's step or round",
            "CURRENCY_MISMATCH": "use the currency that the metadata names",
            "STACK_LOCKED": "wait for the end of the hand",
            "POT_MISMATCH": "pay out exactly what the pot holds",
            "CARRY_MISMATCH": "take in exactly what the table carries",
            "RETURN_TOO_LARGE": "return to a sitting at most what it put into this hand's pot",
            "LEDGER_CLOSED": "no new hand is opened until a whole audit finds the ledger clean; all else goes on",
            "NOT_SHUFFLED": "cut the deck before the first card is dealt",
            "ALREADY_SHUFFLED": "the deck is frozen; go on to the deal",
            "NOT_DEALT": "deal the hands before the draw",
            "ALREADY_DEALT": "the cards are out; repeat a deal only with its own step id",
            "ALREADY_DREW": "this seat has drawn in this round",
            "SEED_NOT_DUE": "ask again after the delay that the metadata states",
            "NOT_YOUR_TURN": "wait for your turn",
            "WRONG_STAGE": "choose among the actions that are legal now",
            "CANNOT_CHECK": "call, raise or fold: there is a bet to you",
            "CANNOT_FOLD": "check: there is no bet to you",
            "CANNOT_BET": "call, raise or fold: there is a bet already",
            "NOTHING_TO_CALL": "check or bet: there is no bet to you",
            "NOTHING_TO_RAISE": "bet: there is nothing to raise",
            "RAISE_CAPPED": "call or fold: the last allowed raise is in",
            "BETTING_NOT_REOPENED": "call or fold: the short all-in did not reopen the betting",
            "OPENERS_REQUIRED": "check: your hand may not open here",
            "MAY_NOT_RAISE": "call or fold: you may not raise here",
            "FOUR_CARD_DRAW_TAKEN": "discard fewer cards",
            "TABLE_CLOSED": "choose another table",
            "TABLE_PAUSED": "wait until the house resumes the table",
            "NOT_SEATED": "sit down at the table first",
            "SEATS_FREE": "take one of the free seats",
            "NOT_WAITING": "join the waiting list first",
            "CHAT_OFF": "this table has no chat",
            "COMMITMENT_NOT_OPEN": "give a seed between the commitment to a deck and its shuffle, for that commitment",
            "HAND_WAITING": "the house is at work on this hand; act when it goes on",
        },
        StatusCode.RESOURCE_EXHAUSTED: {
            "WAITING_LIST_FULL": "choose another table",
            "CHAT_TOO_FAST": "wait some seconds before you write again",
            "QUEUE_FULL": "slow down and call again shortly",
            "TOO_MANY_STREAMS": "close a stream before opening another",
            "SLOW_CONSUMER": "read faster; resume after the sequence in the metadata",
        },
        StatusCode.DEADLINE_EXCEEDED: {
            "DEADLINE_EXCEEDED": "the outcome is unknown; repeat the call with the same id",
        },
        StatusCode.UNAVAILABLE: {
            "SERVICE_UNAVAILABLE": "call again shortly with the same id",
            "TABLE_BUSY": "call again shortly with the same id",
            "DECK_UNHEALTHY": "no hand is dealt until the generator passes its tests again",
        },
        StatusCode.INTERNAL: {
            "INTERNAL": "report the incident's number to the house",
        },
    }
    # A call without a deadline is the caller's mistake, unlike one whose time ran out.
    by_status[StatusCode.INVALID_ARGUMENT]["DEADLINE_REQUIRED"] = "set a deadline on the call"
    return {
        reason: Reason(status, advice) for status, reasons in by_status.items() for reason, advice in reasons.items()
    }


REASONS: Final[dict[str, Reason]] = _reasons()


class Fault(Exception):
    """A refusal: a reason listed in `REASONS`, a message with the facts, and those facts again as metadata.

    Raises `KeyError` for a reason that is not listed, which is a mistake in the program and not an answer to anybody.
    """

    def __init__(self, reason: str, message: str, /, **metadata: str) -> None:
        REASONS[reason]
        super().__init__(reason, message, metadata)
        self.reason = reason
        self.message = message
        self.metadata = metadata

    @property
    def status(self) -> StatusCode:
        """The gRPC status that this reason is answered with."""
        return REASONS[self.reason].status

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}"

    def __reduce__(self) -> tuple[object, ...]:
        # Metadata are keyword-only, which the default protocol for exceptions cannot express.
        return _rebuild, (self.reason, self.message, self.metadata)

    @classmethod
    def from_rpc(cls, error: grpc.aio.AioRpcError) -> Fault | None:
        """Reads the refusal out of a failed call; `None` where the failure is not one of the house's reasons."""
        for key, value in error.trailing_metadata() or ():
            if key == _DETAILS_KEY and isinstance(value, bytes):
                return from_status(status_pb2.Status.FromString(value))
        return None


def _rebuild(reason: str, message: str, metadata: dict[str, str]) -> Fault:
    return Fault(reason, message, **metadata)


def to_status(fault: Fault) -> status_pb2.Status:
    """Makes the wire form of a refusal: status code, `message: advice`, and one ErrorInfo. Long parts are cut."""
    facts = {name[:FACT_CHARACTERS_MAX]: fact[:FACT_CHARACTERS_MAX] for name, fact in fault.metadata.items()}
    metadata = dict(list(facts.items())[:FACTS_MAX])
    info = error_details_pb2.ErrorInfo(reason=fault.reason, domain=DOMAIN, metadata=metadata)
    packed = any_pb2.Any()
    packed.Pack(info)
    return status_pb2.Status(code=fault.status.value[0], message=with_advice(fault), details=[packed])


def with_advice(fault: Fault) -> str:
    """What the caller reads: what was wrong, then what would be right."""
    return f"{fault.message[:MESSAGE_CHARACTERS_MAX].removesuffix('.')}: {REASONS[fault.reason].advice}"


def from_status(status: status_pb2.Status) -> Fault | None:
    """Reads a refusal back from its wire form; `None` where it has no reason that this build knows."""
    for detail in status.details:
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info) and info.domain == DOMAIN and info.reason in REASONS:
            message = status.message.removesuffix(f": {REASONS[info.reason].advice}")
            return Fault(info.reason, message, **dict(info.metadata))
    return None


def trailing_metadata(status: status_pb2.Status) -> tuple[tuple[str, bytes], ...]:
    """The trailing metadata in which gRPC carries a rich status."""
    return ((_DETAILS_KEY, status.SerializeToString()),)


def status_code(status: status_pb2.Status) -> StatusCode:
    """The gRPC status code of a rich status."""
    return _CODE_BY_NUMBER[status.code]
