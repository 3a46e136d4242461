"""A question in a group chat over the wire of the Bot API, VK and MAX: each member answers once, as its person, and
only the member sees what it has answered; the chat sees the totals (R-17).
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest

from core.deliveries.histories.recipient_search import RecipientFilter
from core.directory import Directory
from core.model.delivery import Recipient
from core.model.people import User
from core.queue import QueueClient
from core.sentence import say
from core.updates import answer_worker
from core.updates.answer_worker import AnswerWorker
from couriers.max import courier as max_courier
from couriers.max.client import MaxClient
from couriers.max.receive import MaxCalls, MaxLongPoll
from couriers.sending import Courier
from couriers.telegram_bot import courier as telegram_bot
from couriers.telegram_bot.client import BotClient
from couriers.telegram_bot.receive import TelegramCalls, TelegramLongPoll
from couriers.vk import courier as vk_courier
from couriers.vk.client import VkClient, VkLongPoll
from couriers.vk.receive import VkCalls
from sandbox.bot_api import BotApiServer
from sandbox.max import MaxServer
from sandbox.state import SandboxState
from sandbox.vk import VkServer
from tests.core.answers.test_answers import COMING
from tests.support.receiving import polled
from tests.support.serving import serving
from tests.support.stack import TENANT, Stack
from tests.support.waiting import until


class Group(Protocol):
    """A chat of several people in a sandbox. Its members are people by their accounts."""

    channel: str
    chat: str
    members: tuple[str, str, str]
    way_to_bot: str
    """Behind what a stranger is told."""

    def press(self, member: str, button: str) -> None:
        """Press a button below the only message of the chat."""

    def buttons(self) -> list[str]: ...

    def said_to(self, member: str) -> list[str]:
        """What the bot has said to a member alone."""

    def said_in_chat(self) -> list[str]: ...


class VkGroup:
    channel, chat, members = "vk", "2000000001", ("200001", "200002", "200003")
    way_to_bot = ""

    def __init__(self, server: VkServer, state: SandboxState) -> None:
        self._server = server
        self._state = state

    def press(self, member: str, button: str) -> None:
        self._server.people.press(member, 1, button, self.chat)

    def buttons(self) -> list[str]:
        (message,) = self._shown()
        return [one["text"] for row in message["buttons"] for one in row]

    def said_to(self, member: str) -> list[str]:
        return [one["text"] for one in self._server.people.answers(member)]

    def said_in_chat(self) -> list[str]:
        return [one["text"] for one in self._shown()]

    def _shown(self) -> list[dict[str, Any]]:
        received = self._state.messages.newest_of("vk", self.chat, 10)
        return [now for one in received if (now := self._server.people.shown(self.chat, one.reference))]


class MaxGroup:
    channel, chat, members = "max", "-70001", ("300001", "300002", "300003")
    way_to_bot = ""

    def __init__(self, server: MaxServer) -> None:
        self._server = server
        for member in self.members:
            server.people.start(int(member))  # otherwise the bot may not write to it

    def press(self, member: str, button: str) -> None:
        (message,) = self._shown()
        self._server.people.press(int(member), message["id"], button)

    def buttons(self) -> list[str]:
        (message,) = self._shown()
        return [one["text"] for row in message["buttons"] for one in row]

    def said_to(self, member: str) -> list[str]:
        return [one["text"] for one in self._server.people.shown(int(member))["messages"]]

    def said_in_chat(self) -> list[str]:
        return [one["text"] for one in self._shown()]

    def _shown(self) -> list[dict[str, Any]]:
        return list(self._server.people.shown(0, int(self.chat))["messages"])


class TelegramGroup:
    channel, chat, members = "telegram-bot", "-100500", ("100001", "100002", "100003")
    way_to_bot = "\nt.me/sandbox1_bot?start=link"

    def __init__(self, server: BotApiServer) -> None:
        self._server = server
        self._pressed: dict[str, list[str]] = {member: [] for member in self.members}

    def press(self, member: str, button: str) -> None:
        (message,) = self._shown()
        query = self._server.people.press(int(member), message["id"], button, int(self.chat))
        self._pressed[member].append(query)

    def buttons(self) -> list[str]:
        return [one["text"] for message in self._shown() for row in message["buttons"] for one in row]

    def said_to(self, member: str) -> list[str]:
        answers = [self._server.people.answer(query) for query in self._pressed[member]]
        return [one["text"] for one in answers if one]

    def said_in_chat(self) -> list[str]:
        return [one["text"] for one in self._shown()]

    def _shown(self) -> list[dict[str, Any]]:
        return list(self._server.people.shown(int(self.chat))["messages"])


@asynccontextmanager
async def telegram_group(stack: Stack) -> AsyncIterator[Group]:
    async with serving(BotApiServer(SandboxState(), token="1:secret")) as server:
        url = f"http://127.0.0.1:{server.port}"
        client = BotClient("1:secret", url)
        courier = await telegram_bot.open(telegram_bot.Settings("1:secret", url), Path())
        async with _running(stack, "telegram-bot", courier, TelegramLongPoll(client), TelegramCalls(client).make):
            yield TelegramGroup(server)
        await client.close()


@asynccontextmanager
async def vk_group(stack: Stack) -> AsyncIterator[Group]:
    state = SandboxState()
    async with serving(VkServer(state)) as server:
        client = VkClient(server.token, server.url)
        courier = await vk_courier.open(vk_courier.Settings(server.token, server.url), Path())
        async with _running(stack, "vk", courier, VkLongPoll(client), VkCalls(client).make):
            yield VkGroup(server, state)
        await client.close()


@asynccontextmanager
async def max_group(stack: Stack) -> AsyncIterator[Group]:
    async with serving(MaxServer(SandboxState(), polls_per_second=1000)) as server:
        client = MaxClient(server.token, server.url)
        courier = await max_courier.open(max_courier.Settings(server.token, server.url), Path())
        async with _running(stack, "max", courier, MaxLongPoll(client, spacing=0.01), MaxCalls(client).make):
            yield MaxGroup(server)
        await client.close()


@asynccontextmanager
async def _running(stack: Stack, channel: str, courier: Courier, source: Any, make: Any) -> AsyncIterator[None]:
    """The courier, the bot, and what counts presses."""
    presses_of_all = AnswerWorker(stack.store, QueueClient(stack.store))
    await presses_of_all.open()
    await stack.courier(courier)
    worker = presses_of_all.worker()
    running = asyncio.create_task(worker.run())
    async with polled(stack.store, channel, source, make):
        yield
    worker.stop()
    await running


@pytest.mark.parametrize("opened", [telegram_group, vk_group, max_group], ids=["telegram-bot", "vk", "max"])
async def test_members_press_and_each_counts_once_while_the_chat_sees_only_totals(
    stack: Stack, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_worker, "CHAT_PAUSE", 1)
    async with opened(stack) as group:
        anna, ben, stranger = group.members
        users = Directory(stack.store).users
        for number, member in enumerate((anna, ben), 1):
            await users.create(TENANT, User(number, f"Person {number}", contacts={group.channel: [member]}))
        chat = Recipient("class", contacts={group.channel: [group.chat]})
        accepted = await stack.deliver(chat, channels=(group.channel,), question=COMING, text="The trip")
        await stack.finished(accepted.key)
        for member, button, told in (
            (anna, "I come", "Your answer: I come"),
            (ben, "I come", "Your answer: I come"),
            (ben, "I do not", "Your answer is now: I do not"),
            (stranger, "I come", say("press_answer_stranger", "en") + group.way_to_bot),
        ):
            await until(lambda: any(one.startswith(button) for one in group.buttons()))  # noqa: B023 - at once
            label = next(one for one in group.buttons() if one.startswith(button))
            group.press(member, label)
            await until(lambda: group.said_to(member)[-1:] == [told])  # noqa: B023 - at once
        await until(lambda: group.buttons() == ["I come · 1", "I do not · 1"])
        assert [len(group.said_to(member)) for member in group.members] == [1, 2, 1]
        assert group.said_in_chat() == ["The trip"]
        page = await stack.deliveries.recipients.page(accepted.key, TENANT, RecipientFilter(members=True), None, 9)
        rows = {one.id: one.answer.row.value for one in page.recipients if one.answer and one.answer.row}
        assert rows == {1: "yes", 2: "no"}
