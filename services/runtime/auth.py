"""Who is calling: people by bearer token, services by certificate or by the house's service key.

A token never makes a service: what a token says of itself is only who the person is and which roles they have. The
identity of the current call is in a context variable that the server's gate sets; `current_identity()` reads it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Literal

import jwt

from services.runtime.clock import Clock
from services.runtime.errors import Fault
from services.runtime.jwks import KeySet
from services.runtime.settings import ServiceSettings

ROLES: Final = frozenset({"player", "viewer", "operator", "finance", "auditor"})
SERVICES: Final = frozenset({"table", "deck", "wallet", "history", "console"})

TOKEN_CHARACTERS_MAX: Final = 4096
TOKENS_REMEMBERED_MAX: Final = 10_000
CLOCK_SKEW_MS: Final = 5_000

SERVICE_HEADER: Final = "x-fivedraw-service"
SERVICE_PROOF_HEADER: Final = "x-fivedraw-service-proof"
# The bearer token (without a scheme) of the second person, for calls that need two.
SECOND_TOKEN_HEADER: Final = "x-fivedraw-second-token"  # noqa: S105 - a name, not a token

# A subject is the last part of `players/{player}`, so it fits a resource name.
_SUBJECT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,62}")
_REQUIRED_CLAIMS: Final = ("exp", "iss", "aud", "sub")


@dataclass(frozen=True, slots=True)
class Identity:
    """Who calls. `expires_at` is in milliseconds since the Unix epoch; `None` for services, whose calls do not end.

    `approved_by` is the second person's id where the call needs two, else empty.
    """

    kind: Literal["person", "service"]
    id: str
    roles: frozenset[str] = frozenset()
    expires_at: int | None = None
    approved_by: str = ""

    @property
    def is_service(self) -> bool:
        """Whether one of the house's own services calls."""
        return self.kind == "service"

    @property
    def player(self) -> str:
        """The resource name of the person's player profile: `players/{player}`."""
        return f"players/{self.id}"

    def seconds_left(self, clock: Clock) -> float | None:
        """Seconds until the token ends, at least 0; `None` where there is no end."""
        return None if self.expires_at is None else max(0.0, (self.expires_at - clock.now_ms()) / 1000)


_current: ContextVar[Identity] = ContextVar("fivedraw_identity")


def current_identity() -> Identity:
    """The caller of the current RPC. Raises `Fault` UNAUTHENTICATED outside of one, and for an anonymous caller."""
    identity = _current.get(None)
    if identity is None:
        raise Fault("UNAUTHENTICATED", "this call has no caller")
    return identity


@contextmanager
def acting_as(identity: Identity) -> Iterator[None]:
    """Makes `identity` the caller of what runs inside: the gate for an RPC, a simulation for calls in one process."""
    token = _current.set(identity)
    try:
        yield
    finally:
        _current.reset(token)


def service_proof(service_key: bytes, name: str) -> str:
    """What a service shows beside its name in an embedded house: HMAC-SHA256(service key, name) in hex."""
    return hmac.new(service_key, name.encode(), hashlib.sha256).hexdigest()


def service_metadata(settings: ServiceSettings, name: str) -> tuple[tuple[str, str], ...]:
    """The metadata by which service `name` proves itself; empty where its certificate does that."""
    if settings.has_tls:
        return ()
    return (SERVICE_HEADER, name), (SERVICE_PROOF_HEADER, service_proof(settings.service_key_bytes(), name))


class Authenticator:
    """Turns what a call carries into an identity."""

    def __init__(self, settings: ServiceSettings, clock: Clock) -> None:
        self._clock = clock
        self._issuer = settings.issuer
        self._audience = settings.audience
        self._by_certificate = settings.has_tls
        self._service_key = settings.service_key_bytes()
        self._keys = KeySet(settings.jwks, clock) if settings.jwks else None
        self._remembered: dict[str, Identity] = {}
        self._remembered_version = 0

    async def identify(
        self, metadata: Iterable[tuple[str, str | bytes]], peer: Mapping[str, Iterable[bytes]] | None = None
    ) -> Identity | None:
        """The caller, or `None` for one that shows nothing. `peer` is the connection's `auth_context()`.

        Raises `Fault` UNAUTHENTICATED for a token or proof that is wrong or has ended.
        """
        authorization: str | bytes | None = None
        service: str | bytes | None = None
        proof: str | bytes | None = None
        for name, value in metadata:
            if name == "authorization":
                if authorization is not None:
                    raise Fault("UNAUTHENTICATED", "the call carries more than one token")
                authorization = value
            elif name == SERVICE_HEADER:
                service = value
            elif name == SERVICE_PROOF_HEADER:
                proof = value
        if authorization is not None:
            return await self.identify_token(_bearer(authorization))
        if self._by_certificate:
            return _service_of_certificate(peer or {})
        if service is not None:
            return self._service_of_proof(service, proof)
        return None

    async def identify_second(self, metadata: Iterable[tuple[str, str | bytes]]) -> Identity | None:
        """The second person behind a call, or `None` where there is none. Raises `Fault` UNAUTHENTICATED."""
        shown = [value for name, value in metadata if name == SECOND_TOKEN_HEADER]
        if not shown:
            return None
        if len(shown) > 1 or not isinstance(shown[0], str):
            raise Fault("UNAUTHENTICATED", "the call carries more than one second token")
        return await self.identify_token(shown[0])

    async def identify_token(self, token: str) -> Identity:
        """The person whose bearer token this is. Raises `Fault` UNAUTHENTICATED."""
        if self._keys is None:
            raise Fault("UNAUTHENTICATED", "this service takes no tokens")
        if len(token) > TOKEN_CHARACTERS_MAX:
            raise Fault("UNAUTHENTICATED", f"the token is longer than {TOKEN_CHARACTERS_MAX} characters")
        await self._keys.refresh_if_due()
        if self._remembered_version != self._keys.version:
            # A key that was withdrawn takes its tokens with it.
            self._remembered.clear()
            self._remembered_version = self._keys.version
        identity = self._remembered.get(token)
        if identity is None:
            identity = await self._verify(token, self._keys)
            if len(self._remembered) >= TOKENS_REMEMBERED_MAX:
                self._remembered.clear()
            self._remembered[token] = identity
        if identity.expires_at is not None and identity.expires_at <= self._clock.now_ms():
            self._remembered.pop(token, None)
            raise Fault("UNAUTHENTICATED", "the token has ended")
        return identity

    async def _verify(self, token: str, keys: KeySet) -> Identity:
        try:
            header = jwt.get_unverified_header(token)
            key = await keys.key_for(str(header.get("kid", "")), str(header.get("alg", "")))
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[key.algorithm_name],
                issuer=self._issuer,
                audience=self._audience,
                # Times are checked below, against the injected clock.
                options={
                    "require": list(_REQUIRED_CLAIMS),
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                },
            )
        except jwt.PyJWTError as error:
            raise Fault("UNAUTHENTICATED", f"the token is not valid ({type(error).__name__})") from None
        subject, expires, not_before = claims["sub"], claims["exp"], claims.get("nbf", 0)
        if not isinstance(subject, str) or not _SUBJECT.fullmatch(subject):
            raise Fault("UNAUTHENTICATED", "the token's subject is no player's id")
        if not _is_time(expires) or not _is_time(not_before):
            raise Fault("UNAUTHENTICATED", "the token's times are not numbers")
        if not_before * 1000 > self._clock.now_ms() + CLOCK_SKEW_MS:
            raise Fault("UNAUTHENTICATED", "the token is not valid yet")
        roles = claims.get("roles", [])
        if not isinstance(roles, list) or not all(isinstance(role, str) for role in roles):
            raise Fault("UNAUTHENTICATED", "the token's roles are not a list of names")
        return Identity("person", subject, ROLES.intersection(roles), int(expires * 1000))

    def _service_of_proof(self, service: str | bytes, proof: str | bytes | None) -> Identity:
        name = service if isinstance(service, str) else ""
        shown = proof if isinstance(proof, str) else ""
        # The proof is computed for any name, so that time does not tell which names exist.
        expected = service_proof(self._service_key, name)
        is_proved = hmac.compare_digest(expected.encode(), shown.encode("utf-8", "replace"))
        if not self._service_key or name not in SERVICES or not is_proved:
            raise Fault("UNAUTHENTICATED", "the service's proof is not valid")
        return Identity("service", name)


def _bearer(authorization: str | bytes) -> str:
    text = authorization if isinstance(authorization, str) else ""
    scheme, _, token = text.partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise Fault("UNAUTHENTICATED", "authorization is not of the form 'Bearer <token>'")
    return token.strip()


def _service_of_certificate(peer: Mapping[str, Iterable[bytes]]) -> Identity | None:
    for common_name in peer.get("x509_common_name", ()):
        name = common_name.decode("utf-8", "replace")
        if name in SERVICES:
            return Identity("service", name)
    return None


def _is_time(value: object) -> bool:
    # The upper bound (year 9999) keeps the product in milliseconds a sensible integer.
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 253_402_300_799
