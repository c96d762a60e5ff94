"""How anything is done from the console: with a reason, and written into the audit log before and after."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import grpc

from services.console import metrics
from services.console.audit_log import OUTCOME_CHARACTERS_MAX, Line
from services.console.peers import refusal
from services.console.web import Console
from services.runtime.errors import Fault

REASON_CHARACTERS_MAX: Final = 200


def reason_of(form: dict[str, str]) -> str:
    """The reason of an action. Raises `Fault` INVALID_REQUEST."""
    reason = form.get("reason", "")
    if not 1 <= len(reason) <= REASON_CHARACTERS_MAX:
        raise Fault("INVALID_REQUEST", f"a reason has 1 to {REASON_CHARACTERS_MAX} characters", field="reason")
    return reason


async def carried_out(console: Console, line: Line, call: Callable[[], Awaitable[object]]) -> None:
    """Writes down that it is asked, does it, and writes down how it ended. Raises `Fault` with the refusal.

    A process that ends in between leaves a line `asked` without an outcome, which says just that.
    """
    await console.audit_log.add(_with_outcome(line, "asked"))
    try:
        await call()
    except grpc.aio.AioRpcError as error:
        fault = refusal(error)
        metrics.ACTIONS.labels(line.action, fault.reason).inc()
        await console.audit_log.add(_with_outcome(line, str(fault)[:OUTCOME_CHARACTERS_MAX]))
        raise fault from error
    metrics.ACTIONS.labels(line.action, "done").inc()
    await console.audit_log.add(_with_outcome(line, "done"))


def _with_outcome(line: Line, outcome: str) -> Line:
    return Line(line.person, line.second, line.action, line.target, line.reason, outcome)
