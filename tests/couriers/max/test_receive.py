"""Buttons of a message in MAX change, and its files stay."""

from collections.abc import Sequence
from typing import Any

import pytest

from core.model.content import Button
from core.updates.bot_calls import ButtonChange
from couriers.max.client import MaxClient
from couriers.max.receive import MaxCalls

FILE = {"type": "image", "payload": {"token": "t1"}}


class RecordedClient(MaxClient):
    """MAX with one message, which has a file; the calls that change it are kept."""

    def __init__(self) -> None:
        super().__init__("secret")
        self.changes: list[tuple[str, Any]] = []

    async def call(
        self, method: str, path: str, query: Any = None, body: Any = None, wait: float = 0.0
    ) -> dict[str, Any]:
        if method == "GET":
            shown = {**FILE, "payload": {"token": "t1", "url": "https://max.example/1"}}
            return {"messages": [{"body": {"attachments": [shown, {"type": "inline_keyboard", "payload": {}}]}}]}
        self.changes.append((path, body))
        return {}


@pytest.mark.parametrize("press", ["", "p1"])
@pytest.mark.parametrize("rows", [[], [[Button("Yes", "yes")]]], ids=["last buttons", "others"])
async def test_the_files_of_a_message_stay_with_any_buttons(rows: Sequence[Sequence[Button]], press: str) -> None:
    client = RecordedClient()
    assert await MaxCalls(client).make(ButtonChange("5", "mid.1", rows, press))
    await client.close()
    ((path, body),) = client.changes
    attachments = (body["message"] if press else body)["attachments"]
    assert path == ("answers" if press else "messages")
    assert attachments[0] == FILE
    assert [one["type"] for one in attachments[1:]] == ["inline_keyboard"] * len(rows)
