"""Signing in over HTTP, with a browser: the page that asks, the callback, the jobs that waited for it, signing out."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from aiohttp import ClientSession, CookieJar, web

from core.jobs import Actor, JobId, JobState, Schedule
from core.model.people import User
from core.redis.store import Store
from delivery.http.context import ApiServices
from providers.sign_in import Service, SignIn, Tokens, Vault
from providers.sign_in.services import checked
from providers.sign_in.stored import new_key
from tests.delivery.conftest import Api
from tests.providers.sign_in.browser import confirmed, form_of
from tests.providers.sign_in.oauth_server import SECRET, OAuthServer
from tests.support.serving import serving

ANNA = {"service": "vacancies", "user": 42}
JOB = JobId("default", "hunt", "42")
AS_BROWSER = {"Accept": "text/html,*/*"}


@pytest.fixture
async def oauth() -> AsyncIterator[OAuthServer]:
    async with serving(OAuthServer()) as server:
        yield server


@pytest.fixture
def services(services: ApiServices, store: Store, oauth: OAuthServer) -> ApiServices:
    addresses = f"{oauth.url}/authorize", f"{oauth.url}/token"
    known = checked({"vacancies": Service(*addresses, "ada", SECRET, revoke_url=f"{oauth.url}/revoke")})
    vault = Vault([new_key()])
    sign_in = SignIn(store, vault, Tokens(store, vault, known), known, "http://ada.example")
    return replace(services, sign_in=sign_in)


@pytest.fixture
async def browser() -> AsyncIterator[ClientSession]:
    async with new_browser() as session:
        yield session


def new_browser() -> ClientSession:
    return ClientSession(cookie_jar=CookieJar(unsafe=True), headers=AS_BROWSER)


def here(api: Api, address: str) -> str:
    """The address at the API of the test, whose public address is another one."""
    found = urlsplit(address)
    return f"{api.url}{found.path}" + (f"?{found.query}" if found.query else "")


async def begun(api: Api, user: int = 42) -> str:
    return here(api, (await api.call("POST", "/v1/sign-in", {**ANNA, "user": user})).json["url"])


async def callback(api: Api, browser: ClientSession, address: str) -> str:
    """The person confirms the page and agrees at the service; returns where the service leads."""
    at_service = await confirmed(browser, address)
    async with browser.get(at_service, allow_redirects=False) as answer:
        return here(api, answer.headers["Location"])


async def opened(browser: ClientSession, address: str) -> tuple[int, str]:
    async with browser.get(address) as page:
        assert page.content_type == "text/html"
        return page.status, await page.text()


async def is_signed_in(api: Api, user: int = 42) -> bool:
    return bool((await api.call("GET", f"/v1/sign-in/users/{user}")).json["services"])


async def test_after_a_sign_in_the_jobs_that_waited_for_it_go_on(api: Api, browser: ClientSession) -> None:
    jobs = api.services.core.jobs
    await jobs.kinds.publish({"hunt": Schedule(timedelta(hours=1)), "other": Schedule(timedelta(hours=1))})
    for kind, by in (("hunt", Actor.SIGN_IN), ("other", Actor.USER)):
        await jobs.start(JobId("default", kind, "42"))
        await jobs.pause(JobId("default", kind, "42"), by)
    where = await callback(api, browser, await begun(api))
    status, text = await opened(browser, where)
    assert (status, "You are signed in" in text) == (200, True)
    assert (await jobs.find(JOB)).record.state is JobState.RUNNING
    assert (await jobs.find(JobId("default", "other", "42"))).record.paused_by is Actor.USER


async def test_the_page_names_the_person_and_its_jobs_before_it_connects(api: Api, browser: ClientSession) -> None:
    await api.services.core.directory.users.create("default", User(42, "Anna <Petrova>"))
    await api.services.core.jobs.kinds.publish({"hunt": Schedule(timedelta(hours=1))})
    await api.services.core.jobs.start(JOB)
    status, text = await opened(browser, await begun(api))
    assert status == 200
    for wanted in ("Anna &lt;Petrova&gt; (42)", "vacancies", "hunt.42", '<form method="post">'):
        assert wanted in text
    assert not await is_signed_in(api)


async def test_a_page_that_was_opened_by_a_program_can_still_be_confirmed(api: Api, browser: ClientSession) -> None:
    """A messenger opens an address to show what is behind it."""
    address = await begun(api)
    async with new_browser() as messenger:
        await opened(messenger, address)
    await opened(browser, await callback(api, browser, address))
    assert await is_signed_in(api)


async def test_a_form_of_another_site_connects_nothing(api: Api, browser: ClientSession) -> None:
    """The attacker knows the address, and what the page has for the attacker's own browser; the victim's browser sends
    its own cookie, or none, because the form comes from another site.
    """
    address = await begun(api)
    async with new_browser() as attacker:
        form = await form_of(attacker, address)
    await opened(browser, await begun(api, user=7))
    for victim, sent in ((new_browser(), form), (new_browser(), {}), (browser, form), (browser, {})):
        async with victim.post(address, data=sent, allow_redirects=False) as answer:
            assert answer.status == 403
            assert "SIGN_IN_NOT_CONFIRMED" in await answer.text()
        if victim is not browser:
            await victim.close()
    async with browser.post(address, data=await form_of(browser, address), allow_redirects=False) as answer:
        assert answer.status == 303, "the address was not used up by that"


async def test_the_account_of_another_browser_is_not_connected(api: Api, browser: ClientSession) -> None:
    """The attacker confirms its own page, and leads the victim to the service, or to the callback."""
    address = await begun(api)
    async with new_browser() as attacker:
        at_service = await confirmed(attacker, address)
        async with browser.get(at_service, allow_redirects=False) as answer:
            where = here(api, answer.headers["Location"])
        status, text = await opened(browser, where)
        assert (status, "SIGN_IN_OTHER_BROWSER" in text) == (403, True)
        assert not await is_signed_in(api)


async def test_the_cookie_is_not_for_scripts_and_other_sites(api: Api, browser: ClientSession) -> None:
    async with browser.get(await begun(api)) as page:
        cookie = page.headers["Set-Cookie"]
        assert all(part in cookie for part in ("HttpOnly", "SameSite=Lax", "Path=/v1/sign-in"))
        assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]
        assert page.headers["Cache-Control"] == "no-store"
    async with browser.get(await begun(api)) as page:
        assert page.headers["Set-Cookie"] == cookie, "two sign-ins may be open in one browser"


async def test_a_callback_is_refused_with_a_wrong_state_and_the_second_time(api: Api, browser: ClientSession) -> None:
    where = await callback(api, browser, await begun(api))
    for address, status in ((where.replace("state=", "state=x"), 422), (where, 200), (where, 422)):
        assert (await opened(browser, address))[0] == status


async def test_a_refusal_is_a_page_for_browsers_and_a_problem_for_programs(api: Api, browser: ClientSession) -> None:
    stolen = f"{api.url}/v1/sign-in/callback?code=abc&state=stolen"
    status, text = await opened(browser, stolen)
    assert (status, "You are not signed in." in text, "Вход не выполнен." in text) == (422, True, True)
    assert (await api.call("GET", "/v1/sign-in/callback?code=abc&state=stolen")).code == "SIGN_IN_UNKNOWN"
    assert (await api.call("GET", "/v1/sign-in/link/unknown")).code == "SIGN_IN_UNKNOWN"
    assert (await api.call("POST", "/v1/sign-in/link/unknown")).code == "SIGN_IN_NOT_CONFIRMED"


async def test_an_odd_answer_of_the_service_is_a_page_and_no_fault_of_the_api(
    api: Api, browser: ClientSession, oauth: OAuthServer
) -> None:
    oauth.odd = lambda: web.Response(text="<html>Maintenance</html>", content_type="text/html")
    status, text = await opened(browser, await callback(api, browser, await begun(api)))
    assert (status, "SIGN_IN_FAILED" in text) == (502, True)


async def test_a_sign_in_is_complete_also_if_a_job_cannot_go_on(api: Api, browser: ClientSession) -> None:
    jobs = api.services.core.jobs
    await jobs.kinds.publish({"hunt": Schedule(timedelta(hours=1))})
    await jobs.start(JOB)
    await jobs.pause(JOB, Actor.SIGN_IN)
    where = await callback(api, browser, await begun(api))
    await jobs.pause(JOB, Actor.ADMIN, "complaints")
    assert (await opened(browser, where))[0] == 200
    assert (await jobs.find(JOB)).record.paused_by is Actor.ADMIN


@pytest.mark.parametrize("status", [200, 503])
async def test_a_user_signs_out_here_and_at_the_service(
    api: Api, browser: ClientSession, oauth: OAuthServer, status: int
) -> None:
    await opened(browser, await callback(api, browser, await begun(api)))
    assert await is_signed_in(api)
    oauth.status = status
    assert (await api.call("DELETE", "/v1/sign-in/users/42/vacancies")).status == 204
    assert not await is_signed_in(api)
    assert len(oauth.revoked) == (status == 200)
    assert (await api.call("DELETE", "/v1/sign-in/users/42/vacancies")).code == "NOT_SIGNED_IN"


async def test_a_person_that_is_deleted_is_signed_out_at_the_service(
    api: Api, browser: ClientSession, oauth: OAuthServer
) -> None:
    await api.services.core.directory.users.create("default", User(42, "Anna"))
    await opened(browser, await callback(api, browser, await begun(api)))
    assert (await api.call("DELETE", "/v1/users/42")).status == 204
    assert len(oauth.revoked) == 1


async def test_an_unknown_service_is_refused(api: Api) -> None:
    refused = await api.call("POST", "/v1/sign-in", {"service": "nothing", "user": 1})
    assert (refused.status, refused.json["code"]) == (422, "SERVICE_UNKNOWN")


class TestWithoutServices:
    @pytest.fixture
    def services(self, services: ApiServices) -> ApiServices:
        return replace(services, sign_in=None)

    async def test_a_sign_in_is_refused(self, api: Api) -> None:
        assert (await api.call("POST", "/v1/sign-in", ANNA)).code == "SIGN_IN_NOT_SET_UP"
        assert (await api.call("GET", "/v1/sign-in/callback?state=x")).code == "SIGN_IN_NOT_SET_UP"
        assert (await api.call("GET", "/v1/sign-in/link/x")).code == "SIGN_IN_NOT_SET_UP"
