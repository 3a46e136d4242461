"""The plugin and the scenario of docs/plugins.md work together as they are written there."""

import re
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from scenarios.check import check
from scenarios.loader import load
from scenarios.testing.bot_tests import run_tests
from tests.scenarios.bot_folder import BotFolder
from tests.scenarios.execution.conftest import Installation, bare, installation
from tests.support.paths import ROOT

__all__ = ["bare", "installation"]

GUIDE = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")


def block(language: str, number: int = 0) -> str:
    """A block of the guide in this language."""
    return str(re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)[number])


async def forecast(request: web.Request) -> web.Response:
    return web.Response(text=f"+5, rain over {request.query['town']}")


async def test_the_forecast_of_the_guide_stands_in_the_authors_text(installation: Installation) -> None:
    app = web.Application()
    app.router.add_get("/today", forecast)
    guide: dict[str, Any] = {}
    async with TestServer(app) as weather:
        address = str(weather.make_url(""))
        exec(block("python").replace("https://weather.example.org", address), guide)
        async with guide["PLUGIN"].open(None) as opened:
            installation.plugins = {"weather": opened}
            installation.types["forecast"] = guide["ACTION"]
            installation.write("scenarios/weather.yaml", block("yaml"))
            installation.write("triggers.yaml", 'text: {"*": weather.today}')
            await installation.start()
            await installation.play()
            assert installation.texts == ["Weather in Kazan: +5, rain over Kazan"]


async def test_the_file_of_the_guide_has_an_action(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slots.py").write_text(block("python", 1))
    monkeypatch.setenv("ADA_ACTIONS", str(tmp_path / "slots.py"))
    folder = BotFolder(tmp_path / "bot").write("scenarios/slots.yaml", block("yaml", 1))
    folder.write("triggers.yaml", 'text: {"*": slots.show}')
    folder.write("tests/t.yaml", 'free: {steps: [{user: Monday}, {bot: {contains: "• 15:00"}}]}')
    assert check(folder.folder).problems == ()
    assert [one.problem for one in (await run_tests(folder.folder, load(folder.folder).bot))[0]] == [""]
