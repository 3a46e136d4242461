"""Signing in at `oidc-provider` of npm, which the OpenID Foundation has certified; nothing of it is ours."""

import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from aiohttp import ClientSession, CookieJar

from cli.processes.embedded_valkey import free_port
from core.model.people import User
from core.redis.store import Store
from delivery.http.context import ApiServices
from providers.oidc.settings import OidcProvider, RoleRule
from providers.oidc.sign_in import OidcSignIn
from tests.delivery.conftest import Api
from tests.support.paths import ROOT
from tests.support.waiting import until

HERE = ROOT / "tests" / "providers" / "oidc" / "node"
PUBLIC = "http://ada.example"
DONE = "/#/sign-in?done=1"
CALLBACK = "/v1/sessions/providers/university/callback"


@pytest.fixture(scope="session")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the provider and its libraries."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("no Node.js with npm on this machine")
    directory = tmp_path_factory.mktemp("npm") / "oidc"
    shutil.copytree(HERE, directory, ignore=shutil.ignore_patterns("node_modules"))
    npm = ["npm", "ci", "--prefer-offline", "--fetch-retries=5", "--no-audit", "--no-fund", "--ignore-scripts"]
    result = subprocess.run(npm, cwd=directory, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return directory


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def services(services: ApiServices, store: Store, port: int, monkeypatch: pytest.MonkeyPatch) -> ApiServices:
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")
    rule = RoleRule("groups", {"teachers": "trainer"})
    university = OidcProvider(f"http://127.0.0.1:{port}", "ada", "s:e c+r%et", roles=rule)
    return replace(services, identity_providers=OidcSignIn(store, {"university": university}, PUBLIC))


@pytest.fixture
def provider(modules: Path, api: Api, port: int) -> Iterator[str]:
    """Its address."""
    logout = f"{api.url}/v1/sessions/providers/university/logout"
    words = ["node", "provider.mjs", str(port), PUBLIC + CALLBACK, logout]
    with subprocess.Popen(words, cwd=modules, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("listens"):
                break
        yield f"http://127.0.0.1:{port}"
        process.kill()


@pytest.fixture
async def browser() -> AsyncIterator[ClientSession]:
    async with ClientSession(cookie_jar=CookieJar(unsafe=True), headers={"Accept": "text/html"}) as session:
        yield session


async def follow(api: Api, browser: ClientSession, address: str, form: dict[str, str] | None = None) -> tuple[str, str]:
    """Follow redirects to a page; return its address and text. The public address of Ada is that of the test."""
    while True:
        parts = urlsplit(address)
        here = address.replace(PUBLIC, api.url, 1) if address.startswith(PUBLIC) else address
        method = "POST" if form else "GET"
        async with browser.request(method, here, data=form, allow_redirects=False) as answer:
            text = await answer.text()
            assert answer.status < 400, text
            if answer.status not in (302, 303) or parts.fragment:
                return address, text
            address, form = urljoin(here, answer.headers["Location"]), None
            if "#" in address:
                return address, text


async def signs_in(api: Api, browser: ClientSession, person: str) -> str:
    """A person types its name at the provider and agrees; returns where Ada leads in the end."""
    address, page = await follow(api, browser, f"{api.url}/v1/sessions/providers/university")
    forms: list[dict[str, str]] = [{"prompt": "login", "login": person, "password": "x"}, {"prompt": "consent"}]
    for form in forms:
        action = re.search(r'action="([^"]+)"', page)
        assert action, page
        address, page = await follow(api, browser, urljoin(address, action[1]), form)
    return address.removeprefix(api.url)


async def test_a_person_of_a_certified_provider_signs_in_and_its_logout_ends_the_session(
    api: Api, provider: str, browser: ClientSession, services: ApiServices
) -> None:
    await services.core.directory.users.create("default", User(7, "Anna", "anna@example.org"))
    assert await signs_in(api, browser, "anna") == DONE
    me: Any = None
    async with browser.get(f"{api.url}/v1/me") as answer:
        me = await answer.json()
    assert (me["id"], me["role"]) == (7, "trainer")

    _, page = await follow(api, browser, f"{api.url}/v1/sessions/providers/university/sign-out")
    xsrf = re.search(r'name="xsrf" value="(\w+)"', page)
    assert xsrf, page
    await follow(api, browser, f"{provider}/session/end/confirm", {"xsrf": xsrf[1], "logout": "yes"})

    async def is_signed_out() -> bool:
        async with browser.get(f"{api.url}/v1/me") as answer:
            return answer.status == 401

    await until(is_signed_out)
    assert await signs_in(api, browser, "boris") == "/#/sign-in?bind=1", "its address is not verified"
