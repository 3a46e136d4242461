"""docs/sandbox.md agrees with the code."""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from textwrap import indent

import pytest

from sandbox.faults import FAULTS
from sandbox.magic_recipients import MAGIC_RECIPIENTS
from sandbox.vk.errors import text_of
from tests.support.paths import ROOT

DOCUMENT = (ROOT / "docs" / "sandbox.md").read_text()


def table(channel: str) -> str:
    """Return the expected table of a channel's magic recipients."""
    lines = ["| address | fault | value | what happens |", "|---|---|---|---|"]
    for address, fault in MAGIC_RECIPIENTS[channel].items():
        kind = FAULTS[channel][fault.name]
        value = "" if fault.value is None else f"{fault.value} ({kind.value})"
        description = f" ({text_of(fault.value or 0).rstrip('.')})" if kind.value == "VK error code" else ""
        scope = " **Affects the whole account.**" if kind.account else ""
        lines.append(f"| `{address}` | `{fault.name}` | {value} | {kind.meaning}{description}.{scope} |")
    return "\n".join(lines)


@pytest.mark.parametrize("channel", MAGIC_RECIPIENTS)
def test_the_document_shows_the_magic_recipients(channel: str) -> None:
    shown = re.search(rf"<!-- magic: {channel} -->\n\n(.*?)\n\n", DOCUMENT, re.DOTALL)
    assert shown is not None
    assert shown[1] == table(channel)


def test_the_document_names_every_call_and_setting() -> None:
    calls = [
        *("GET /inbox.json", "DELETE /inbox", "GET /state.json", "GET /magic.json", "GET /faults.json", "POST /rules"),
        *("GET /people", "POST /people", "DELETE /people/NUMBER", "GET /people/NUMBER/chats"),
        *(f"POST /write/{channel}" for channel in ("telegram", "telegram-bot", "vk", "sms")),
    ]
    for call in calls:
        assert f"`{call}" in DOCUMENT
    for setting in (
        "TELEGRAM_SERVER_KEY",
        "TELEGRAM_BOT_TOKEN",
        "VK_API_URL",
        "VK_TOKEN",
        "SMS_URL",
        "SMS_FROM",
        "BOT_TOKEN",
        "BOT_API_URL",
    ):
        assert f"`ADA_{setting}`" in DOCUMENT


async def test_the_example_in_python_works_as_it_stands_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)
    names: dict[str, Callable[[], Awaitable[str]]] = {}
    exec(f"async def example():\n{indent(code, '    ')}\n    return sandbox.page_url", names)
    assert (await names["example"]()).startswith("http://127.0.0.1:")
