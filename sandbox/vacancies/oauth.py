"""The sign-in of the service: authorization code with PKCE; codes and refresh tokens are valid once."""

import hashlib
import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from aiohttp import web

CLIENT_ID = "ada"
CLIENT_SECRET = "sandbox-secret"
PERSON = "person"
"""The parameter by which a test says who signs in; without it a new person does."""


@dataclass(frozen=True)
class _Code:
    person: str
    challenge: str
    redirect: str


class OAuth:
    """`lifetime`: of access tokens, in seconds."""

    def __init__(self) -> None:
        self.lifetime = 3600.0
        self._codes: dict[str, _Code] = {}
        self._access: dict[str, tuple[str, float]] = {}
        self._refresh: dict[str, str] = {}
        self._people = 0

    def person_of(self, request: web.Request) -> str | None:
        """Return the person of a request's access token; None if it is not valid (any more)."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        return self.person_with(token) if scheme == "Bearer" else None

    def person_with(self, token: str) -> str | None:
        """Return the person of an access token; None if it is not valid (any more)."""
        person, ends = self._access.get(token, ("", 0.0))
        return person if ends > time.time() else None

    def revoke(self, person: str) -> None:
        """Withdraw the permission of a person: all its tokens end."""
        self._access = {token: one for token, one in self._access.items() if one[0] != person}
        self._refresh = {token: one for token, one in self._refresh.items() if one != person}

    def expire(self, person: str) -> None:
        """End the access tokens of a person before their time; refresh tokens stay."""
        self._access = {token: one for token, one in self._access.items() if one[0] != person}

    async def authorize(self, request: web.Request) -> web.Response:
        """Agree as the person: the answer leads to the callback."""
        given = request.query
        wanted = {"response_type": "code", "client_id": CLIENT_ID, "code_challenge_method": "S256"}
        if any(given.get(name) != value for name, value in wanted.items()) or "code_challenge" not in given:
            return web.Response(status=400, text=f"needed are {wanted} and code_challenge")
        self._people += 1
        code = secrets.token_urlsafe(16)
        person = given.get(PERSON) or f"person-{self._people}"
        self._codes[code] = _Code(person, given["code_challenge"], given["redirect_uri"])
        answer = urlencode({"code": code, "state": given.get("state", "")})
        raise web.HTTPFound(f"{given['redirect_uri']}?{answer}")

    async def revoke_token(self, request: web.Request) -> web.Response:
        """End a token (RFC 7009): with its refresh token the sign-in of a person ends; a token that is not known is no
        error."""
        given = {name: str(value) for name, value in (await request.post()).items()}
        if not _is_client(given):
            return web.json_response({"error": "invalid_client"}, status=401)
        if person := self._refresh.get(given.get("token", "")):
            self.revoke(person)
        return web.Response()

    async def token(self, request: web.Request) -> web.Response:
        given = {name: str(value) for name, value in (await request.post()).items()}
        if not _is_client(given):
            return web.json_response({"error": "invalid_client"}, status=401)
        is_code = given.get("grant_type") == "authorization_code"
        person = self._person_of_code(given) if is_code else self._refresh.pop(given.get("refresh_token", ""), None)
        if person is None:
            return web.json_response({"error": "invalid_grant"}, status=400)
        return web.json_response(self._new_tokens(person))

    def _person_of_code(self, given: Mapping[str, str]) -> str | None:
        code = self._codes.pop(given.get("code", ""), None)
        digest = hashlib.sha256(given.get("code_verifier", "").encode()).digest()
        challenge = urlsafe_b64encode(digest).decode().rstrip("=")
        if code is None or (code.challenge, code.redirect) != (challenge, given.get("redirect_uri")):
            return None
        return code.person

    def _new_tokens(self, person: str) -> dict[str, object]:
        access, refresh = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self._access[access] = (person, time.time() + self.lifetime)
        self._refresh[refresh] = person
        return {"access_token": access, "token_type": "bearer", "expires_in": self.lifetime, "refresh_token": refresh}


def _is_client(given: Mapping[str, str]) -> bool:
    return (given.get("client_id"), given.get("client_secret")) == (CLIENT_ID, CLIENT_SECRET)
