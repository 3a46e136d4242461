"""The users of a soak of jobs. Through the API they sign in, start their jobs, pause, resume and stop them."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientError, ClientSession, CookieJar

from tests.jobs.soak.plan import Plan, job_of, person_of, round_of
from tests.providers.sign_in.browser import confirmed
from tests.system.crash.api_client import ApiClient

HOLIDAY = "holiday"
_BUSY, _AGAIN = 503, 0.1
_AT_ONCE = 8
_RESTLESS = 3
"""Users that pause and resume at a time."""


@dataclass
class Pause:
    """`begin`: when the API has answered. `end`: when the user resumed, both in Unix seconds."""

    user: int
    begin: float
    end: float = float("inf")


class People:
    """Some pause their jobs for a holiday or stop them, and leave it at that; others pause and resume all the time; all
    sign in again when they have to. `resumed`: user → how often it has let its job go on.
    """

    def __init__(self, session: ClientSession, url: str, plan: Plan) -> None:
        self._session = session
        self._api = ApiClient(url, session)
        self._plan = plan
        self._chance = random.Random(f"people {plan.seed}")
        users = self._chance.sample(plan.users, plan.jobs)
        tenth, twentieth = -(-plan.jobs // 10), -(-plan.jobs // 20)
        self.on_holiday = users[:tenth]
        self.gone = users[tenth : tenth + twentieth]
        self._others = users[tenth + twentieth :]
        self.pauses: list[Pause] = []
        self.resumed: Counter[int] = Counter()
        self._busy = {user: asyncio.Lock() for user in plan.users}
        self.sign_ins = 0
        self.tickets: Counter[int] = Counter()
        """User → how many signals its round was sent, numbered from 1."""

    async def begin(self) -> None:
        """All sign in and start their jobs."""
        await _some_at_once(map(self._begin, self._plan.users))
        await _some_at_once(map(self._begin_round, self._plan.walkers))

    async def _begin(self, user: int) -> None:
        await self.sign_in(user)
        await self._call("POST", "/v1/jobs", {"kind": "hunt", "user": user, "timezone": "Europe/Moscow"}, also=409)

    async def _begin_round(self, user: int) -> None:
        await self._call("POST", "/v1/jobs", {"kind": "round", "user": user}, also=409)

    async def _send_tickets(self, until: float) -> None:
        """Each is sent until it is accepted, and counts once: it has an id."""
        while time.monotonic() < until:
            user = self._chance.choice(self._plan.walkers)
            ticket = self.tickets[user] + 1
            signal = {"name": "ticket", "data": ticket, "id": f"ticket {ticket}"}
            await self._call("POST", f"/v1/jobs/{round_of(user)}:signal", signal)
            self.tickets[user] = ticket
            await asyncio.sleep(self._chance.uniform(0, 0.4))

    async def live(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        leaving = [self._leave(user, self.pause, until) for user in self.on_holiday]
        leaving += [self._leave(user, self.stop, until) for user in self.gone]
        await asyncio.gather(
            *leaving, self._send_tickets(until), *(self._pause_and_resume(until) for _ in range(_RESTLESS))
        )

    async def _leave(self, user: int, how: Callable[[int], Awaitable[None]], until: float) -> None:
        await asyncio.sleep(self._chance.uniform(0, 0.8) * (until - time.monotonic()))
        await how(user)

    async def _pause_and_resume(self, until: float) -> None:
        while time.monotonic() < until:
            user = self._others.pop(self._chance.randrange(len(self._others)))
            await self.pause(user)
            await asyncio.sleep(self._chance.uniform(0.1, 3))
            await self.resume(user)
            self._others.append(user)

    async def sign_in_again(self) -> None:
        """Sign in, or resume after a limit, whenever a job waits for that; until cancelled."""
        while True:
            for job in await self.jobs("paused"):
                async with self._busy[int(job["user"])]:
                    await self._look_after(int(job["user"]))
            await asyncio.sleep(0.5)

    async def _look_after(self, user: int) -> None:
        job = await self._call("GET", f"/v1/jobs/{job_of(user)}")
        if job.get("paused_by") == "sign_in":
            await self.sign_in(user)
        elif job.get("paused_by") == "limit":
            await self._resume(user)

    # what a user does

    async def sign_in(self, user: int) -> None:
        """Open the page, confirm it, and agree at the service, which leads back to the API."""
        self.sign_ins += 1
        while not await self._signs_in(user):  # noqa: ASYNC110 - the API may be down
            await asyncio.sleep(_AGAIN)

    async def _signs_in(self, user: int) -> bool:
        """Returns False if the API or the service fails on the way."""
        begun = await self._call("POST", "/v1/sign-in", {"service": "vacancies", "user": user})
        try:
            async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as browser:
                at_service = await confirmed(browser, begun["url"])
                async with browser.get(f"{at_service}&person={person_of(user)}") as page:
                    return page.status == 200
        except (ClientError, KeyError):
            return False

    async def pause(self, user: int) -> None:
        async with self._busy[user]:
            await self._change(user, "pause", {"reason": HOLIDAY})
            self.pauses.append(Pause(user, time.time()))

    async def resume(self, user: int) -> None:
        async with self._busy[user]:
            await self._resume(user)

    async def _resume(self, user: int) -> None:
        """Also if it goes on already: the answer to an earlier call may have been lost."""
        for pause in self.pauses:
            if pause.user == user:
                pause.end = min(pause.end, time.time())
        self.resumed[user] += 1
        await self._change(user, "resume", also=409)

    async def stop(self, user: int) -> None:
        await self._change(user, "stop", also=409)

    async def come_back(self) -> None:
        """Let the jobs of people that have left go on."""
        await _some_at_once(map(self.resume, self.on_holiday))
        await _some_at_once(map(self._begin, self.gone))

    async def jobs(self, state: str = "") -> list[dict[str, Any]]:
        """All jobs as the API shows them, or those in one state."""
        found: list[dict[str, Any]] = []
        cursor: str | None = ""
        while cursor is not None:
            query = f"?limit=1000&state={state}" if state else "?limit=1000"
            page = await self._call("GET", f"/v1/jobs{query}{f'&cursor={cursor}' if cursor else ''}")
            found += page["jobs"]
            cursor = page.get("next")
        return found

    async def _change(self, user: int, verb: str, body: object = None, also: int = 200) -> None:
        await self._call("POST", f"/v1/jobs/{job_of(user)}:{verb}", body, also)

    async def _call(self, method: str, path: str, body: object = None, also: int = 200) -> Any:
        """Repeats the call while the server is down. Raises RuntimeError for a refusal other than `also`."""
        while True:
            try:
                status, answer = await self._api.request(method, path, body)
            except (ClientError, TimeoutError):
                status, answer = _BUSY, None
            if status < 300 or status == also:
                return answer
            if status != _BUSY:
                raise RuntimeError(f"{method} {path} was answered with {status}: {answer}")
            await asyncio.sleep(_AGAIN)


async def _some_at_once(calls: Iterable[Awaitable[None]]) -> None:
    room = asyncio.Semaphore(_AT_ONCE)

    async def run(call: Awaitable[None]) -> None:
        async with room:
            await call

    await asyncio.gather(*map(run, calls))
