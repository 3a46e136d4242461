"""The bot of MAX against the sandbox: long polling, the subscription, and the teacher's dialog with its buttons."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from core.errors import SetupError
from core.queue import QueueClient
from core.updates.events import TUBE, decode
from couriers import max as max_provider
from couriers.inbound import events_ingress
from couriers.max import courier as max_courier
from couriers.max.client import MaxClient, MaxTokenRefused
from couriers.max.receive import SPACING, WAIT, MaxLongPoll, MaxWebhook
from sandbox.events import Fault, Rule
from sandbox.max import MaxServer
from sandbox.max.updates import POLLS_PER_SECOND
from sandbox.state import SandboxState
from scenarios.execution.opening import ScenarioOptions
from tests.sandbox.bot_api_clients import BotApi, bot_api
from tests.scenarios.teacher.chat import School, open_school
from tests.support.receiving import answering, poll
from tests.support.serving import serving
from tests.support.stack import TENANT, Stack
from tests.support.waiting import stays, until

__all__ = ["bot_api"]

PERSON, STRANGER = 300_001, 300_002
SECRET = "s3cret"


@dataclass
class Chat:
    """What a person does and sees."""

    server: MaxServer
    person: int = PERSON

    def messages(self) -> list[dict[str, Any]]:
        return [one for one in self.server.people.shown(self.person)["messages"] if one["from"] == "bot"]

    async def reads(self, wanted: str) -> dict[str, Any]:
        """Wait until a message of the bot has this text."""
        await until(lambda: any(wanted in one["text"] for one in self.messages()))
        return next(one for one in reversed(self.messages()) if wanted in one["text"])

    async def writes(self, text: str, answer: str) -> dict[str, Any]:
        self.server.people.write(self.person, text)
        return await self.reads(answer)

    async def presses(self, label: str, answer: str = "") -> None:
        """Press the newest button with this label; wait for the answer."""

        def newest() -> str:
            return next((one["id"] for one in reversed(self.messages()) if label in labels(one)), "")

        await until(newest)
        self.server.people.press(self.person, newest(), label)
        if answer:
            await self.reads(answer)


def labels(message: dict[str, Any]) -> list[str]:
    return [one["text"] for row in message["buttons"] for one in row]


@pytest.fixture
async def max_server(request: pytest.FixtureRequest) -> AsyncIterator[MaxServer]:
    """`request.param`: the polls that it takes in a second."""
    polls_per_second = getattr(request, "param", 1000)
    async with serving(MaxServer(SandboxState(), webhook_pause=0.01, polls_per_second=polls_per_second)) as opened:
        yield opened


@pytest.fixture
async def max_client(max_server: MaxServer) -> AsyncIterator[MaxClient]:
    opened = MaxClient(max_server.token, max_server.url)
    yield opened
    await opened.close()


@asynccontextmanager
async def polling(stack: Stack, max_client: MaxClient, wait: int = WAIT, spacing: float = 0.01) -> AsyncIterator[None]:
    """A process that polls."""
    ingress = events_ingress(stack.store, QueueClient(stack.store), TENANT)[max_provider.CHANNEL]
    await ingress.open()
    task = asyncio.create_task(poll(stack.store, MaxLongPoll(max_client, wait, spacing), ingress))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def texts_in(stack: Stack) -> list[str]:
    tasks = await stack.take(TUBE, 100)
    for task in tasks:
        await stack.queue.settle(task)
    return [decode(task.body)["event_text"] for task in tasks]


async def read(stack: Stack, *texts: str) -> None:
    """Wait until these texts are in the queue, take them, and check that nothing else was there."""
    found: list[str] = []

    async def has_all() -> bool:
        found.extend(await texts_in(stack))
        return len(found) >= len(texts)

    await until(has_all)
    assert found == list(texts)


def polls(max_server: MaxServer) -> int:
    return max_server._state.counter("max", "getUpdates")


@pytest.mark.parametrize("max_server", [POLLS_PER_SECOND], indirect=True)
async def test_each_update_is_read_once_by_one_of_two_processes_with_two_requests_a_second(
    stack: Stack, max_server: MaxServer, max_client: MaxClient
) -> None:
    async with polling(stack, max_client, spacing=SPACING), polling(stack, max_client, spacing=SPACING):
        await until(lambda: polls(max_server) >= 1)
        for text in ("one", "two", "three"):
            max_server.people.write(PERSON, text)
            await read(stack, text)
        assert max_server._state.counter("max", "polls refused") == 0


async def test_what_is_written_while_no_process_polls_is_read_by_the_next_one_and_nothing_twice(
    stack: Stack, max_server: MaxServer, max_client: MaxClient
) -> None:
    max_server.people.write(PERSON, "before the first start, and not the last")
    max_server.people.write(PERSON, "last")
    async with polling(stack, max_client):
        await read(stack, "last")
    for text in ("one", "two"):
        max_server.people.write(PERSON, text)
    async with polling(stack, max_client):
        await read(stack, "one", "two")
        await stays(lambda: max_server._state.counter("max", "written") == 4, during=0.5)
        assert await texts_in(stack) == []


async def test_a_process_that_ended_before_it_stored_the_marker_puts_nothing_twice(
    stack: Stack, max_server: MaxServer, max_client: MaxClient
) -> None:
    ingress = events_ingress(stack.store, QueueClient(stack.store), TENANT)[max_provider.CHANNEL]
    await ingress.open()
    max_server.people.write(PERSON, "one")
    page = await MaxLongPoll(max_client).poll("")
    await ingress.put(page.events[0])  # the process dies here
    async with polling(stack, max_client):
        await until(lambda: polls(max_server) >= 3)
        assert await texts_in(stack) == ["one"]


async def test_after_the_server_has_lost_its_data_and_counts_anew_nothing_is_missed_or_put_twice(
    stack: Stack, max_server: MaxServer, max_client: MaxClient, caplog: pytest.LogCaptureFixture
) -> None:
    """It gave nothing until its numbers had passed the stored marker, and what had come until then never (39.34)."""
    max_server.people.write(PERSON, "before")
    async with polling(stack, max_client, wait=0):
        await read(stack, "before")
        max_server.lose_updates()
        for text in ("one", "two", "three"):
            max_server.people.write(PERSON, text)
        await read(stack, "one", "two", "three")
        max_server.people.write(PERSON, "four")
        await read(stack, "four")
    assert len([line for line in caplog.messages if "counts its events anew" in line]) == 1


@pytest.mark.parametrize("refused", [{"1000"}, {"1000", "0"}, {"0"}, set[str]()])
async def test_a_server_that_refuses_a_marker_beyond_its_own_or_answers_with_a_lower_one_is_followed(
    refused: set[str],
) -> None:
    """It takes the marker 0, or only its own."""

    async def answer(request: web.Request) -> web.Response:
        marker = request.query.get("marker", "")
        if marker in refused:
            return web.json_response({"code": "proto.payload", "message": "marker"}, status=400)
        events = [{"n": number} for number in (1, 2) if marker == "0" or number == 2]
        return web.json_response({"updates": events, "marker": 3})

    app = web.Application()
    app.router.add_get("/updates", answer)
    async with TestServer(app) as server:
        client = MaxClient("token", f"http://127.0.0.1:{server.port}")
        page = await MaxLongPoll(client, wait=0, spacing=0).poll("1000")
        await client.close()
    assert page.position == "3"
    assert [event["n"] for event in page.events] == ([2] if "0" in refused else [1, 2])


async def test_polling_goes_on_after_faults_of_the_provider(
    stack: Stack, max_server: MaxServer, max_client: MaxClient
) -> None:
    max_server._state.add_rule(Rule("max", Fault("server_error"), method="getUpdates", times=1))
    max_server._state.add_rule(Rule("max", Fault("flood_wait", 1), method="getUpdates", times=1))
    async with polling(stack, max_client):
        await until(lambda: polls(max_server) >= 3)
        max_server.people.write(PERSON, "one")
        await read(stack, "one")


async def test_a_refused_token_ends_the_poller_with_what_to_do(stack: Stack, max_server: MaxServer) -> None:
    wrong = MaxClient("wrong", max_server.url)
    ingress = events_ingress(stack.store, QueueClient(stack.store), TENANT)[max_provider.CHANNEL]
    with pytest.raises(MaxTokenRefused, match="ADA_MAX_TOKEN"):
        await poll(stack.store, MaxLongPoll(wrong), ingress)
    await wrong.close()


async def test_a_subscription_that_max_has_dropped_is_made_again(max_server: MaxServer, max_client: MaxClient) -> None:
    keeping = asyncio.create_task(MaxWebhook("http://127.0.0.1:9", SECRET).keep(max_client, timedelta(milliseconds=50)))
    try:
        for times in (1, 2):
            await until(lambda: max_server._state.counter("max", "subscribe") == times)  # noqa: B023 - awaited at once
            await max_server.drop_subscription()
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)


async def test_a_process_that_polls_ends_the_subscription(
    stack: Stack, max_server: MaxServer, max_client: MaxClient
) -> None:
    await max_client.call("POST", "subscriptions", body={"url": "http://127.0.0.1:9", "secret": SECRET})
    async with polling(stack, max_client):
        await until(lambda: polls(max_server) >= 1)
        max_server.people.write(PERSON, "one")
        await read(stack, "one")


@pytest.mark.parametrize(("url", "secret"), [("nonsense", SECRET), ("https://x", ""), ("https://x", "four")])
def test_a_webhook_needs_an_address_and_a_secret(url: str, secret: str) -> None:
    with pytest.raises(SetupError, match="ADA_MAX_WEBHOOK_"):
        MaxWebhook(url, secret)


# the teacher's dialog


@pytest.fixture
async def school(
    stack: Stack, bot_api: BotApi, max_server: MaxServer, max_client: MaxClient, tmp_path: Path
) -> AsyncIterator[School]:
    """The school of the Telegram bot; what is received is that of MAX."""
    opened = await open_school(stack, bot_api, tmp_path)
    courier = await max_courier.open(max_courier.Settings(max_server.token, max_server.url), tmp_path / "max")
    await stack.courier(courier)
    async with polling(stack, max_client), answering(opened.core, ScenarioOptions(TENANT, linking=opened.linking)):
        yield opened
    await courier.close()


async def test_a_teacher_links_the_chat_selects_a_group_writes_and_sees_the_status_in_one_message(
    school: School, max_server: MaxServer
) -> None:
    chat = Chat(max_server)
    max_server.people.start(PERSON)
    await chat.reads("адрес электронной почты")
    await chat.writes("anna@example.org", "anna@example.org")
    await chat.writes(school.outbox.codes[-1], "Анна")
    await chat.writes("/select", "")
    await chat.presses("ИВТ-101")
    await chat.presses("Done", "People: 3")
    await chat.writes("Завтра нет пары", "")
    await chat.presses("Now", "of these without a contact: 1")
    before = len(chat.messages())
    await chat.presses("Send", "Everybody who can be reached was reached")
    assert sorted(school.sms.addresses) == ["+79990000002", "+79990000003"]
    assert len(chat.messages()) == before, "the status is in the message of the dialog"
    await chat.presses("Who was not reached", "Глеб")


async def test_a_deep_link_begins_and_ends_the_linking(school: School, max_server: MaxServer) -> None:
    chat = Chat(max_server, STRANGER)
    max_server.people.start(STRANGER, "boris@example.org")
    await chat.reads("boris@example.org")
    max_server.people.start(STRANGER, school.outbox.codes[-1])
    await chat.reads("Боря")
    user = await school.directory.users.find(TENANT, 2)
    assert str(STRANGER) in [address for found in user.contacts.values() for address in found]


async def test_who_stops_the_bot_is_known_as_not_reachable_before_the_next_send_until_the_next_start(
    school: School, max_server: MaxServer
) -> None:
    users = school.directory.users
    await users.add_contact(TENANT, 2, "max", str(STRANGER))

    async def opted_out() -> bool:
        return "max" in (await users.find(TENANT, 2)).opt_out

    async def is_back() -> bool:
        return not await opted_out()

    max_server.people.start(STRANGER)  # without a marker only the last update comes
    await Chat(max_server, STRANGER).reads("Боря")
    max_server.people.stop(STRANGER)
    await until(opted_out)
    max_server.people.start(STRANGER)
    await until(is_back)
