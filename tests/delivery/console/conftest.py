"""One `./ada up` for all tests of the console, and a person with a browser in front of it."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from aiohttp import ClientSession

from cli.processes.embedded_valkey import running_url
from core.redis.store import Store
from tests.cli.installation import Installation
from tests.support.browser import Browser, Chromium, LeftPage
from tests.support.paths import ROOT
from tests.support.waiting import until

ARTEFACTS = Path(os.environ.get("ADA_ARTEFACTS", ROOT / "artefacts")) / "console"
"""Where the screenshots go; CI keeps them."""

SEEN = """(element) => element.checkVisibility({visibilityProperty: true}) && element.getClientRects().length > 0"""


@dataclass(frozen=True, slots=True)
class Running:
    """An installation that is up."""

    installation: Installation
    url: str
    key: str
    sandbox: str

    async def call(self, method: str, path: str, body: object = None) -> Any:
        """Return the JSON of a request with the first API key."""
        headers = {"Authorization": f"Bearer {self.key}"}
        async with ClientSession() as session:
            async with session.request(method, self.url + path, headers=headers, json=body) as response:
                assert response.status < 300, await response.text()
                return await response.json() if response.status != 204 else None


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The installation of this pytest worker."""
    installation = Installation(tmp_path_factory.mktemp("console"))
    installation.environment["ADA_WEBHOOK_ALLOW_PRIVATE"] = "on"
    installation.environment["ADA_STAFF_WRITES_TO_ALL"] = "default"
    installation.environment["ADA_SMS_PRICE"] = "4.20 ₽"
    try:
        facts = installation.up()
        key = (installation.directory / "data" / "api_key").read_text().strip()
        yield Running(installation, facts["api"], key, facts["inbox"])
    finally:
        installation.end()


@pytest.fixture(scope="session")
def session_cookie(running: Running) -> str:
    """The secret of a session with the first API key, so that only one test needs to fill in the form."""
    body = json.dumps({"key": running.key}).encode()
    request = Request(running.url + "/v1/sessions", body, {"Content-Type": "application/json"})
    with urlopen(request) as response:
        return SimpleCookie(response.headers["Set-Cookie"])["ada_session"].value


@pytest.fixture(scope="session")
def axe_source(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The code of axe-core, which finds barriers on a page."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("no Node.js with npm on this machine")
    directory = tmp_path_factory.mktemp("npm") / "axe"
    shutil.copytree(Path(__file__).parent / "axe", directory, ignore=shutil.ignore_patterns("node_modules"))
    npm = ["npm", "ci", "--prefer-offline", "--fetch-retries=5", "--no-audit", "--no-fund"]
    result = subprocess.run(npm, cwd=directory, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return (directory / "node_modules" / "axe-core" / "axe.min.js").read_text()


class Person:
    """Somebody who uses the console: sees texts, presses what has a name, writes into what has a label."""

    def __init__(self, browser: Browser, running: Running, cookie: str) -> None:
        self.browser, self.running, self._cookie = browser, running, cookie

    async def visit(
        self, page: str = "home", *, language: str = "en", width: int = 1280, height: int = 800, theme: str = "light"
    ) -> None:
        """Opens a page, signed in with the first API key."""
        await self.browser.set_cookie(self.running.url, "ada_session", self._cookie)
        await self.visit_signed_out(page, language=language, width=width, height=height, theme=theme)

    async def visit_signed_out(
        self, page: str = "home", *, language: str = "en", width: int = 1280, height: int = 800, theme: str = "light"
    ) -> None:
        await self.browser.show(width, height, theme)
        await self.browser.open("about:blank#", language)
        await self.browser.open(f"{self.running.url}/#/{page}", language)
        await self.settled()

    async def go(self, page: str) -> None:
        """Follows a link inside the console."""
        await self.browser.run(f"location.hash = {json.dumps('#/' + page)}")
        await self.settled()

    async def settled(self) -> None:
        """Waits until a page with its heading is there and nothing is being loaded."""
        await self.browser.wait_for("document.querySelector('#content h1') && !document.querySelector('.loading')")

    async def sees(self, text: str) -> None:
        """Waits until this text can be read; scrolls to a row with it, which is laid out when it comes into view."""
        has_text, row = f"innerText.includes({json.dumps(text)})", f"textContent.includes({json.dumps(text)})"
        scrolls = f"[...document.querySelectorAll('.rows .row')].find((one) => one.{row})?.scrollIntoView()"
        await self.browser.wait_for(f"document.body?.{has_text} || void {scrolls}")

    async def sees_no(self, text: str) -> None:
        """Waits until this text is gone."""
        await self.browser.wait_for(f"document.body && !document.body.innerText.includes({json.dumps(text)})")

    async def presses(self, name: str) -> None:
        """Clicks with the mouse on the visible button, link or summary with this text, or the choice with this name.

        Who misses it, because the page was laid out anew at this moment, presses again.
        """
        pressable, said = "button, a, summary, label.check", "(one.querySelector('span[dir]') ?? one).innerText.trim()"
        element = f"[...document.querySelectorAll('{pressable}')].filter({SEEN})"
        element += f".find((one) => {said} === {json.dumps(name)})"
        note = f"({{target}}) => {{ const one = target.closest('{pressable}'); "
        note += f"window.hit = Boolean(one) && {said} === {json.dumps(name)} }}"

        async def is_hit() -> bool:
            x, y = await self.middle_of(element)
            await self.browser.run(
                f"window.hit = null; window.addEventListener('click', {note}, {{capture: true, once: true}})"
            )
            await self.browser.click_at(x, y)
            try:
                return await self.browser.run("window.hit") is not False
            except LeftPage:
                return True

        await until(is_hit)

    async def writes(self, label: str, text: str) -> None:
        """Replaces what is in the field with this label."""
        await self._focus(label)
        await self.browser.run("document.activeElement.select?.()")
        await self.browser.insert(text)

    async def confirms(self) -> None:
        """Presses the button of the dialog, as soon as there is one."""
        await self.browser.wait_for("Boolean(document.querySelector('dialog[open] form'))")
        await self.browser.run("document.querySelector('dialog[open] form').requestSubmit()")

    async def chooses(self, label: str, value: str) -> None:
        """Chooses a value of a list."""
        script = "(one) => { one.value = %s; one.dispatchEvent(new Event('change', {bubbles: true})) }"
        await self.browser.run(f"({script % json.dumps(value)})({self._control(label)})")

    async def _focus(self, label: str) -> None:
        await self.browser.wait_for(f"Boolean({self._control(label)})")
        await self.browser.run(f"{self._control(label)}.focus()")

    @staticmethod
    def _control(label: str) -> str:
        labels = "[...(document.querySelector('dialog[open]') || document).querySelectorAll('label')]"
        return f"{labels}.find((one) => one.innerText.trim().startsWith({json.dumps(label)}))?.control"

    async def middle_of(self, element: str) -> tuple[float, float]:
        """The middle of an element, as soon as it is there."""
        await self.browser.wait_for(f"Boolean({element})")
        middle = "(one) => { one.scrollIntoView({block: 'nearest'}); const box = one.getBoundingClientRect(); "
        x, y = await self.browser.run(
            f"({middle} return [box.x + box.width / 2, box.y + box.height / 2] }})({element})"
        )
        return x, y

    async def mailed_code(self, email: str) -> str:
        """The code of the newest mail to this address, as soon as it has come."""

        async def newest() -> str:
            async with ClientSession() as session:
                query = {"channel": "email", "address": email}
                async with session.get(self.running.sandbox.rstrip("/") + "/inbox.json", params=query) as response:
                    mails = (await response.json())["messages"]
            codes = [found[1] for mail in mails if (found := re.match(r"(\w+)", mail["subject"]))]
            return codes[-1] if codes else ""

        return str(await until(newest, every=0.1))

    async def barriers(self, axe_source: str) -> list[str]:
        """What axe finds: the rule and the elements that break it."""
        if not await self.browser.run("Boolean(window.axe)"):
            await self.browser.run(axe_source + "; 1")
        tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
        script = f"axe.run(document, {{runOnly: {json.dumps(tags)}, resultTypes: ['violations']}})"
        found = "(one) => one.nodes.map((node) => `${one.id}: ${node.html} ${node.failureSummary}`)"
        return list(await self.browser.run(f"{script}.then((result) => result.violations.flatMap({found}))"))

    async def has_no_barrier_on_a_phone(self, axe_source: str, page: str) -> None:
        """Shows the page as a phone with Russian does, and leaves a picture of it."""
        where = await self.browser.run("location.hash.slice(2)")
        await self.visit(where, language="ru", width=390)
        assert await self.barriers(axe_source) == []
        assert await self.sideways() <= 0
        await self.keeps_picture(f"{page}-filled-ru-390")

    async def sideways(self) -> int:
        """By how many pixels the page is wider than the window."""
        return int(await self.browser.run("document.documentElement.scrollWidth - innerWidth"))

    async def keeps_picture(self, name: str) -> None:
        """Writes a screenshot into the folder of artefacts."""
        ARTEFACTS.mkdir(parents=True, exist_ok=True)
        (ARTEFACTS / f"{name}.png").write_bytes(await self.browser.screenshot())


@pytest.fixture
async def person(chromium: Chromium, running: Running, session_cookie: str) -> AsyncIterator[Person]:
    """A person with a browser of their own. Errors in its console and violations of the policy fail the test."""
    async with chromium.tab() as browser:
        await browser.watch()
        one = Person(browser, running, session_cookie)
        yield one
        await one.keeps_picture("last-seen")
        assert await browser.faults() == []


@pytest.fixture
async def store(running: Running) -> AsyncIterator[Store]:
    """The store of the installation."""
    url = running_url(running.installation.directory / "data" / "valkey")
    assert url
    opened = await Store.open(url)
    yield opened
    await opened.close()
