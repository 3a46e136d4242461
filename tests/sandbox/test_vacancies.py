"""The simulated service of vacancies, with a plain HTTP client."""

import hashlib
import secrets
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from aiohttp import ClientSession, ServerDisconnectedError

from sandbox.events import Fault, Rule
from sandbox.faults import FAULTS
from sandbox.state import SandboxState
from sandbox.vacancies import CLIENT_ID, CLIENT_SECRET, VacanciesServer
from tests.support.serving import serving

CALLBACK = "http://127.0.0.1/callback"


@pytest.fixture
async def service() -> AsyncIterator[VacanciesServer]:
    async with serving(VacanciesServer(SandboxState())) as server:
        yield server


class Person:
    """A client that has signed in."""

    def __init__(self, service: VacanciesServer, session: ClientSession) -> None:
        self._service = service
        self._session = session
        self.tokens: dict[str, Any] = {}

    async def authorize(self, verifier: str) -> str:
        """The code for a verifier."""
        challenge = urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        query = {"response_type": "code", "client_id": CLIENT_ID, "redirect_uri": CALLBACK, "state": "s"}
        query |= {"code_challenge": challenge, "code_challenge_method": "S256", "person": "anna"}
        url = f"{self._service.url}/oauth/authorize"
        async with self._session.get(url, params=query, allow_redirects=False) as answer:
            return parse_qs(urlsplit(answer.headers["Location"]).query)["code"][0]

    async def token(self, **form: str) -> tuple[int, dict[str, Any]]:
        form = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET, **form}
        async with self._session.post(f"{self._service.url}/oauth/token", data=form) as answer:
            return answer.status, await answer.json()

    async def sign_in(self) -> None:
        verifier = secrets.token_urlsafe(48)
        code = await self.authorize(verifier)
        status, self.tokens = await self.token(
            grant_type="authorization_code", code=code, redirect_uri=CALLBACK, code_verifier=verifier
        )
        assert status == 200

    async def call(self, method: str, path: str, **more: Any) -> tuple[int, dict[str, Any]]:
        headers = {"Authorization": f"Bearer {self.tokens.get('access_token', '')}"}
        async with self._session.request(method, self._service.url + path, headers=headers, **more) as answer:
            return answer.status, await answer.json()


@pytest.fixture
async def anna(service: VacanciesServer) -> AsyncIterator[Person]:
    async with ClientSession() as session:
        person = Person(service, session)
        await person.sign_in()
        yield person


async def test_a_sign_in_ends_when_its_refresh_token_is_revoked(service: VacanciesServer, anna: Person) -> None:
    client = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}
    for form, expected in (
        ({"token": anna.tokens["refresh_token"]}, (401, 200)),
        ({**client, "token": "unknown"}, (200, 200)),
        ({**client, "token": anna.tokens["refresh_token"]}, (200, 401)),
    ):
        async with ClientSession() as session, session.post(f"{service.url}/oauth/revoke", data=form) as answer:
            assert (answer.status, (await anna.call("GET", "/profile"))[0]) == expected


async def test_a_person_searches_and_applies_once(anna: Person) -> None:
    assert "ten years" in (await anna.call("GET", "/profile"))[1]["text"]
    assert [one["id"] for one in (await anna.call("GET", "/profiles"))[1]["items"]] == ["teacher"]
    assert "drives" in (await anna.call("GET", "/profile?id=driver"))[1]["text"]
    _, page = await anna.call("GET", "/vacancies", params={"query": "teacher", "page": "1"})
    assert (len(page["items"]), page["pages"]) == (20, 10)
    where = f"/applications/{page['items'][0]['id']}"
    assert (await anna.call("GET", where))[1] == {"applied": False}
    assert (await anna.call("POST", where, json={"letter": "hello"}))[0] == 201
    assert (await anna.call("GET", where))[1] == {"applied": True}
    assert await anna.call("POST", where, json={"letter": "hello"}) == (409, {"error": "already_applied"})
    assert (await anna.call("POST", "/applications/v7", json={"letter": " "}))[0] == 422


async def test_the_day_has_a_limit(service: VacanciesServer, anna: Person) -> None:
    service.daily_limit = 1
    assert (await anna.call("POST", "/applications/v1", json={"letter": "hello"}))[0] == 201
    assert await anna.call("POST", "/applications/v2", json={"letter": "hello"}) == (403, {"error": "daily_limit"})


async def test_codes_and_refresh_tokens_are_valid_once(anna: Person, service: VacanciesServer) -> None:
    refresh = anna.tokens["refresh_token"]
    status, anna.tokens = await anna.token(grant_type="refresh_token", refresh_token=refresh)
    assert status == 200
    assert (await anna.call("GET", "/profile"))[0] == 200
    assert await anna.token(grant_type="refresh_token", refresh_token=refresh) == (400, {"error": "invalid_grant"})
    code = await anna.authorize("right")
    wrong = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK, "code_verifier": "wrong"}
    assert (await anna.token(**wrong))[0] == 400
    assert (await anna.token(**{**wrong, "code_verifier": "right"}))[0] == 400
    assert (await anna.token(grant_type="refresh_token", refresh_token=refresh, client_secret="no"))[0] == 401
    service.oauth.revoke("anna")
    assert (await anna.call("GET", "/profile"))[0] == 401


@pytest.mark.parametrize(("fault", "status"), [("throttled", 429), ("unauthorized", 401), ("server_error", 500)])
async def test_a_fault_stores_nothing(service: VacanciesServer, anna: Person, fault: str, status: int) -> None:
    service.state.add_rule(Rule("vacancies", Fault(fault, 1), method="apply"))
    assert (await anna.call("POST", "/applications/v1", json={"letter": "hello"}))[0] == status
    assert service.applied == {}


async def test_an_answer_is_lost_after_the_application_was_stored(service: VacanciesServer, anna: Person) -> None:
    service.state.add_rule(Rule("vacancies", Fault("stored_then_error"), method="apply"))
    assert (await anna.call("POST", "/applications/v1", json={"letter": "hello"}))[0] == 500
    assert list(service.applied) == [("anna", "v1")]


@pytest.mark.parametrize(("fault", "stored"), [("disconnect_before", 0), ("disconnect_after", 1)])
async def test_the_connection_is_closed(service: VacanciesServer, anna: Person, fault: str, stored: int) -> None:
    service.state.add_rule(Rule("vacancies", Fault(fault), method="apply"))
    with pytest.raises(ServerDisconnectedError):
        await anna.call("POST", "/applications/v1", json={"letter": "hello"})
    assert len(service.applied) == stored


def test_all_faults_are_tested_here() -> None:
    tested = "throttled unauthorized server_error stored_then_error disconnect_before disconnect_after"
    assert set(FAULTS["vacancies"]) == set(tested.split())
