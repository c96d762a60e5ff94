"""What a call can fail with: one class for each kind of answer, all with the house's reason and facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import grpc
from google.rpc import error_details_pb2, status_pb2
from grpc import StatusCode

DOMAIN: Final = "fivedraw"

_DETAILS_KEY: Final = "grpc-status-details-bin"


class FivedrawError(Exception):
    """A call that did not succeed.

    `reason` is the house's stable word (docs/errors.md), empty where the failure did not come from the house; `facts`
    are its metadata; `code` is the gRPC status, `None` for a refusal that came over a stream.
    """

    def __init__(
        self, message: str, *, reason: str = "", facts: Mapping[str, str] | None = None, code: StatusCode | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.facts: dict[str, str] = dict(facts or {})
        self.code = code

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}" if self.reason else self.message


class NotAllowedError(FivedrawError):
    """The token is missing, over, or not enough for this call."""


class NotFoundError(FivedrawError):
    """What was named does not exist."""


class ConflictError(FivedrawError):
    """The id was used with other content, or the place is taken."""


class InvalidRequestError(FivedrawError):
    """The request itself is wrong: a field, an amount, a card."""


class RefusedError(FivedrawError):
    """The request is well made, and not possible as things stand."""


class StaleError(FivedrawError):
    """The request speaks of a turn that is over."""


class OverloadedError(FivedrawError):
    """Too much at once: too many streams, a queue that is full, or a stream read too slowly."""


class UnavailableError(FivedrawError):
    """No answer in time. For a call with an id the outcome is unknown: repeat it with the same id."""


class HouseError(FivedrawError):
    """A fault of the house; the message holds the number to report."""


class StreamViolationError(FivedrawError):
    """A stream broke its promise: a gap in its sequence, or a sequence that went back."""


_CLASS_BY_CODE: Final[dict[StatusCode, type[FivedrawError]]] = {
    StatusCode.UNAUTHENTICATED: NotAllowedError,
    StatusCode.PERMISSION_DENIED: NotAllowedError,
    StatusCode.NOT_FOUND: NotFoundError,
    StatusCode.ALREADY_EXISTS: ConflictError,
    StatusCode.INVALID_ARGUMENT: InvalidRequestError,
    StatusCode.OUT_OF_RANGE: InvalidRequestError,
    StatusCode.FAILED_PRECONDITION: RefusedError,
    StatusCode.ABORTED: StaleError,
    StatusCode.RESOURCE_EXHAUSTED: OverloadedError,
    StatusCode.UNAVAILABLE: UnavailableError,
    StatusCode.DEADLINE_EXCEEDED: UnavailableError,
}

# A stream's refusals carry a reason and no status; those that are not plain refusals are these.
_CLASS_BY_REASON: Final[dict[str, type[FivedrawError]]] = {
    "STALE_TURN": StaleError,
    "ACTION_CONFLICT": ConflictError,
    "INVALID_REQUEST": InvalidRequestError,
    "CARD_NOT_HELD": InvalidRequestError,
    "DUPLICATE_CARD": InvalidRequestError,
    "TOO_MANY_DISCARDS": InvalidRequestError,
    "BELOW_MINIMUM": InvalidRequestError,
    "ABOVE_MAXIMUM": InvalidRequestError,
    "STACK_EXCEEDED": InvalidRequestError,
    "TABLE_NOT_FOUND": NotFoundError,
    "PERMISSION_DENIED": NotAllowedError,
    "UNAUTHENTICATED": NotAllowedError,
    "QUEUE_FULL": OverloadedError,
    "TABLE_BUSY": UnavailableError,
    "SERVICE_UNAVAILABLE": UnavailableError,
    "DEADLINE_EXCEEDED": UnavailableError,
    "INTERNAL": HouseError,
}


def from_rpc(error: grpc.aio.AioRpcError) -> FivedrawError:
    """Makes the typed error of a failed call."""
    code = error.code()
    make = _CLASS_BY_CODE.get(code, HouseError)
    for key, value in error.trailing_metadata() or ():
        if key != _DETAILS_KEY or not isinstance(value, bytes):
            continue
        status = status_pb2.Status.FromString(value)
        for detail in status.details:
            info = error_details_pb2.ErrorInfo()
            if detail.Unpack(info) and info.domain == DOMAIN:
                return make(status.message, reason=info.reason, facts=dict(info.metadata), code=code)
    return make(error.details() or code.name, code=code)


def from_refusal(reason: str, message: str, facts: Mapping[str, str]) -> FivedrawError:
    """Makes the typed error of a refusal that came over a stream."""
    return _CLASS_BY_REASON.get(reason, RefusedError)(message, reason=reason, facts=facts)
