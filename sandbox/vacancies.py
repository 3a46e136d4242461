"""Simulates a service of vacancies: OAuth 2 with PKCE, profiles, a paged search, applications.

A person who signs in agrees at once. No person can apply twice to the same vacancy; a day has a limit of applications.
A request that such a service refuses is refused here.
"""

import asyncio
import hashlib
import json
import secrets
import time
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from aiohttp import web

from sandbox.events import Fault
from sandbox.http_listener import HttpListener, disconnect
from sandbox.state import SandboxState

CLIENT_ID = "ada"
CLIENT_SECRET = "sandbox-secret"
PERSON = "person"
"""The parameter by which a test says who signs in; without it a new person does."""

CHANNEL = "vacancies"
VACANCIES = 1000
PER_PAGE = 20
_TITLES = ("Teacher of mathematics", "Librarian", "Python developer", "Translator", "Driver")
_DAY = 86_400
Answer = Callable[[web.Request, str], Awaitable[web.Response]]


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


@dataclass(frozen=True, slots=True)
class Application:
    """An application that would have been stored, if it was no repeat. `port`: where it arrived; `at`: Unix seconds."""

    person: str
    vacancy: str
    port: int
    at: float
    is_repeat: bool


class VacanciesServer(HttpListener):
    """`daily_limit`: applications of a person in a day. `vacancies`: how many there are by now. `applied`: (person,
    vacancy) → the letter. `takes`: seconds between storing an application and the answer. `book`: the applications in
    the order of their arrival.
    """

    def __init__(self, state: SandboxState, host: str = "127.0.0.1", port: int = 0) -> None:
        self.state = state
        self.oauth = OAuth()
        self.daily_limit = 200
        self.vacancies = VACANCIES
        self.takes = 0.0
        self.applied: dict[tuple[str, str], str] = {}
        self.attempts: Counter[tuple[str, str]] = Counter()
        self.book: list[Application] = []
        self._days: Counter[tuple[str, int]] = Counter()
        app = web.Application()
        app.router.add_get("/oauth/authorize", self.oauth.authorize)
        app.router.add_post("/oauth/token", self.oauth.token)
        app.router.add_post("/oauth/revoke", self.oauth.revoke_token)
        app.router.add_get("/profiles", self._handler("profiles", self._profiles))
        app.router.add_get("/profile", self._handler("profile", self._profile))
        app.router.add_get("/vacancies", self._handler("search", self._search))
        app.router.add_get("/applications/{vacancy}", self._handler("applied", self._find))
        app.router.add_post("/applications/{vacancy}", self._handler("apply", self._apply))
        super().__init__(app, host, port, "")

    @property
    def sign_in(self) -> str:
        """The description of this service for ADA_SIGN_IN, as YAML, of which JSON is a part."""
        addresses = {f"{name}_url": f"{self.url}/oauth/{name}" for name in ("authorize", "token", "revoke")}
        return json.dumps({CHANNEL: {**addresses, "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}})

    def _handler(self, name: str, answer: Answer) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            self.state.count(CHANNEL, name)
            person = self.oauth.person_of(request)
            if person is None:
                return _error(401, "token_expired")
            fault = self.state.fault(CHANNEL, person, name)
            if fault is None:
                return await answer(request, person)
            return await _faulty(fault, request, lambda: answer(request, person))

        return handle

    async def _profiles(self, request: web.Request, person: str) -> web.Response:
        """Return two for a person whose name begins with `two`, otherwise one."""
        titles = ("teacher", "driver") if person.startswith("two") else ("teacher",)
        return web.json_response({"items": [{"id": title, "title": f"A good {title}"} for title in titles]})

    async def _profile(self, request: web.Request, person: str) -> web.Response:
        profile = request.query.get("id", "teacher")
        text = f"{person}: ten years at school, writes Python at night."
        if profile == "driver":
            text = f"{person}: drives a bus."
        return web.json_response({"person": person, "text": "" if person.startswith("empty") else text})

    async def _search(self, request: web.Request, person: str) -> web.Response:
        """Return vacancies whose title has a word of the query, the newest first."""
        words = request.query.get("query", "").casefold().split()
        page = int(request.query.get("page", "0"))
        found = [
            one
            for one in map(_vacancy, range(self.vacancies))
            if any(word in str(one["title"]).casefold() for word in words)
        ]
        pages = -(-len(found) // PER_PAGE)
        return web.json_response({"items": found[page * PER_PAGE : (page + 1) * PER_PAGE], "pages": pages})

    async def _find(self, request: web.Request, person: str) -> web.Response:
        is_there = (person, request.match_info["vacancy"]) in self.applied
        return web.json_response({"applied": is_there})

    async def _apply(self, request: web.Request, person: str) -> web.Response:
        vacancy, day = request.match_info["vacancy"], (person, int(time.time()) // _DAY)
        letter = str((await request.json()).get("letter", ""))
        self.attempts[person, vacancy] += 1
        if (person, vacancy) in self.applied:
            self._note(request, person, is_repeat=True)
            return _error(409, "already_applied")
        if self._days[day] >= self.daily_limit:
            return _error(403, "daily_limit")
        if not letter.strip():
            return _error(422, "letter_is_empty")
        self._days[day] += 1
        self.state.count(CHANNEL, "stored")
        self.applied[person, vacancy] = letter
        self._note(request, person, is_repeat=False)
        await asyncio.sleep(self.takes)
        return web.json_response({}, status=201)

    def _note(self, request: web.Request, person: str, *, is_repeat: bool) -> None:
        """Write an application into the book."""
        port = request.url.port or 0
        self.book.append(Application(person, request.match_info["vacancy"], port, time.time(), is_repeat))


def _vacancy(number: int) -> dict[str, str]:
    return {"id": f"v{number}", "title": _TITLES[number % len(_TITLES)], "employer": f"School {number % 37}"}


def _error(status: int, error: str, **headers: str) -> web.Response:
    return web.json_response({"error": error}, status=status, headers=headers)


async def _faulty(
    fault: Fault, request: web.Request, answer: Callable[[], Awaitable[web.Response]]
) -> web.StreamResponse:
    match fault.name:
        case "throttled":
            return _error(429, "too_many_requests", **{"Retry-After": str(int(fault.value or 1))})
        case "unauthorized":
            return _error(401, "token_expired")
        case "stored_then_error":
            await answer()
            return _error(500, "internal")
        case "disconnect_after":
            await answer()
            return await disconnect(request)
        case "disconnect_before":
            return await disconnect(request)
    return _error(500, "internal")
