"""An office answers in a group of Telegram with a topic for each person, over the wire of the Bot API."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from core.model.delivery import NewDelivery, Sender
from core.model.people import Group, User
from core.orders import Addressee, Caller, OfficeChat, Order, SendingPolicy
from core.redis.cancel_and_wait import cancel_and_wait
from core.services import Services
from core.threads import Inbox, ReplyWorker
from core.threads.incoming import Written
from couriers.inbound import events_ingress
from couriers.sending import Message, Sent, StoredIds
from couriers.telegram_bot import courier as telegram_bot
from couriers.telegram_bot.client import BotClient
from couriers.telegram_bot.receive import TelegramLongPoll
from sandbox.bot_api import BotApiServer
from sandbox.state import SandboxState
from tests.support.receiving import poll
from tests.support.serving import serving
from tests.support.stack import TENANT, Stack
from tests.support.waiting import until

CHANNEL, CHAT = "telegram-bot", -1001234567890
MARIA, BORIS, OLGA, STRANGER = 100_001, 100_002, 100_008, 100_009
POLICY = SendingPolicy(office_chat=OfficeChat(TENANT, "dean", CHANNEL, str(CHAT)))


@dataclass
class Office:
    core: Services
    stack: Stack
    server: BotApiServer

    async def order(self, person: int) -> int:
        """Send a message of the office to a person; return its id."""
        delivery = NewDelivery(TENANT, Sender(8), "No classes", (), [CHANNEL], replies="dean")
        await self.core.sending.send(Order(delivery, [Addressee(person)]), Caller(TENANT, is_admin=True))
        await until(lambda: self.texts(100_000 + person))
        return int(self.server.people.shown(100_000 + person)["messages"][-1]["id"])

    def texts(self, chat: int) -> list[str]:
        return [one["text"] for one in self.server.people.shown(chat)["messages"] if one["text"]]

    async def gets(self, chat: int, text: str) -> dict[str, Any]:
        """Wait until a chat has got a text that begins so; return the newest such message."""
        await until(lambda: any(one.startswith(text) for one in self.texts(chat)))
        shown: list[dict[str, Any]] = self.server.people.shown(chat)["messages"]
        return [one for one in shown if one["text"].startswith(text)][-1]

    @property
    def topics(self) -> dict[int, str]:
        return self.server.people.topics(CHAT)


@asynccontextmanager
async def opened(stack: Stack, directory: Path) -> AsyncIterator[Office]:
    async with serving(BotApiServer(SandboxState(), token="1:secret")) as server:
        url = f"http://127.0.0.1:{server.port}"
        core, client = Services.on(stack.store, POLICY), BotClient("1:secret", url)
        for number, name, role in ((1, "Мария", "student"), (2, "Борис", "student"), (8, "Ольга", "staff")):
            contacts = {CHANNEL: [str(100_000 + number)]}
            await core.directory.users.create(TENANT, User(number, name, role=role, locale="ru", contacts=contacts))
        await core.directory.groups.create(TENANT, Group("dean", "Деканат"), [8])
        ingress = events_ingress(stack.store, core.client, TENANT)[CHANNEL]
        await ingress.open()
        replies = ReplyWorker(stack.store, core.client, core.directory, core.threads, core.relay, "dean")
        await replies.open()
        worker = replies.worker()
        await stack.courier(await telegram_bot.open(telegram_bot.Settings("1:secret", url), directory))
        running = asyncio.create_task(worker.run())
        poller = asyncio.create_task(poll(stack.store, TelegramLongPoll(client), ingress))
        yield Office(core, stack, server)
        await cancel_and_wait(poller)
        worker.stop()
        await running
        for runtime in stack.runtimes:
            await stack.stop(runtime)
        await stack.audit()
        await client.close()
        for one in (core.live, core.tracker, core.client):
            await one.close()


@pytest.fixture
async def office(stack: Stack, tmp_path: Path) -> AsyncIterator[Office]:
    async with opened(stack, tmp_path) as one:
        one.server.joining.set_up(CHAT, creator=OLGA, topics=True)
        one.server.joining.join(STRANGER, CHAT)
        yield one


async def test_each_person_has_a_topic_in_which_the_office_answers(office: Office) -> None:
    people = office.server.people
    for person, account, name, words in ((1, MARIA, "Мария", "Можно?"), (2, BORIS, "Борис", "А мне?")):
        people.reply(account, await office.order(person), words)
        await office.gets(CHAT, f"{name} отвечает на «No classes»:\n{words}")
    (marias, boriss), names = office.topics, list(office.topics.values())
    assert names == ["Мария", "Борис"]
    question = await office.gets(CHAT, "Мария")
    people.write(OLGA, "Да", CHAT, marias)
    await office.gets(MARIA, "Ольга (Деканат) отвечает:\nДа")
    people.reply(OLGA, question["id"], "И завтра", CHAT)
    await office.gets(MARIA, "Ольга (Деканат) отвечает:\nИ завтра")
    people.edit(OLGA, (await office.gets(CHAT, "Да"))["id"], "Да, конечно", CHAT)
    await office.gets(MARIA, "Ольга (Деканат) исправляет:\nДа, конечно")
    people.write(STRANGER, "Привет", CHAT, boriss)
    await office.gets(CHAT, "Не передано: автор не состоит")
    people.reply(OLGA, (await office.gets(CHAT, "Привет"))["id"], "Зря", CHAT)  # stays among colleagues
    people.write(OLGA, "А вам нет", CHAT, boriss)
    await office.gets(BORIS, "Ольга (Деканат) отвечает:\nА вам нет")
    assert not any("Зря" in text or "Привет" in text for text in office.texts(MARIA) + office.texts(BORIS))
    thread = (await office.core.threads.page(TENANT, Inbox("office", "dean"), None, 9))[0][-1]
    await office.core.relay.to_person(thread, None, 8, Written("e", "Из консоли"), "")
    await office.gets(CHAT, "Деканат отвечает:\nИз консоли")
    assert office.texts(OLGA) == []  # her chat with the bot stays empty


async def test_a_deleted_topic_is_made_again_and_no_message_is_lost(office: Office) -> None:
    people = office.server.people
    people.reply(MARIA, await office.order(1), "Можно?")
    await office.gets(CHAT, "Мария отвечает")
    (first,) = office.topics
    people.delete_topic(CHAT, first)
    people.reply(MARIA, 1, "Всё ещё жду")
    await office.gets(CHAT, "Мария отвечает на «No classes»:\nВсё ещё жду")
    (second,) = office.topics
    assert second != first
    people.write(OLGA, "Да", CHAT, second)
    await office.gets(MARIA, "Ольга (Деканат) отвечает:\nДа")


async def test_couriers_of_one_bot_on_two_machines_make_one_topic(office: Office, tmp_path: Path) -> None:
    """The second one has another ADA_DATA, and makes its topic at the same moment."""
    settings = telegram_bot.Settings("1:secret", f"http://127.0.0.1:{office.server.port}")
    couriers = [await telegram_bot.open(settings, tmp_path / str(number)) for number in range(2)]
    for one in couriers:
        one.ids = StoredIds(office.stack.store, CHANNEL, one.account)
    topic = f"{CHAT}#0.abc#Мария"
    sent = await asyncio.gather(*(one.attempt([Message(topic, "Hello", "s", "r")]) for one in couriers))
    assert [outcome.reference.partition("/")[0] for (outcome,) in sent if isinstance(outcome, Sent)] == [
        str(name) for name in office.topics
    ] * 2
    for one in couriers:
        await one.close()


async def test_a_group_without_topics_gets_the_messages_of_all(office: Office) -> None:
    office.server.joining.set_up(CHAT, topics=False)
    people = office.server.people
    people.reply(MARIA, await office.order(1), "Можно?")
    await office.gets(CHAT, "Мария отвечает на «No classes»:\nМожно?")
    assert office.topics == {}
