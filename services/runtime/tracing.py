"""Traces through calls, effects and tasks, in OpenTelemetry's terms; off unless the settings name a collector.

Spans are made here, in the gate's and channel's own wrappers, and not by instrumentation from outside: that one wraps
gRPC's asynchronous calls in interceptors, which cost more than the calls, and records exceptions with their messages,
which may quote anything. A span says the method, the status or the reason of a refusal, the table and the hand, and
nothing else: never a card, a token, an amount or a message.

The parent of a call is taken from its metadata only where a service calls: a player cannot make the house trace.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol

from services.runtime import telemetry
from services.runtime.errors import Fault
from services.runtime.settings import ServiceSettings, SettingsError
from services.runtime.subjects import Subject

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

PARENT: Final = "traceparent"
SCOPE: Final = "fivedraw"
SPANS_WAITING_MAX: Final = 4_096
EXPORT_SECONDS: Final = 5

_OFF: Final = contextlib.nullcontext()

Span = contextlib.AbstractContextManager[Any]


class _Tracing(Protocol):
    def span(self, name: str, kind: str, parent: str, attributes: Mapping[str, str | int]) -> Span: ...

    def parent(self) -> str: ...

    def begin_call(self, method: str) -> tuple[str, Callable[[str], None]]: ...


# One for the process, set once at its start.
_tracing: _Tracing | None = None
_task_spans: ContextVar[contextlib.ExitStack | None] = ContextVar("task_spans", default=None)


def configure(service: str, settings: ServiceSettings) -> None:
    """Begins to trace where the settings name a collector. Raises `SettingsError` where the packages are missing."""
    if not settings.trace_endpoint:
        return
    try:
        from services.runtime import tracing_sdk  # noqa: PLC0415 - an extra, needed by nobody who does not trace
    except ImportError as error:
        raise SettingsError([f"trace_endpoint: install fivedraw[tracing] ({error.name} is missing)"]) from None
    use(tracing_sdk.provider_for(service, settings))


def use(provider: TracerProvider | None) -> None:
    """Traces with this provider from now on; with none, no more."""
    global _tracing  # noqa: PLW0603 - one for the process
    if provider is None:
        _tracing = None
        return
    from services.runtime import tracing_sdk  # noqa: PLC0415 - see above

    telemetry.trace_lines_with(tracing_sdk.present_ids)
    _tracing = tracing_sdk.Spans(provider)


def is_on() -> bool:
    """Whether anything is traced."""
    return _tracing is not None


def serving(method: str, request: Any, metadata: Iterable[tuple[str, str | bytes]], *, from_service: bool) -> Span:
    """The span of one call that this process answers."""
    if _tracing is None:
        return _OFF
    parent = ""
    if from_service:
        parent = next((str(value) for key, value in metadata if key == PARENT), "")
    return _tracing.span(method.lstrip("/"), "server", parent, Subject.of(request).attributes())


def step(name: str, table: str = "", hand: int = 0, *, after: str = "") -> Span:
    """The span of a part of the work (an action on a stream, an effect): under the present one, or `after` another."""
    if _tracing is None:
        return _OFF
    return _tracing.span(name, "internal", after, Subject(table, hand).attributes())


def begin_call(method: str) -> tuple[str, Callable[[str], None]] | None:
    """Begins the span of a call to another service: what goes along as `traceparent`, and what ends it (a status)."""
    return None if _tracing is None else _tracing.begin_call(method)


def parent() -> str:
    """The present span as a `traceparent`, for what is carried on elsewhere; empty where there is none."""
    return "" if _tracing is None else _tracing.parent()


def follow_tasks() -> None:
    """Makes each task of this worker a span under that of whoever sent it."""
    if _tracing is None:
        return
    from celery.signals import task_postrun, task_prerun  # noqa: PLC0415 - only workers need it

    task_prerun.connect(_begin_task, weak=False)
    task_postrun.connect(_end_task, weak=False)


def _begin_task(task: Any = None, **_: Any) -> None:
    if _tracing is None or task is None:
        return
    sent = task.request.get(PARENT) or (task.request.get("headers") or {}).get(PARENT) or ""
    stack = contextlib.ExitStack()
    stack.enter_context(_tracing.span(f"task {task.name}", "consumer", str(sent), {}))
    _task_spans.set(stack)


def _end_task(**_: Any) -> None:
    stack = _task_spans.get()
    if stack is not None:
        _task_spans.set(None)
        stack.close()


def outcome_of(error: BaseException | None) -> str:
    """The reason that a span ends with; empty where all went well."""
    if error is None:
        return ""
    return error.reason if isinstance(error, Fault) else type(error).__name__


class Ended(contextlib.AbstractContextManager["Ended"]):
    """A span that says how it ended, and of an exception its reason or type, never its message."""

    def __init__(self, scope: Any, say: Callable[[Any, str], None]) -> None:
        self._scope = scope
        self._say = say
        self._span: Any = None

    def __enter__(self) -> Ended:
        self._span = self._scope.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._say(self._span, outcome_of(error))
        self._scope.__exit__(None, None, None)
