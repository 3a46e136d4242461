"""The HTTP server of the service: profiles, search, applications; counts requests and injects faults."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web

from sandbox.events import Fault
from sandbox.http_listener import HttpListener, disconnect
from sandbox.state import SandboxState
from sandbox.vacancies.oauth import CLIENT_ID, CLIENT_SECRET, OAuth

CHANNEL = "vacancies"
VACANCIES = 1000
PER_PAGE = 20
_TITLES = ("Teacher of mathematics", "Librarian", "Python developer", "Translator", "Driver")
_DAY = 86_400

Answer = Callable[[web.Request, str], Awaitable[web.Response]]


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
