"""The receiver in docs/webhooks.md works as it stands there."""

import re
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from core.webhooks.webhook import EventType, new_secret
from tests.core.webhooks.conftest import BOTH, Installation
from tests.support.paths import ROOT
from tests.support.stack import people
from tests.support.waiting import until

PAGE = ROOT / "docs" / "webhooks.md"


async def test_the_receiver_of_the_guide_verifies_and_ignores_repeats(
    installation: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    app: web.Application = names["app"]
    async with TestServer(app) as server:
        webhook = await installation.webhooks.create("university", str(server.make_url("/hook")), BOTH)
        names["SECRET"] = new_secret()
        refused = await installation.webhooks.test("university", webhook.id)
        assert refused.status == 401
        names["SECRET"] = webhook.secret
        assert (await installation.webhooks.test("university", webhook.id)).status == 204
        installation.start()
        await installation.courier()
        await installation.stack.deliver(*people(2))
        await until(lambda: len(names["seen"]) == 4)
    printed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert sorted(printed) == ["finished", "outcome", "outcome", "test"]


def test_the_guide_shows_each_event() -> None:
    assert set(re.findall(r'^\{"type": "(\w+)"', PAGE.read_text(), re.MULTILINE)) == set(EventType)
