"""How anything is done from the console: with a reason, and written into the audit log before and after."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Final

import grpc

from services.console import metrics
from services.console.audit_log import OUTCOME_CHARACTERS_MAX, Line
from services.console.peers import refusal
from services.console.web import Console
from services.runtime.errors import Fault

REASON_CHARACTERS_MAX: Final = 200
FAULT_CHARACTERS_MAX: Final = 380


def reason_of(form: dict[str, str]) -> str:
    """The reason of an action, as every service that is told it takes it. Raises `Fault` INVALID_REQUEST.

    What does not show itself (a line break, a NUL, a mark that turns the direction of writing) would let the log and
    the second person read another reason than the one that was given.
    """
    reason = form.get("reason", "")
    if not 1 <= len(reason) <= REASON_CHARACTERS_MAX:
        raise Fault("INVALID_REQUEST", f"a reason has 1 to {REASON_CHARACTERS_MAX} characters", field="reason")
    if not reason.isprintable():
        said = "a reason is one line of characters that can be seen: no line breaks, control or direction marks"
        raise Fault("INVALID_REQUEST", said, field="reason")
    return reason


def action_of(form: dict[str, str], known: Iterable[str]) -> str:
    """The action that a form asks for. Raises `Fault` INVALID_REQUEST for none, or one that this form has not."""
    action = form.get("action", "")
    if action not in known:
        raise Fault("INVALID_REQUEST", "there is no such action", field="action")
    return action


def nothing_more(_: Fault) -> str:
    """What comes of most refusals."""
    return ""


async def carried_out(
    console: Console,
    line: Line,
    call: Callable[[], Awaitable[object]],
    what_now: Callable[[Fault], str] = nothing_more,
) -> None:
    """Writes down that it is asked, does it, and writes down how it ended. Raises `Fault` with the refusal.

    `what_now` says what comes of a refusal, for the log.

    A process that ends in between leaves a line `asked` without an outcome, which says just that.
    """
    await console.audit_log.add(_with_outcome(line, "asked"))
    try:
        await call()
    except grpc.aio.AioRpcError as error:
        fault = refusal(error)
        metrics.ACTIONS.labels(line.action, fault.reason).inc()
        told = " - ".join(part for part in (str(fault)[:FAULT_CHARACTERS_MAX], what_now(fault)) if part)
        await console.audit_log.add(_with_outcome(line, told[:OUTCOME_CHARACTERS_MAX]))
        raise fault from error
    metrics.ACTIONS.labels(line.action, "done").inc()
    await console.audit_log.add(_with_outcome(line, "done"))


def _with_outcome(line: Line, outcome: str) -> Line:
    return Line(line.person, line.second, line.action, line.target, line.reason, outcome)
