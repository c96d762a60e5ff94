"""The gate that every call of every service passes: who calls, whether they may, how long, how many, and how it ended.

One interceptor does it all in one place and in one order, since each layer of interceptors costs a call about as much
as the work of a small method does.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError, Message
from grpc import StatusCode
from grpc.aio import ServicerContext

from services.runtime import access, subjects, telemetry, tracing
from services.runtime.auth import Authenticator, Identity, acting_as
from services.runtime.clock import Clock
from services.runtime.errors import Fault, to_status, trailing_metadata
from services.runtime.settings import ServiceSettings

_CALLS = telemetry.counter("fivedraw_rpc_total", "Calls answered, by method and status.", ("method", "code"))
_SECONDS = telemetry.histogram("fivedraw_rpc_seconds", "Seconds from a call's start to its end.", ("method",))
_REFUSALS = telemetry.counter(
    "fivedraw_rpc_refusals_total", "Calls refused, by method and reason.", ("method", "reason")
)
_STREAMS = telemetry.gauge("fivedraw_rpc_open_streams", "Streams open now.", ("method",))
_UNEXPECTED = telemetry.counter(
    "fivedraw_rpc_unexpected_total", "Calls that failed for a mistake of the house.", ("method",)
)

# A handler of any kind: request or iterator of requests, then the context.
_Behaviour = Callable[[Any, ServicerContext[Any, Any]], Any]


# Stands for a request that is no message of its method: gRPC itself would answer UNKNOWN, without a reason.
_UNREADABLE: Final = object()


@dataclass(slots=True, eq=False)
class _OpenStream:
    """One open stream: the timer that ends it, and the refusal it then ends with."""

    timer: asyncio.Timeout
    ending: Fault | None = field(default=None)


class Gate(grpc.aio.ServerInterceptor):
    """Wraps each handler once, when its method is first called; the wrapped handler does the rest."""

    def __init__(self, settings: ServiceSettings, clock: Clock) -> None:
        self._clock = clock
        self._authenticator = Authenticator(settings, clock)
        self._unary_seconds = settings.unary_timeout_ms / 1000
        self._streams_max = settings.streams_per_caller_max
        self._two_people = settings.two_people
        self._wrapped: dict[str, tuple[grpc.RpcMethodHandler[Any, Any], grpc.RpcMethodHandler[Any, Any]]] = {}
        self._streams_by_caller: dict[str, int] = {}
        self._open_streams: set[_OpenStream] = set()
        self._is_draining = False
        self._log = telemetry.logger("runtime.gate")

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        """The gRPC entry point. An unknown method stays unknown: gRPC answers UNIMPLEMENTED."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        method = str(handler_call_details.method)
        known = self._wrapped.get(method)
        if known is None or known[0] is not handler:
            known = self._wrapped[method] = handler, self._wrap(method, handler)
        return known[1]

    def end_streams(self) -> None:
        """Ends every open stream, and each that comes later, with SERVICE_UNAVAILABLE: the process is to stop."""
        self._is_draining = True
        for stream in self._open_streams:
            stream.ending = _stopping()
            stream.timer.reschedule(asyncio.get_running_loop().time())

    def _wrap(self, method: str, handler: grpc.RpcMethodHandler[Any, Any]) -> grpc.RpcMethodHandler[Any, Any]:
        codec = {
            "request_deserializer": _reading(handler.request_deserializer),
            "response_serializer": handler.response_serializer,
        }
        if handler.response_streaming:
            streaming = handler.stream_stream if handler.request_streaming else handler.unary_stream
            stream = self._stream(method, _sending(method, streaming))
            if handler.request_streaming:
                return grpc.stream_stream_rpc_method_handler(stream, **codec)
            return grpc.unary_stream_rpc_method_handler(stream, **codec)
        if handler.request_streaming:
            return grpc.stream_unary_rpc_method_handler(
                self._stream(method, _coroutine(method, handler.stream_unary)), **codec
            )
        return grpc.unary_unary_rpc_method_handler(
            self._unary(method, _coroutine(method, handler.unary_unary)), **codec
        )

    def _unary(self, method: str, behaviour: _Behaviour) -> _Behaviour:
        async def answer(request: Message, context: ServicerContext[Any, Any]) -> Any:
            identity = await self._admit(method, context)
            left = context.time_remaining()
            if left is not None and left <= self._unary_seconds:
                # gRPC itself ends the call at its deadline.
                return await _as(identity, behaviour, request, context, method)
            try:
                async with asyncio.timeout(self._unary_seconds) as timer:
                    return await _as(identity, behaviour, request, context, method)
            except TimeoutError:
                if timer.expired():
                    raise Fault("DEADLINE_EXCEEDED", f"no answer within {self._unary_seconds:g} s") from None
                raise

        return self._measured(method, answer)

    def _stream(self, method: str, behaviour: _Behaviour) -> _Behaviour:
        async def answer(request: Any, context: ServicerContext[Any, Any]) -> Any:
            identity = await self._admit(method, context)
            if self._is_draining:
                raise _stopping()
            with self._place_for_stream(method, identity, context):
                return await self._until_end(identity, behaviour, request, context)

        return self._measured(method, answer)

    async def _until_end(
        self, identity: Identity | None, behaviour: _Behaviour, request: Any, context: ServicerContext[Any, Any]
    ) -> Any:
        seconds = identity.seconds_left(self._clock) if identity is not None else None
        try:
            async with asyncio.timeout(seconds) as timer:
                stream = _OpenStream(timer)
                self._open_streams.add(stream)
                try:
                    return await _as(identity, behaviour, request, context)
                finally:
                    self._open_streams.discard(stream)
        except TimeoutError:
            if timer.expired():
                raise (
                    stream.ending or Fault("UNAUTHENTICATED", "the token has ended, and the stream with it")
                ) from None
            raise

    @contextlib.contextmanager
    def _place_for_stream(
        self, method: str, identity: Identity | None, context: ServicerContext[Any, Any]
    ) -> Iterator[None]:
        caller = f"{identity.kind}:{identity.id}" if identity is not None else _host_of(context.peer())
        is_bounded = identity is None or not identity.is_service
        open_now = self._streams_by_caller.get(caller, 0)
        if is_bounded and open_now >= self._streams_max:
            raise Fault("TOO_MANY_STREAMS", f"{open_now} streams are open", limit=str(self._streams_max))
        self._streams_by_caller[caller] = open_now + 1
        _STREAMS.labels(method).inc()
        try:
            yield
        finally:
            _STREAMS.labels(method).dec()
            left = self._streams_by_caller[caller] - 1
            if left:
                self._streams_by_caller[caller] = left
            else:
                del self._streams_by_caller[caller]

    async def _admit(self, method: str, context: ServicerContext[Any, Any]) -> Identity | None:
        identity = await self._authenticator.identify(context.invocation_metadata() or (), context.auth_context())
        access.check(method, identity)
        if self._two_people and method in access.TWO_PEOPLE:
            second = await self._authenticator.identify_second(context.invocation_metadata() or ())
            access.check_second(method, identity, second)
            if identity is not None and second is not None:
                return replace(identity, approved_by=second.id)
        return identity

    def _measured(self, method: str, answer: _Behaviour) -> _Behaviour:
        """Counts and times each call, and turns what it raises into the answer that the caller may see."""
        # Looked up once: finding a metric's child costs more than counting.
        succeeded, seconds = _CALLS.labels(method, StatusCode.OK.name), _SECONDS.labels(method)
        monotonic = self._clock.monotonic

        async def measured(request: Any, context: ServicerContext[Any, Any]) -> Any:
            started = monotonic()
            code = StatusCode.OK
            try:
                return await answer(request, context)
            except Fault as fault:
                code = fault.status
                _REFUSALS.labels(method, fault.reason).inc()
                await _abort(context, fault)
            except grpc.aio.AbortError:
                code = _code_of(context)
                raise
            except asyncio.CancelledError:
                code = StatusCode.CANCELLED
                raise
            except Exception as error:  # noqa: BLE001 - counted, and answered as INTERNAL
                code = StatusCode.INTERNAL
                await self._answer_unexpected(method, context, error)
            finally:
                (succeeded if code is StatusCode.OK else _CALLS.labels(method, code.name)).inc()
                seconds.observe(monotonic() - started)

        return measured

    async def _answer_unexpected(self, method: str, context: ServicerContext[Any, Any], error: Exception) -> None:
        _UNEXPECTED.labels(method).inc()
        incident = uuid.uuid4().hex[:12]
        # Messages of foreign exceptions may quote what they choked on, so only the type and the place are logged.
        self._log.error("unexpected exception", method=method, incident=incident, **telemetry.where(error))
        await _abort(context, Fault("INTERNAL", f"something went wrong (incident {incident})", incident=incident))


def interceptors(settings: ServiceSettings, clock: Clock) -> list[grpc.aio.ServerInterceptor]:
    """The interceptors of every server of the house."""
    return [Gate(settings, clock)]


async def _as(
    identity: Identity | None,
    behaviour: _Behaviour,
    request: Any,
    context: ServicerContext[Any, Any],
    method: str = "",
) -> Any:
    """Answers for a caller; traced where a method is given (streams last too long to be a span)."""
    if request is _UNREADABLE:
        raise _unreadable()
    if hasattr(request, "__aiter__"):
        request = _readable(request)
    subjects.at_work_on(request)
    if identity is None:
        return await behaviour(request, context)
    with acting_as(identity):
        if not method or not tracing.is_on():
            return await behaviour(request, context)
        metadata = context.invocation_metadata() or ()
        with tracing.serving(method, request, metadata, from_service=identity.is_service):
            return await behaviour(request, context)


def _reading(deserialize: Callable[[bytes], Any] | None) -> Callable[[bytes], Any] | None:
    if deserialize is None:
        return None

    def read(packed: bytes) -> Any:
        try:
            return deserialize(packed)
        except DecodeError:
            return _UNREADABLE

    return read


async def _readable(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for request in requests:
        if request is _UNREADABLE:
            raise _unreadable()
        yield request


def _unreadable() -> Fault:
    return Fault("INVALID_REQUEST", "the request is no message of this method", field="")


def _coroutine(method: str, behaviour: Callable[..., Any] | None) -> _Behaviour:
    if behaviour is None or not inspect.iscoroutinefunction(behaviour):
        raise TypeError(f"{method}: handlers are coroutine functions")
    return behaviour


def _sending(method: str, behaviour: Callable[..., Any] | None) -> _Behaviour:
    """Both ways of answering with a stream, yielding and `context.write`, as one coroutine that writes."""
    if behaviour is None or not inspect.isasyncgenfunction(behaviour):
        return _coroutine(method, behaviour)

    async def send(request: Any, context: ServicerContext[Any, Any]) -> None:
        async with contextlib.aclosing(behaviour(request, context)) as responses:
            async for response in responses:
                await context.write(response)

    return send


async def _abort(context: ServicerContext[Any, Any], fault: Fault) -> None:
    status = to_status(fault)
    await context.abort(fault.status, status.message, trailing_metadata(status))


def _code_of(context: ServicerContext[Any, Any]) -> StatusCode:
    code: object = context.code()
    if isinstance(code, StatusCode):
        return code
    return next((each for each in StatusCode if each.value[0] == code), StatusCode.UNKNOWN)


def _host_of(peer: str) -> str:
    # `ipv4:127.0.0.1:40000`: the port differs from connection to connection.
    return peer.rpartition(":")[0]


def _stopping() -> Fault:
    return Fault("SERVICE_UNAVAILABLE", "this process is stopping")
