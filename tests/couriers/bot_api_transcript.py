"""The transcript of what Ada's parts send to the Bot API, and of what becomes of each answer.

It was recorded with a client of Ada's own on plain aiohttp, before aiogram took its place, and is the witness that
nothing has changed that Telegram or an operator sees. With ADA_RECORD_TRANSCRIPT=1 tests record it anew.
"""

import json
import os
import re
from collections.abc import AsyncIterator, Awaitable, Mapping
from pathlib import Path
from typing import Any

import pytest

from core.errors import AdaError
from couriers.sending import Unknown
from tests.couriers.bot_api_relay import Answer, Relay, relaying

TRANSCRIPT = Path(__file__).with_name("bot_api_transcript.json")


@pytest.fixture
async def relay() -> AsyncIterator[Relay]:
    async with relaying() as opened:
        yield opened


def compare(part: str, played: Mapping[str, Any], token: str, caplog: pytest.LogCaptureFixture) -> None:
    """Compare a part of the transcript. Neither it nor a log line has the token."""
    text = json.dumps(played, ensure_ascii=False)
    assert token not in text + caplog.text
    kept = json.loads(TRANSCRIPT.read_text()) if TRANSCRIPT.exists() else {}
    if os.environ.get("ADA_RECORD_TRANSCRIPT"):
        parts = sorted({**kept, part: json.loads(text)}.items())
        TRANSCRIPT.write_text("{\n" + ",\n".join(f"{_json(name)}: {_lines(cases)}" for name, cases in parts) + "\n}\n")
    else:
        now, before = json.loads(text), kept[part]
        assert {case: now[case] for case in now if now[case] != before.get(case)} == {}
        assert now.keys() == before.keys()


def _lines(cases: Mapping[str, Any]) -> str:
    return "{\n" + ",\n".join(f"  {_json(case)}: {_json(one)}" for case, one in cases.items()) + "\n}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


async def what_came(call: Awaitable[Any]) -> str:
    """Return the outcome of a call, or its error. The classes of faults, which some texts name, are not compared."""
    try:
        return shown(await call)
    except AdaError as error:
        return shown(error)
    except Exception:  # noqa: BLE001 - the errors of a library have names of their own
        return "a fault"


def shown(outcome: Any) -> str:
    text = "Unknown()" if isinstance(outcome, Unknown) else repr(outcome)
    text = re.sub(r"Unknown\(detail='[^']*'\)", "Unknown()", text)
    text = re.sub(r"detail='[A-Z]\w+'", "detail='a fault'", text)
    return re.sub(r"\(([A-Z]\w+)\)", "(a fault)", re.sub(r"<.* object at .*>", "an object", text))


def refusal(status: int, description: Any = None, **parameters: Any) -> Answer:
    hints = {"parameters": parameters} if parameters else {}
    return answer({"ok": False, "error_code": status, "description": description, **hints}, status)


def answer(body: Any, status: int = 200) -> Answer:
    return Answer(status, json.dumps(body).encode(), {"Content-Type": "application/json"})


HTML_PAGE = b"<html><body>nginx bot4343:sandbox</body></html>"
MESSAGE = {"message_id": 77, "date": 1_700_000_000, "chat": {"id": 5, "type": "private"}, "text": "hello"}
ANSWERS = {
    "sent": answer({"ok": True, "result": MESSAGE}),
    "sent, new field": answer({"ok": True, "result": {**MESSAGE, "new": {"x": 1}}, "new": 1}),
    "sent, malformed field": answer({"ok": True, "result": {**MESSAGE, "date": "soon", "chat": 5, "entities": [1]}}),
    "sent, as a reply": answer({"ok": True, "result": {**MESSAGE, "reply_to_message": {"message_id": 1}}}),
    "chat not found": refusal(400, "Bad Request: chat not found"),
    "too long": refusal(400, "Bad Request: message is too long"),
    "new refusal": refusal(400, "Bad Request: something new"),
    "no description": refusal(400),
    "numeric description": refusal(400, 5),
    "malformed parameters": answer({"ok": False, "description": "Bad Request: chat not found", "parameters": []}, 400),
    "token withdrawn": refusal(401, "Unauthorized"),
    "blocked": refusal(403, "Forbidden: bot was blocked by the user"),
    "new prohibition": refusal(403, "Forbidden: something new"),
    "no such bot": refusal(404, "Not Found"),
    "conflict": refusal(409, "Conflict: terminated by other getUpdates request"),
    "too large": refusal(413, "Request Entity Too Large"),
    "teapot": refusal(418, "something new"),
    "throttled": refusal(429, "Too Many Requests: retry after 7", retry_after=7),
    "throttled for nothing": refusal(429, "Too Many Requests: retry after 0", retry_after=0),
    "throttled without a time": refusal(429, "Too Many Requests: flood"),
    "throttled for a text": refusal(429, "Too Many Requests: flood", retry_after="soon"),
    "server error": refusal(500, "Internal Server Error"),
    "restart": refusal(502, "Bad Gateway: restart"),
    "server error without description": refusal(500),
    "server error that says ok": answer({"ok": True, "result": MESSAGE}, 500),
    "bad gateway": Answer(502, HTML_PAGE, {"Content-Type": "text/html"}),
    "page": Answer(200, HTML_PAGE, {"Content-Type": "text/html"}),
    "refusal as a page": Answer(403, HTML_PAGE, {"Content-Type": "text/html"}),
    "no body": Answer(),
    "no UTF-8": Answer(200, b'{"ok": true, "result": "\xff\xfe"}', {"Content-Type": "application/json"}),
    "unknown charset": Answer(200, b"\xff\xfe", {"Content-Type": "application/json; charset=none"}),
    "deep": Answer(200, b"[" * 100_000),
    "list": answer([]),
    "text": answer("ok"),
    "null": answer(None),
    "not ok": answer({"ok": None, "result": MESSAGE}),
    "no result": answer({"ok": True}),
    "redirect": Answer(302, headers={"Location": "/elsewhere"}),
    "redirect that keeps the body": Answer(307, headers={"Location": "/elsewhere"}),
    "cut": Answer(cut=0),
    "cut within": Answer(200, b'{"ok": true, ', cut=10),
    "moved": refusal(400, "Bad Request: group upgraded", migrate_to_chat_id=-1_000_000_000_555),
}  # fmt: skip
