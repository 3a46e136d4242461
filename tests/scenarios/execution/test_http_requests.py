"""HTTP requests of a bot: sent once or repeated where safe, only to public addresses, the response in variables."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from providers.web_request import decoded
from scenarios.actions import http_request
from scenarios.bot import Action, Bot, Place
from scenarios.bot.model import Variable
from scenarios.context import Context, ScenarioServices
from scenarios.engine import Ending, State, Step
from scenarios.execution.opening import ScenarioOptions, open_services
from scenarios.loader import load
from scenarios.placeholders.attributes import prepare
from scenarios.testing.bot_tests import run_tests
from tests.scenarios.actions.contexts import executed
from tests.scenarios.bot_folder import BotFolder
from tests.support.http_double import HttpDouble
from tests.support.servers import Server
from tests.support.stack import TENANT, Stack

EVENT = {"channel": "echo", "user_id": "7", "chat_id": "7"}


@pytest.fixture
async def services(server: Server, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ScenarioServices]:
    monkeypatch.setattr(http_request, "_PAUSE", 0.0)
    stack = await Stack.open(server)
    async with open_services(stack.store, ScenarioOptions(TENANT, allow_private=True)) as opened:
        yield opened
    await stack.close()


def context(services: ScenarioServices, run: str = "1", **fields: Any) -> Context:
    action = Action("http_request", {"type": "http_request", **fields}, Place("s.yaml"))
    step = Step((0, 0), "s.main", action, State.PENDING)
    prepared = prepare(action, {"placeholder": True}, step.values, EVENT)
    bot = Bot(declared={"person.price": Variable("number")})
    return Context(services, bot, Path(), run, step, EVENT, prepared)


async def play(services: ScenarioServices, run: str = "1", **fields: Any) -> Ending:
    return await executed(http_request.ACTION, context(services, run, **fields))


async def test_the_response_is_read_and_saved_in_variables(services: ScenarioServices) -> None:
    async with HttpDouble() as double:
        double.answers(200, {"item": {"price": "12.5"}})
        fields: dict[str, Any] = {
            "headers": {"X-Key": "k"},
            "json": {"of": "{user_id}"},
            "save": {"person.price": "body.item.price"},
        }
        ending = await play(services, url=f"{double.url}/p?x=1", **fields)
    asked = double.requests[0]
    assert (asked.method, asked.path_qs, asked.headers["X-Key"], asked.text) == ("POST", "/p?x=1", "k", '{"of":"7"}')
    assert ending.state is State.COMPLETED
    assert ending.returned.results["response"]["status"] == 200
    assert ending.returned.results["person"] == {"price": 12.5}


@pytest.mark.parametrize(
    ("fields", "requests", "error"),
    [
        ({}, 3, "the response has the status 503"),
        ({"method": "POST"}, 1, "the response has the status 503"),
        ({"method": "POST", "idempotency_key": True, "retries": 1}, 2, "the response has the status 503"),
        ({"retries": 0}, 1, "the response has the status 503"),
    ],
)
async def test_only_what_is_safe_is_repeated(
    services: ScenarioServices, fields: dict[str, Any], requests: int, error: str
) -> None:
    async with HttpDouble() as double:
        double.answers(503, "busy")
        ending = await play(services, url=double.url, **fields)
    assert (ending.state, str(ending.error), len(double.requests)) == (State.FAILED, error, requests)
    assert len({one.headers.get("Idempotency-Key") for one in double.requests}) == 1


async def test_a_post_is_not_repeated_after_a_crash_and_its_outcome_is_unknown(services: ScenarioServices) -> None:
    async with HttpDouble() as double:
        await play(services, url=double.url, method="POST")
        again = await play(services, url=double.url, method="POST")
        assert (again.state, len(double.requests)) == (State.UNKNOWN, 1)
        assert (await play(services, url=double.url, method="PUT")).state is State.COMPLETED
        assert (await play(services, url=double.url, method="PUT")).state is State.COMPLETED


async def test_a_private_address_is_not_reached_and_a_redirect_not_followed(services: ScenarioServices) -> None:
    async with HttpDouble() as double:
        double.answers(302, "", {"Location": "/elsewhere"})
        guarded = await play(replace(services, allow_private=False), url=double.url)
        assert (str(guarded.error), double.requests) == ("the address is not public", [])
        followed = await play(services, url=double.url)
        assert (str(followed.error), len(double.requests)) == ("the response has the status 302", 1)
    assert str((await play(services, url="ftp://x", retries=0)).error) == "the address is no URL"
    assert str((await play(services, url=double.url, retries=0)).error) == "there is no connection"


async def test_a_body_is_not_unpacked_and_no_cookie_is_shown(services: ScenarioServices) -> None:
    async with HttpDouble() as double:
        double.answers(200, "not packed", {"Content-Encoding": "gzip", "Set-Cookie": "session=1"})
        response = (await play(services, url=double.url, retries=0)).returned.results["response"]
    assert (response["body"], "set-cookie" in response["headers"]) == ("not packed", False)
    assert double.requests[0].headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize(
    ("written", "encoded"),
    [
        ("a&b=1", "a%26b%3D1"),
        ("../x", "..%2Fx"),
        ("..", ""),
        ("@evil.example", "%40evil.example"),
        ("чай", "%D1%87%D0%B0%D0%B9"),
    ],
)
def test_what_a_person_writes_stays_a_value_in_the_url(written: str, encoded: str) -> None:
    def url_of(url: str) -> str:
        fields = {"type": "http_request", "url": url, "base": "https://api.example/v1"}
        action = Action("http_request", fields, Place("s.yaml"))
        values = Step((0, 0), "s.main", action, State.PENDING).values
        return str(prepare(action, {"placeholder": True}, values, EVENT | {"event_text": written}).own["url"])

    assert url_of("{base}/{event_text}?q={event_text}") == f"https://api.example/v1/{encoded}?q={encoded}"
    assert url_of("https://api.example{event_text}") == f"https://api.example{encoded}"
    assert url_of("{event_text}") == written


async def test_a_test_of_a_bot_says_what_the_other_system_answers(tmp_path: Path) -> None:
    bot = BotFolder(tmp_path).write("variables.yaml", "person: {price: number}")
    bot.actions("""
    - {type: http_request, url: "https://example.com/{event_text}", save: {person.price: body.price}}
    - {type: send, text: "{person.price} {response.status}", chain: completed}
    - {type: send, text: "broken: {error}", chain: drop}
""")
    bot.write(
        "tests/a.yaml",
        """
works:
  returns: {http_request: {response: {status: 200, body: {price: 5}, headers: {}}}}
  steps: [{user: tea}, {bot: 5 200}]
fails:
  fail: [http_request]
  steps: [{user: tea}, {bot: {contains: broken}}]
""",
    )
    assert [one.problem for one in (await run_tests(bot.folder, load(bot.folder).bot))[0]] == ["", ""]


@pytest.mark.parametrize("raw", [b'"\xff"', b"[" * 120_000], ids=["not UTF-8", "too deep"])
def test_a_body_that_no_json_reader_takes_is_a_text(raw: bytes) -> None:
    assert decoded(raw) == raw.decode(errors="replace")
