"""The plugin and the scenario of docs/plugins.md work together as they are written there."""

import re
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.scenarios.execution.conftest import Installation, bare, installation
from tests.support.paths import ROOT

__all__ = ["bare", "installation"]

GUIDE = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    """The first block of the guide in this language."""
    found = re.search(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    assert found is not None
    return found[1]


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
