"""A person plays with the example bot on the sandbox's inbox page, in a browser, against real processes."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cli.processes.embedded_valkey import free_port
from examples import SCHOOL_BOT
from sandbox.sandbox import Sandbox
from tests.sandbox.page_person import PersonAtThePage
from tests.support.browser import Browser
from tests.support.servers import Server
from tests.system.crash.api_client import KEY
from tests.system.crash.installation import Installation

LOG = "#chat-telegram-bot .log"
PROCESSES = (("serve",), ("scenarios",), ("bot", "telegram"), ("courier", "telegram-bot"))


@pytest.fixture
async def installation(own_server: Server, tmp_path: Path) -> AsyncIterator[Installation]:
    sandbox = Sandbox(tmp_path / "sandbox")
    await sandbox.start()
    opened = await Installation.open(own_server, sandbox, tmp_path)
    settings = {"ADA_HTTP": f"127.0.0.1:{free_port()}", "ADA_API_KEY": KEY, "ADA_SCENARIOS": str(SCHOOL_BOT)}
    settings["ADA_QUIET_HOURS"] = "off"  # the test may run at night
    started = [opened.start(*arguments, **settings) for arguments in PROCESSES]
    await asyncio.gather(*(process.ready() for process in started))
    administrator = {"id": 1, "name": "Anna", "contacts": {"telegram-bot": "100001"}}
    assert (await opened.client_at(f"http://{settings['ADA_HTTP']}").request("POST", "/v1/users", administrator))[
        0
    ] == 201
    yield opened
    await opened.close()
    await sandbox.stop()


async def test_a_person_fills_in_the_form_and_gets_a_voice_message(
    installation: Installation, browser: Browser
) -> None:
    page = PersonAtThePage(installation.sandbox, browser)
    await page.open()
    await page.write("telegram-bot", "/start")
    await page.press("Join a club", LOG)
    await page.sees("Step 1 of 3", LOG)
    for written, answer in (
        ("A", "A name has 2 to 60 letters"),
        ("Anna Petrova", "Step 2 of 3"),
        ("+79991112233", "Step 3 of 3"),
    ):
        await page.write("telegram-bot", written)
        await page.sees(answer, LOG)
    await page.press("Chess")  # of the keyboard in place of the person's
    await page.sees("Thank you!", LOG)
    await page.sees("wants to join the club Chess", LOG)
    if shutil.which("espeak-ng") and shutil.which("ffmpeg"):
        await page.write("telegram-bot", "/say Good morning")
        await browser.wait_for(f"document.querySelector('{LOG} audio') !== null")
