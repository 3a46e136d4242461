"""Hunts for a job: searches vacancies with a query that a language model has written from the user's profile, writes a
letter for each new one, applies, and records it.

Settings: HUNT_URL, the address of the service of vacancies; users sign in to it as `vacancies` (ADA_SIGN_IN).
"""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from aiohttp import ClientResponse, ClientSession, ClientTimeout, TraceConfig

from jobs import Actor, Iteration, Job, NotDone, Pause, Schedule, UnitFailed
from providers.sign_in import SignInExpired

URL = os.environ.get("HUNT_URL", "")
PERIOD = timedelta(seconds=float(os.environ.get("HUNT_PERIOD", "1800")))
PAGES = int(os.environ.get("HUNT_PAGES", "3"))
SERVICE = "vacancies"

_TIMEOUT = ClientTimeout(total=30)
_QUERY = "Name the profession of this person in one or two words, nothing else."
_LETTER = "Write a letter of application in two sentences, from this person to this employer."


class Hunt(Job):
    """One per user. Parameters: `profile`, the id of the chosen one, needed if the user has several; `query`, what is
    searched: the user's own, or the one that was written from the profile.
    """

    name = "hunt"
    schedule = Schedule(PERIOD)

    async def run(self, iteration: Iteration) -> None:
        async with opened(iteration) as service:
            hunt = _Hunt(iteration, service)
            query = await hunt.query()
            found = await iteration.step("search", service.search, query)
            applied = await iteration.each(found, hunt.apply, key=lambda vacancy: vacancy["id"])
            if applied:
                await iteration.log(f"{applied} new vacancies for {query!r}")


class _Hunt:
    """One iteration."""

    def __init__(self, iteration: Iteration, service: "Service") -> None:
        self._iteration = iteration
        self._service = service

    async def query(self) -> str:
        """Return the query that is stored with the job, where the user sees and changes it; at first one from the
        profile.
        """
        given = str(self._iteration.parameters.get("query") or "")
        if given:
            return given
        profile = await self._service.profile(await self._chosen_profile())
        if not profile.strip():
            raise Pause(Actor.USER, "your profile has no text: write something about yourself, then resume")
        query = (await self._iteration.complete(profile, _QUERY)).strip()[:100] or "teacher"
        await self._iteration.change_parameters(query=query)
        await self._iteration.log(f"looks for {query!r}, from the profile")
        return query

    async def _chosen_profile(self) -> str:
        """Return the id of the user's only profile, or of the chosen one."""
        profiles = {str(one["id"]): str(one["title"]) for one in await self._service.profiles()}
        chosen = str(self._iteration.parameters.get("profile") or "")
        if not chosen and len(profiles) == 1:
            (chosen,) = profiles
            await self._iteration.change_parameters(profile=chosen)
        if chosen not in profiles:
            listed = ", ".join(f"{one} ({title})" for one, title in profiles.items())
            raise Pause(Actor.USER, f"choose one of your profiles, then resume: {listed}")
        return chosen

    async def apply(self, vacancy: Mapping[str, str]) -> None:
        letter = await self._iteration.step(f"letter {vacancy['id']}", self._letter, vacancy)
        await self._service.sign_in()
        await self._iteration.effect(
            f"apply {vacancy['id']}",
            self._service.apply,
            vacancy["id"],
            letter,
            exists=lambda: self._service.has_applied(vacancy["id"]),
        )
        await self._iteration.log(f"applied: {vacancy['title']}, {vacancy['employer']}")

    async def _letter(self, vacancy: Mapping[str, str]) -> str:
        letter = await self._iteration.complete(f"{vacancy['title']}, {vacancy['employer']}", _LETTER)
        if not letter.strip():
            raise UnitFailed("the language model wrote nothing")
        return letter


class Service:
    """The service of vacancies, as the signed-in user."""

    def __init__(self, iteration: Iteration, session: ClientSession) -> None:
        self._iteration = iteration
        self._session = session
        self._headers: dict[str, str] = {}

    async def sign_in(self) -> None:
        """Take the user's token; an iteration may last longer than one is valid. Without a valid sign-in the job is
        paused until the user has signed in.
        """
        self._headers = {"Authorization": f"Bearer {await self._iteration.access_token(SERVICE)}"}

    async def profiles(self) -> list[dict[str, str]]:
        """Return the profiles of the user: id and title."""
        return list((await self._get("/profiles"))["items"])

    async def profile(self, profile: str) -> str:
        """Return the text of a profile."""
        return str((await self._get("/profile", id=profile))["text"])

    async def search(self, query: str) -> list[dict[str, str]]:
        """Return the vacancies of the first pages."""
        found: list[dict[str, str]] = []
        for page in range(PAGES):
            answer = await self._get("/vacancies", query=query, page=str(page))
            found += answer["items"]
            if page + 1 >= answer["pages"]:
                break
        return found

    async def has_applied(self, vacancy: str) -> bool:
        return bool((await self._get(f"/applications/{vacancy}"))["applied"])

    async def apply(self, vacancy: str, letter: str) -> None:
        """Apply to a vacancy. Raises NotDone if the service has certainly stored nothing: SignedOut, DailyLimit, or
        plainly.
        """
        url, body = f"{URL}/applications/{vacancy}", {"letter": letter}
        async with self._session.post(url, json=body, headers=self._headers) as response:
            if response.status == 409:  # applied before, perhaps by hand
                return
            if response.status == 403:
                raise DailyLimit
            if response.status == 401:
                raise SignedOut
            if response.status == 429:
                raise NotDone("the service answered 429")
            response.raise_for_status()

    async def _get(self, path: str, **query: str) -> Any:
        async with self._session.get(URL + path, params=query, headers=self._headers) as response:
            _check(response)
            return await response.json()


class DailyLimit(NotDone, Pause):
    """Nothing was sent; the job goes on tomorrow."""

    def __init__(self) -> None:
        tomorrow = (datetime.now(UTC) + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
        Pause.__init__(self, Actor.LIMIT, "the service takes no more applications today", tomorrow)


class SignedOut(NotDone, SignInExpired):
    """Nothing was sent; the job goes on after the user has signed in again."""

    def __init__(self) -> None:
        super().__init__("the service does not accept the sign-in any more")


def _check(response: ClientResponse) -> None:
    if response.status == 401:
        raise SignedOut
    response.raise_for_status()


def _guard(iteration: Iteration) -> TraceConfig:
    """Checks the lease when a connection is there, right before a call is sent on it."""

    async def check(*_: Any) -> None:
        iteration.check_lease()

    trace = TraceConfig()
    trace.on_connection_create_end.append(check)
    trace.on_connection_reuseconn.append(check)
    return trace


@asynccontextmanager
async def opened(iteration: Iteration) -> AsyncIterator[Service]:
    """Open the service, signed in. If it does not accept the sign-in, the job is paused until the user signs in."""
    async with ClientSession(timeout=_TIMEOUT, trace_configs=[_guard(iteration)]) as session:
        service = Service(iteration, session)
        await service.sign_in()
        try:
            yield service
        except SignInExpired as expired:
            raise Pause(Actor.SIGN_IN, f"sign in to {SERVICE} again: {expired}", service=SERVICE) from None
