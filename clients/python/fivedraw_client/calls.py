"""One caller's way of making calls: its token, a deadline, typed errors, repeats where repeating is safe."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from typing import Any, Final

import grpc

from fivedraw_client import errors
from fivedraw_client.retries import RetryPolicy, repeat

# A token, or what gives the present one: a long-lived client renews its own.
Token = str | Callable[[], str]

CALL_SECONDS: Final = 10.0


class Caller:
    """Makes unary calls on behalf of one token.

    `call_seconds` bounds each attempt. Reads and calls that carry an id of their own are repeated by `policy`.
    """

    def __init__(self, token: Token, *, policy: RetryPolicy, call_seconds: float, rng: random.Random) -> None:
        self._token = token
        self._call_seconds = call_seconds
        self.policy = policy
        self.rng = rng

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """The metadata that every call and stream carries."""
        token = self._token if isinstance(self._token, str) else self._token()
        return (("authorization", f"Bearer {token}"),)

    async def call(self, method: Any, request: Any) -> Any:
        """Calls a stub's unary `method`, and calls again while that may help. Raises a `FivedrawError`."""
        return await repeat(lambda: self.call_once(method, request), self.policy, self.rng)

    async def call_once(self, method: Any, request: Any) -> Any:
        """Calls once. Raises a `FivedrawError`."""
        try:
            return await method(request, timeout=self._call_seconds, metadata=self.metadata())
        except grpc.aio.AioRpcError as error:
            raise errors.from_rpc(error) from error


def new_id() -> str:
    """A fresh idempotency id."""
    return uuid.uuid4().hex
