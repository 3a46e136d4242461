"""A headless Chromium for tests of web pages, driven over the DevTools protocol.

It starts once for a pytest worker, which takes seconds. Each test has a tab of its own in it, and begins without
cookies, stored data and cache.
"""

import base64
import itertools
import json
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from tests.support.waiting import await_sync, until

OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-port=0",
    # One process for each tab, in place of three: its first page, its site and a spare one.
    "--disable-features=SpareRendererForSitePerProcess", "--disable-site-isolation-trials",
    # The tabs of all tests share one process: starting one takes half the time of a test.
    "--renderer-process-limit=1",
)  # fmt: skip
PATIENCE = 60.0
"""Seconds for what a page shows: Chromium is slow on a busy machine."""


class DevTools:
    """One connection: to Chromium itself, or to one of its tabs."""

    def __init__(self, session: ClientSession, address: str) -> None:
        self._connecting = session.ws_connect(address, max_msg_size=0)
        self._numbers = itertools.count(1)
        self.events: list[dict[str, Any]] = []  # what came without being asked for

    async def __aenter__(self) -> "DevTools":
        self._socket = await self._connecting.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._connecting.__aexit__(*error)

    async def call(self, method: str, **parameters: Any) -> Any:
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        async for message in self._socket:
            answer = json.loads(message.data)
            if "method" in answer:
                self.events.append(answer)
            if answer.get("id") == number:
                if answer.get("error", {}).get("message") == "Inspected target navigated or closed":
                    raise LeftPage(method)
                assert "error" not in answer, answer
                return answer["result"]
        raise AssertionError("the browser has ended")


class LeftPage(AssertionError):
    """The page was left while it was asked."""


class Browser:
    """One tab."""

    def __init__(self, tab: DevTools) -> None:
        self._call, self._events = tab.call, tab.events

    async def watch(self) -> None:
        """Begins to note what goes wrong on the pages, for `faults`."""
        for domain in ("Runtime", "Log", "Network", "Page"):
            await self._call(f"{domain}.enable")

    async def faults(self) -> list[str]:
        """Return exceptions, console errors, violations of the policy and files that are missing, since `watch`.

        A refusal of the API is none: the page says it to the person.
        """
        await self.run("1")  # what was sent before has arrived with its answer
        return [text for event in self._events if (text := fault_of(event["method"], event["params"]))]

    async def requested(self) -> list[str]:
        """Return the addresses that the page has asked for since `watch`, in order."""
        await self.run("1")
        sent = [event["params"]["request"] for event in self._events if event["method"] == "Network.requestWillBeSent"]
        return [one["url"] for one in sent if not one["url"].startswith("data:")]

    async def open(self, url: str, language: str) -> None:
        """Loads the page as a person whose browser is set to this language."""
        await self._call("Network.setUserAgentOverride", userAgent="test", acceptLanguage=language)
        await self._call("Page.navigate", url=url)
        await self.wait_for("document.readyState === 'complete' && location.href !== 'about:blank'")

    async def run(self, script: str) -> Any:
        """Return the value of a JavaScript expression."""
        answer = await self._call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def wait_for(self, script: str) -> Any:
        """Return the value of the expression as soon as it is true, also on the next page if this one is left."""

        async def is_true() -> Any:
            with suppress(LeftPage):
                return await self.run(script)

        return await until(is_true, within=PATIENCE, every=0.05)

    async def fill(self, **fields: str) -> None:
        """Writes into the fields with these ids."""
        for name, text in fields.items():
            await self.run(f"document.getElementById({json.dumps(name)}).value = {json.dumps(text)}")

    async def show(self, width: int, height: int, theme: str = "light") -> None:
        """Gives the window a size, and the system a theme: "light" or "dark"."""
        is_phone = width < 500
        await self._call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=is_phone
        )
        features = [
            {"name": "prefers-color-scheme", "value": theme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        await self._call("Emulation.setEmulatedMedia", features=features)

    async def show_as_printed(self) -> None:
        """Shows the page as it would be printed."""
        await self._call("Emulation.setEmulatedMedia", media="print")

    async def set_cookie(self, url: str, name: str, value: str) -> None:
        await self._call("Network.setCookie", url=url, name=name, value=value, httpOnly=True, sameSite="Strict")

    async def cookies(self) -> list[dict[str, Any]]:
        """Return the cookies of the page that is shown."""
        return list((await self._call("Network.getCookies"))["cookies"])

    async def allow_notifications(self, origin: str) -> None:
        """Lets pages of this origin show notifications, as a person does who is asked."""
        await self._call("Browser.grantPermissions", origin=origin, permissions=["notifications"])

    async def push(self, origin: str, data: object) -> None:
        """Hands a message to the only service worker, as the push service of Chromium's maker does."""
        await self._call("ServiceWorker.enable")

        async def registered() -> str:
            await self.run("1")
            found = [
                one["params"] for one in self._events if one["method"] == "ServiceWorker.workerRegistrationUpdated"
            ]
            ids = [one["registrationId"] for params in found for one in params["registrations"] if not one["isDeleted"]]
            return ids[-1] if ids else ""

        place = {"origin": origin, "registrationId": await until(registered)}
        await self._call("ServiceWorker.deliverPushMessage", data=json.dumps(data), **place)

    async def screenshot(self) -> bytes:
        """Return what the window shows, as PNG: Chromium needs eight times as long for a WebP."""
        shown = await self._call("Page.captureScreenshot", format="png", optimizeForSpeed=True)
        return base64.b64decode(shown["data"])

    async def click_at(self, x: float, y: float) -> None:
        """Moves the mouse there and presses its button."""
        await self.hover_at(x, y)
        for kind in ("mousePressed", "mouseReleased"):
            await self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def hover_at(self, x: float, y: float) -> None:
        await self._call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    async def choose_files(self, selector: str, *files: Path) -> None:
        """Chooses files of this machine in a field, as its dialog does."""
        field = await self._call("Runtime.evaluate", expression=f"document.querySelector({json.dumps(selector)})")
        names = [str(file) for file in files]
        await self._call("DOM.setFileInputFiles", files=names, objectId=field["result"]["objectId"])

    async def block(self, *addresses: str) -> None:
        """Lets requests to these addresses fail; * stands for anything."""
        await self._call("Network.setBlockedURLs", urls=addresses)

    async def insert(self, text: str) -> None:
        """Writes into what has the focus."""
        await self._call("Input.insertText", text=text)

    async def type(self, selector: str, text: str) -> None:
        """Writes with the keyboard into a field, and presses Enter."""
        await self.run(f"document.querySelector({json.dumps(selector)}).focus()")
        await self._call("Input.insertText", text=text)
        await self.press("Enter")

    async def press(self, key: str) -> None:
        """Presses a key, such as Enter, which reaches the element that has the focus."""
        text = {"Enter": "\r", " ": " "}.get(key, "")
        code = {"Enter": 13, "Tab": 9, " ": 32, "Escape": 27}[key]
        for kind in ("keyDown", "keyUp"):
            await self._call("Input.dispatchKeyEvent", type=kind, key=key, text=text, windowsVirtualKeyCode=code)

    async def click(self, selector: str) -> None:
        await self.run(f"document.querySelector({json.dumps(selector)}).click()")

    async def text(self, selector: str) -> str:
        """Return the text that a person sees there; empty if it is hidden."""
        element = f"document.querySelector({json.dumps(selector)})"
        return str(await self.run(f"{element}.checkVisibility() ? {element}.innerText : ''"))


def fault_of(method: str, params: dict[str, Any]) -> str | None:
    """Return what an event of DevTools says went wrong; None if nothing."""
    if method == "Runtime.exceptionThrown":
        details = params["exceptionDetails"]
        return str(details.get("exception", {}).get("description") or details["text"])
    if method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert"):
        return " ".join(str(one.get("value", one.get("description"))) for one in params["args"])
    if method == "Log.entryAdded" and params["entry"]["level"] == "error":
        entry = params["entry"]
        is_refusal = entry["source"] == "network" and "/v1/" in entry.get("url", "")
        return None if is_refusal else f"{entry['text']} {entry.get('url', '')}"
    return None


class Chromium:
    """The process. `address`: of its DevTools, as host and port."""

    def __init__(self, profile: Path, program: str) -> None:
        quiet, own = subprocess.DEVNULL, f"--user-data-dir={profile}"
        self._process = subprocess.Popen(
            [program, *OPTIONS, own, "about:blank"], stdout=quiet, stderr=quiet, start_new_session=True
        )
        port_file = profile / "DevToolsActivePort"
        await_sync(lambda: port_file.exists() and "\n" in port_file.read_text(), "Chromium", PATIENCE)
        port, self._path = port_file.read_text().split("\n")[:2]
        self.address = f"ws://127.0.0.1:{port}"

    @asynccontextmanager
    async def tab(self) -> AsyncIterator[Browser]:
        """Open a tab without history, cookies and stored data. One tab at a time: tabs share their cookies."""
        async with ClientSession() as session, DevTools(session, self.address + self._path) as chromium:
            target = (await chromium.call("Target.createTarget", url="about:blank"))["targetId"]
            async with DevTools(session, f"{self.address}/devtools/page/{target}") as tab:
                for kind in ("Cookies", "Cache"):
                    await tab.call(f"Network.clearBrowser{kind}")
                yield Browser(tab)
                origin = (await tab.call("Runtime.evaluate", expression="location.origin"))["result"]["value"]
                await tab.call("Storage.clearDataForOrigin", origin=origin, storageTypes="all")
            await chromium.call("Target.closeTarget", targetId=target)

    @asynccontextmanager
    async def worker(self, address: str) -> AsyncIterator[Callable[[str], Awaitable[Any]]]:
        """Yield what runs a JavaScript expression in the service worker of this address."""
        async with ClientSession() as session, DevTools(session, self.address + self._path) as chromium:
            targets = (await chromium.call("Target.getTargets"))["targetInfos"]
            (target,) = [
                one["targetId"] for one in targets if one["type"] == "service_worker" and one["url"] == address
            ]
            async with DevTools(session, f"{self.address}/devtools/page/{target}") as worker:
                yield Browser(worker).run

    def stop(self) -> None:
        """End all its processes: a script of Debian starts the program and does not pass a signal on."""
        os.killpg(self._process.pid, signal.SIGTERM)
        self._process.wait(timeout=PATIENCE)


def running(profile: Path, package: str) -> Iterator[Chromium]:
    """Start a Chromium; end it afterwards. The program has the name of its package in Debian."""
    program = shutil.which(package)
    if program is None:
        pytest.skip(f"needs the package {package}: {package} not found")
    started = Chromium(profile, program)
    yield started
    started.stop()


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """The Chromium of this pytest worker, without a window system: a tab takes half the processor time of the whole
    Chromium, and waiting for the next one nearly none.
    """
    yield from running(tmp_path_factory.mktemp("chromium"), "chromium-headless-shell")


@pytest.fixture
async def browser(chromium: Chromium) -> AsyncIterator[Browser]:
    """Open a tab without history, cookies and settings."""
    async with chromium.tab() as opened:
        yield opened
