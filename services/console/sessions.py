"""Sessions: the person's token and a CSRF word, sealed into a cookie. The console keeps nothing of a session itself."""

from __future__ import annotations

import hmac
import json
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from services.runtime.auth import Authenticator, Identity
from services.runtime.errors import Fault
from services.runtime.sealing import SealBrokenError, Sealer

COOKIE: Final = "fivedraw_console"
PURPOSE: Final = b"console session"
CSRF_BYTES: Final = 24
# Who may sign in; a player has clients of their own.
ROLES: Final = frozenset({"viewer", "operator", "finance", "auditor"})


@dataclass(frozen=True, slots=True)
class Session:
    """A signed-in person."""

    identity: Identity
    token: str
    csrf: str

    def may(self, *roles: str) -> bool:
        """Whether the person has one of these roles."""
        return not self.identity.roles.isdisjoint(roles)


class Sessions:
    """Makes and reads sessions. A session ends when its token does."""

    def __init__(self, authenticator: Authenticator, sealer: Sealer, *, secure: bool) -> None:
        self._authenticator = authenticator
        self._sealer = sealer
        self._secure = secure

    async def begin(self, token: str) -> Session:
        """A new session for a bearer token. Raises `Fault` UNAUTHENTICATED, or PERMISSION_DENIED for a player."""
        identity = await self._authenticator.identify_token(token)
        if identity.roles.isdisjoint(ROLES):
            raise Fault("PERMISSION_DENIED", f"{identity.id} has no role in the house")
        return Session(identity, token, secrets.token_urlsafe(CSRF_BYTES))

    async def of(self, request: Request) -> Session | None:
        """The session of a request, or None where there is none, or none any more."""
        try:
            sealed = urlsafe_b64decode(request.cookies.get(COOKIE, "").encode())
            kept = json.loads(self._sealer.open(sealed, PURPOSE))
            identity = await self._authenticator.identify_token(kept["token"])
        except (Base64Error, SealBrokenError, Fault, ValueError):
            return None
        return None if identity.roles.isdisjoint(ROLES) else Session(identity, kept["token"], kept["csrf"])

    def keep(self, session: Session, response: Response) -> None:
        """Puts a session into the browser: not for scripts, not for other sites, and no longer than the browser."""
        content = json.dumps({"token": session.token, "csrf": session.csrf}).encode()
        value = urlsafe_b64encode(self._sealer.seal(content, PURPOSE)).decode()
        response.set_cookie(COOKIE, value, path="/", secure=self._secure, httponly=True, samesite="strict")

    def end(self, response: Response) -> None:
        """Takes the session out of the browser."""
        response.delete_cookie(COOKIE, path="/", secure=self._secure, httponly=True, samesite="strict")


def check_csrf(session: Session, word: str) -> None:
    """Raises `Fault` PERMISSION_DENIED unless the form was made for this session."""
    if not hmac.compare_digest(session.csrf.encode(), word.encode()):
        raise Fault("PERMISSION_DENIED", "this form is not of your session: load the page again")
