"""Sessions: the person's token and a CSRF word, sealed into a cookie. The console keeps only which ones are open."""

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

from services.console.open_sessions import OpenSessions
from services.runtime.auth import Authenticator, Identity
from services.runtime.errors import Fault
from services.runtime.sealing import SealBrokenError, Sealer

COOKIE: Final = "fivedraw_console"
PURPOSE: Final = b"console session"
CSRF_BYTES: Final = 24
ID_BYTES: Final = 16
# Who may sign in; a player has clients of their own.
ROLES: Final = frozenset({"viewer", "operator", "finance", "auditor"})


@dataclass(frozen=True, slots=True)
class Session:
    """A signed-in person."""

    id: str
    identity: Identity
    token: str
    csrf: str

    def may(self, *roles: str) -> bool:
        """Whether the person has one of these roles."""
        return not self.identity.roles.isdisjoint(roles)


class Sessions:
    """Makes, reads and ends sessions. One ends when its person signs out, and at the latest when its token does."""

    def __init__(
        self, authenticator: Authenticator, sealer: Sealer, open_sessions: OpenSessions, *, secure: bool
    ) -> None:
        self._authenticator = authenticator
        self._sealer = sealer
        self._open = open_sessions
        self._secure = secure

    async def begin(self, token: str) -> Session:
        """A new session for a bearer token. Raises `Fault` UNAUTHENTICATED, or PERMISSION_DENIED for a player."""
        identity = await self._authenticator.identify_token(token)
        if identity.roles.isdisjoint(ROLES):
            raise Fault("PERMISSION_DENIED", f"{identity.id} has no role in the house")
        if identity.expires_at is None:
            raise Fault("UNAUTHENTICATED", "the token has no end")
        session = Session(secrets.token_hex(ID_BYTES), identity, token, secrets.token_urlsafe(CSRF_BYTES))
        await self._open.add(session.id, identity.id, identity.expires_at)
        return session

    async def of(self, request: Request) -> Session | None:
        """The session of a request, or None where there is none, or none any more."""
        try:
            sealed = urlsafe_b64decode(request.cookies.get(COOKIE, "").encode())
            kept = json.loads(self._sealer.open(sealed, PURPOSE))
            identity = await self._authenticator.identify_token(kept["token"])
            session = Session(kept["id"], identity, kept["token"], kept["csrf"])
        except (Base64Error, SealBrokenError, Fault, KeyError, ValueError):
            return None
        return session if not identity.roles.isdisjoint(ROLES) and await self.is_open(session) else None

    async def is_open(self, session: Session) -> bool:
        """Whether nobody has ended it."""
        return await self._open.has(session.id)

    def keep(self, session: Session, response: Response) -> None:
        """Puts a session into the browser: not for scripts, not for other sites, and no longer than the browser."""
        content = json.dumps({"id": session.id, "token": session.token, "csrf": session.csrf}).encode()
        value = urlsafe_b64encode(self._sealer.seal(content, PURPOSE)).decode()
        response.set_cookie(COOKIE, value, path="/", secure=self._secure, httponly=True, samesite="strict")

    async def end(self, session: Session, response: Response) -> None:
        """Ends the session for every copy of its cookie, and takes it out of this browser."""
        await self._open.remove(session.id)
        response.delete_cookie(COOKIE, path="/", secure=self._secure, httponly=True, samesite="strict")


def check_csrf(session: Session, word: str) -> None:
    """Raises `Fault` PERMISSION_DENIED unless the form was made for this session."""
    if not hmac.compare_digest(session.csrf.encode(), word.encode()):
        raise Fault("PERMISSION_DENIED", "this form is not of your session: load the page again")
