"""What a service says about itself: structured logs on stderr, metrics in one registry per process.

Names of metrics are `fivedraw_<service or subject>_<what>_<unit>`, counters end in `_total`; labels have few values
and never a player, a hand or an amount. No log line holds a card, a token or a key: a processor strikes them out by
the name of their field and by their look.
"""

from __future__ import annotations

import logging
import re
import sys
import traceback
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TextIO, cast

import structlog
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram

from services.runtime import subjects

REGISTRY_OF_PROCESS: Final[CollectorRegistry] = REGISTRY

LATENCY_BUCKETS_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

STRUCK_OUT: Final = "[struck out]"

# A field whose name has one of these words holds what no log may hold.
_SECRET_WORDS: Final = frozenset(
    {
        "card",
        "cards",
        "hole",
        "stub",
        "order",
        "discard",
        "discards",
        "seed",
        "seeds",
        "salt",
        "salts",
        "token",
        "jwt",
        "key",
        "keys",
        "password",
        "secret",
        "authorization",
        "credential",
        "credentials",
        "private",
        "sealed",
        "entropy",
    }
)
# These have such a word in their name and are fine.
_HARMLESS_NAMES: Final = frozenset({"key_id", "token_count", "card_count", "discard_count"})

_JWT: Final = re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*")
_PASSWORD_IN_URL: Final = re.compile(r"(\w+://[^/\s:@]*:)[^/\s@]+@")
# Two or more cards in a row, however they are joined; one alone ("Th", "As") is an English word too often.
_CARDS: Final = re.compile(r"(?<![\w-])(?:[2-9TJQKA][cdhs])(?:[\s,;'\"\[\]()]*[2-9TJQKA][cdhs])+(?![\w-])")

_MAX_DEPTH: Final = 6
_PLACES_MAX: Final = 8


class _Stderr:
    """The process's standard error as it is at each write: a supervisor or a test may put another one in its place."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


def configure_logging(service: str, *, level: str = "info", form: Literal["json", "console"] = "json") -> None:
    """Sets up structlog, and the standard library's logging through it, to write to stderr."""
    stderr = _Stderr()
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        _with_subject,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        _without_messages,
        redact,
    ]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer() if form == "json" else structlog.dev.ConsoleRenderer(colors=False)
    )
    threshold = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.WriteLoggerFactory(file=cast(TextIO, stderr)),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(service=service)
    stream = logging.StreamHandler(stderr)
    stream.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    logging.basicConfig(handlers=[stream], level=max(threshold, logging.INFO), force=True)


def logger(subject: str) -> structlog.typing.FilteringBoundLogger:
    """A logger whose lines carry `subject` (the module's business: `table.sweeper`, `wallet.sealer`)."""
    bound: structlog.typing.FilteringBoundLogger = structlog.get_logger(subject=subject)
    return bound


def _with_subject(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Adds the table and hand that the work is about, and its trace, where they are known and the line has none."""
    for name, value in {**subjects.present().attributes(), **_present_trace()}.items():
        event.setdefault(name, value)
    return event


def trace_lines_with(present: Callable[[], Mapping[str, str]]) -> None:
    """From now on each line carries what this tells of the present trace."""
    global _present_trace  # noqa: PLW0603 - one for the process, as logging is
    _present_trace = present


def _no_trace() -> Mapping[str, str]:
    return {}


_present_trace: Callable[[], Mapping[str, str]] = _no_trace


def _without_messages(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Replaces `exc_info` by the exception's type and place: its message may quote a card, a row or a token."""
    given = event.pop("exc_info", None)
    if given is True:
        given = sys.exc_info()
    error = given[1] if isinstance(given, tuple) else given
    if isinstance(error, BaseException):
        event.update(where(error))
    return event


def redact(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A structlog processor that strikes out what no log may hold."""
    for name in list(event):
        event[name] = STRUCK_OUT if _names_a_secret(name) else _redacted(event[name], _MAX_DEPTH)
    return event


def redact_text(text: str) -> str:
    """The text without tokens, passwords in URLs, or runs of cards."""
    text = _JWT.sub(STRUCK_OUT, text)
    text = _PASSWORD_IN_URL.sub(rf"\1{STRUCK_OUT}@", text)
    return _CARDS.sub(STRUCK_OUT, text)


def where(error: BaseException) -> dict[str, Any]:
    """The type of an exception and the last places it came through; not its message, which may quote anything."""
    places = [
        f"{Path(frame.filename).name}:{frame.lineno} {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
    ]
    return {"error": type(error).__name__, "at": places[-_PLACES_MAX:]}


def counter(name: str, documentation: str, labels: Sequence[str] = ()) -> Counter:
    """A counter of the process's registry; `name` ends in `_total`."""
    return Counter(name, documentation, labels, registry=REGISTRY_OF_PROCESS)


def gauge(name: str, documentation: str, labels: Sequence[str] = ()) -> Gauge:
    """A gauge of the process's registry."""
    return Gauge(name, documentation, labels, registry=REGISTRY_OF_PROCESS)


def histogram(
    name: str,
    documentation: str,
    labels: Sequence[str] = (),
    buckets: Sequence[float] = LATENCY_BUCKETS_SECONDS,
) -> Histogram:
    """A histogram of the process's registry; the default buckets are for seconds of latency."""
    return Histogram(name, documentation, labels, buckets=buckets, registry=REGISTRY_OF_PROCESS)


def _names_a_secret(name: str) -> bool:
    lowered = name.lower()
    return lowered not in _HARMLESS_NAMES and not _SECRET_WORDS.isdisjoint(lowered.split("_"))


def _redacted(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return f"[{len(value)} bytes]"
    if isinstance(value, bool | int | float) or value is None:
        return value
    if depth == 0:
        return STRUCK_OUT
    if isinstance(value, Mapping):
        return {
            key: STRUCK_OUT if _names_a_secret(str(key)) else _redacted(item, depth - 1) for key, item in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        if value and all(isinstance(item, str) and _CARDS.fullmatch(f"{item} {item}") for item in value):
            return STRUCK_OUT
        return [_redacted(item, depth - 1) for item in value]
    return redact_text(str(value))
