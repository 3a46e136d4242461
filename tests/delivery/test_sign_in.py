"""Signing in over HTTP: the address, the callback, and the jobs that waited for it."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from aiohttp import ClientSession

from core.jobs import Actor, JobId, JobState, Schedule
from core.redis.store import Store
from core.sign_in import Service, SignIn, Tokens, Vault
from core.sign_in.services import checked
from core.sign_in.vault import new_key
from delivery.services import Services
from tests.delivery.conftest import Api
from tests.sign_in.oauth_server import SECRET, OAuthServer

ANNA = {"service": "vacancies", "user": 42}
JOB = JobId("default", "hunt", "42")


@pytest.fixture
async def oauth() -> AsyncIterator[OAuthServer]:
    server = OAuthServer()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
def services(services: Services, store: Store, oauth: OAuthServer) -> Services:
    known = checked({"vacancies": Service(f"{oauth.url}/authorize", f"{oauth.url}/token", "ada", SECRET)})
    vault = Vault([new_key()])
    sign_in = SignIn(store, vault, Tokens(store, vault, known), known, "https://ada.example")
    return replace(services, sign_in=sign_in)


async def callback(address: str) -> str:
    """The user agrees; the path and query to which the service leads."""
    async with ClientSession() as browser, browser.get(address, allow_redirects=False) as answer:
        found = urlsplit(answer.headers["Location"])
    return f"{found.path}?{found.query}"


@pytest.mark.row("U-21")
async def test_after_a_sign_in_the_jobs_that_waited_for_it_go_on(api: Api) -> None:
    jobs = api.services.jobs
    await jobs.kinds.publish({"hunt": Schedule(timedelta(hours=1)), "other": Schedule(timedelta(hours=1))})
    for kind, by in (("hunt", Actor.SIGN_IN), ("other", Actor.USER)):
        await jobs.start(JobId("default", kind, "42"))
        await jobs.pause(JobId("default", kind, "42"), by)
    begun = await api.call("POST", "/v1/sign-in", ANNA)
    assert begun.status == 201
    where = await callback(begun.json["url"])
    async with api.session.get(api.url + where) as page:
        assert page.status == 200
        assert "You are signed in" in await page.text()
    assert (await jobs.find(JOB)).record.state is JobState.RUNNING
    assert (await jobs.find(JobId("default", "other", "42"))).record.paused_by is Actor.USER


async def test_a_callback_is_refused_with_a_wrong_state_and_the_second_time(api: Api) -> None:
    where = await callback((await api.call("POST", "/v1/sign-in", ANNA)).json["url"])
    assert (await api.call("GET", where.replace("state=", "state=x"))).code == "SIGN_IN_UNKNOWN"
    assert (await api.call("GET", where)).status == 200
    assert (await api.call("GET", where)).code == "SIGN_IN_UNKNOWN"


async def test_a_browser_gets_a_page_for_a_callback_that_is_refused(api: Api) -> None:
    stolen = f"{api.url}/v1/sign-in/callback?code=abc&state=stolen"
    async with api.session.get(stolen, headers={"Accept": "text/html,*/*"}) as page:
        assert (page.status, page.content_type) == (422, "text/html")
        assert "You are not signed in." in await page.text()


async def test_an_unknown_service_is_refused(api: Api) -> None:
    refused = await api.call("POST", "/v1/sign-in", {"service": "nothing", "user": 1})
    assert (refused.status, refused.json["code"]) == (422, "SERVICE_UNKNOWN")


class TestWithoutServices:
    @pytest.fixture
    def services(self, services: Services) -> Services:
        return replace(services, sign_in=None)

    async def test_a_sign_in_is_refused(self, api: Api) -> None:
        assert (await api.call("POST", "/v1/sign-in", ANNA)).code == "SIGN_IN_NOT_SET_UP"
        assert (await api.call("GET", "/v1/sign-in/callback?state=x")).code == "SIGN_IN_NOT_SET_UP"
