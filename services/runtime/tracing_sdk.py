"""Tracing with OpenTelemetry's packages, which are an extra: `tracing` imports this module only where it is on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from services.runtime.settings import ServiceSettings, is_loopback
from services.runtime.tracing import EXPORT_SECONDS, PARENT, SCOPE, SPANS_WAITING_MAX, Ended

_PROPAGATOR: Final = TraceContextTextMapPropagator()
_KINDS: Final = {
    "server": trace.SpanKind.SERVER,
    "consumer": trace.SpanKind.CONSUMER,
    "internal": trace.SpanKind.INTERNAL,
}


def provider_for(service: str, settings: ServiceSettings) -> TracerProvider:
    """A provider that sends to the collector that the settings name; what it cannot send in time it drops."""
    resource = Resource({"service.name": service, "service.namespace": "fivedraw"})
    provider = TracerProvider(sampler=ParentBased(TraceIdRatioBased(settings.trace_ratio)), resource=resource)
    exporter = OTLPSpanExporter(
        endpoint=settings.trace_endpoint, insecure=is_loopback(settings.trace_endpoint), timeout=EXPORT_SECONDS
    )
    provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=SPANS_WAITING_MAX))
    return provider


class Spans:
    """Makes spans with a provider."""

    def __init__(self, provider: trace.TracerProvider) -> None:
        self._tracer = provider.get_tracer(SCOPE)

    def span(self, name: str, kind: str, parent: str, attributes: Mapping[str, str | int]) -> Ended:
        """A span that is the present one while it is open; under `parent`, where that is a traceparent."""
        context = _PROPAGATOR.extract({PARENT: parent}) if parent else None
        scope = self._tracer.start_as_current_span(
            name,
            context=context,
            kind=_KINDS[kind],
            attributes={f"fivedraw.{key}": value for key, value in attributes.items()},
            record_exception=False,
            set_status_on_exception=False,
        )
        return Ended(scope, _say)

    def parent(self) -> str:
        """The present span as a traceparent."""
        carrier: dict[str, str] = {}
        _PROPAGATOR.inject(carrier)
        return carrier.get(PARENT, "")

    def begin_call(self, method: str) -> tuple[str, Callable[[str], None]]:
        """A client's span, and what ends it with a status (empty: all went well)."""
        span = self._tracer.start_span(method.lstrip("/"), kind=trace.SpanKind.CLIENT)
        carrier: dict[str, str] = {}
        _PROPAGATOR.inject(carrier, trace.set_span_in_context(span))

        def end(outcome: str) -> None:
            _say(span, outcome)
            span.end()

        return carrier.get(PARENT, ""), end


def present_ids() -> dict[str, str]:
    """The ids of the present trace and span, for a log line; nothing outside of one."""
    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return {}
    return {"trace": trace.format_trace_id(context.trace_id), "span": trace.format_span_id(context.span_id)}


def _say(span: trace.Span, outcome: str) -> None:
    if outcome:
        span.set_attribute("fivedraw.reason", outcome)
        span.set_status(trace.StatusCode.ERROR)
