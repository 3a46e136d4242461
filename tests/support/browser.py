"""A headless Chromium for tests of web pages, driven over the DevTools protocol."""

import asyncio
import itertools
import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, ClientWebSocketResponse

from tests.support.waiting import until

OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-port=0")
PATIENCE = 30.0
"""Seconds for what a page shows: Chromium is slow on a busy machine."""


class Browser:
    """One tab."""

    def __init__(self, socket: ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)

    async def open(self, url: str, language: str) -> None:
        """Loads the page as a person whose browser is set to this language."""
        await self._call("Network.setUserAgentOverride", userAgent="test", acceptLanguage=language)
        await self._call("Page.navigate", url=url)
        await self.wait_for("document.readyState === 'complete' && location.href !== 'about:blank'")

    async def run(self, script: str) -> Any:
        """The value of a JavaScript expression."""
        answer = await self._call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def wait_for(self, script: str) -> Any:
        """The value of the expression as soon as it is true."""

        async def is_true() -> Any:
            return await self.run(script)

        return await until(is_true, within=PATIENCE, every=0.05)

    async def fill(self, **fields: str) -> None:
        """Writes into the fields with these ids."""
        for name, text in fields.items():
            await self.run(f"document.getElementById({json.dumps(name)}).value = {json.dumps(text)}")

    async def type(self, selector: str, text: str) -> None:
        """Writes with the keyboard into a field, and presses Enter."""
        await self.run(f"document.querySelector({json.dumps(selector)}).focus()")
        await self._call("Input.insertText", text=text)
        await self.press("Enter")

    async def press(self, key: str) -> None:
        """Presses a key, such as Enter, which reaches the element that has the focus."""
        text = {"Enter": "\r", " ": " "}.get(key, "")
        code = {"Enter": 13, "Tab": 9, " ": 32}[key]
        for kind in ("keyDown", "keyUp"):
            await self._call("Input.dispatchKeyEvent", type=kind, key=key, text=text, windowsVirtualKeyCode=code)

    async def click(self, selector: str) -> None:
        await self.run(f"document.querySelector({json.dumps(selector)}).click()")

    async def text(self, selector: str) -> str:
        """The text that a person sees there; empty if it is hidden."""
        element = f"document.querySelector({json.dumps(selector)})"
        return str(await self.run(f"{element}.checkVisibility() ? {element}.innerText : ''"))

    async def _call(self, method: str, **parameters: Any) -> Any:
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        async for message in self._socket:
            answer = json.loads(message.data)
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]
        raise AssertionError("the browser has ended")


@pytest.fixture
async def browser(tmp_path: Path) -> AsyncIterator[Browser]:
    """A browser without history, cookies and settings."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("needs the package chromium: chromium not found")
    profile, quiet = tmp_path / "chromium", asyncio.subprocess.DEVNULL
    command = [program, *OPTIONS, f"--user-data-dir={profile}", "about:blank"]
    process = await asyncio.create_subprocess_exec(*command, stdout=quiet, stderr=quiet)
    try:
        port_file = profile / "DevToolsActivePort"
        port = await until(lambda: port_file.exists() and port_file.read_text().split("\n")[0], within=PATIENCE)
        async with ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json/list") as response:
                target = next(one for one in await response.json() if one["type"] == "page")
            async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                yield Browser(socket)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
