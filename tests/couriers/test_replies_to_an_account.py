"""Replies to a person's account over the real protocol of Telegram (R-31)."""

import asyncio
from dataclasses import replace

from core.deliveries.received import ReceivedMessages
from core.model.delivery import NewDelivery, Sender
from core.model.people import Group, User
from core.orders import Caller, Order
from core.orders.order import Addressee
from core.services import Services
from core.threads import Inbox, ReplyWorker, Thread
from core.threads.incoming import Written
from core.threads.threads import ReplyRoute
from tests.couriers.telegram_provider import TelegramProvider, provider
from tests.support.stack import QUICK, TENANT, Stack
from tests.support.waiting import until

__all__ = ["provider"]

PHONE = "+79990000078"


async def test_a_reply_to_a_persons_account_reaches_the_sender_and_the_answer_comes_back(
    stack: Stack, provider: TelegramProvider
) -> None:
    await provider.use_user_account()
    runtime = await stack.courier(await provider.open(), replace(QUICK, tenant=TENANT))
    core = Services.on(stack.store)
    for user in (
        User(7, "Anna", role="trainer"),
        User(1, "Maria", role="student", locale="ru", contacts={"telegram": [PHONE]}),
    ):
        await core.directory.users.create(TENANT, user)
    await core.directory.groups.create(TENANT, Group("dean", "Dean's office"), [7])
    replies = ReplyWorker(stack.store, core.client, core.directory, core.threads, core.relay, "dean")
    await replies.open()
    worker = replies.worker()
    working = asyncio.create_task(worker.run())
    delivery = NewDelivery(TENANT, Sender(7), "No classes", (), ["telegram"], replies="sender")
    await core.sending.send(Order(delivery, [Addressee(1)]), Caller(TENANT, is_admin=True))
    received = ReceivedMessages(stack.store)
    await until(lambda: received.last(TENANT, "telegram", PHONE, 0))
    (message,) = provider.state.inbox("telegram")
    provider.server.write("100555", "Hello, old friend")  # nothing was sent there: it is private
    provider.server.write(message.address, "And tomorrow?", reply_to=int(message.reference))

    async def threads() -> list[Thread]:
        return (await core.threads.page(TENANT, Inbox("user", "7"), None, 10))[0]

    (thread,) = await until(threads)
    assert (thread.person.name, thread.way) == ("Maria", ReplyRoute("telegram", PHONE))
    assert thread.newest
    assert thread.newest.text == "And tomorrow?"
    await core.relay.to_person(thread, User(7, "Anna"), 7, Written("e1", "As usual"), "")
    await until(lambda: "Anna отвечает:\nAs usual" in provider.received(message.address))
    provider.server.write(message.address, "Thank you")
    await until(lambda: _has(core, thread, "Thank you"))
    assert await core.threads.page(TENANT, Inbox("office", "dean"), None, 10) == ([], None)
    provider.server.write(message.address, "СТОП")
    await until(lambda: "Больше не пишем вам сюда. Вернуть: СТАРТ" in provider.received(message.address))
    await until(lambda: _opt_out(core, ["telegram"]))
    before = len(provider.received(message.address))
    provider.server.write(message.address, "One more thing")
    await until(lambda: _has(core, thread, "One more thing"))
    provider.server.write(message.address, "СТАРТ")
    await until(lambda: _opt_out(core, []))
    await until(lambda: "Снова пишем вам сюда. Отказаться: СТОП" in provider.received(message.address))
    assert len(provider.received(message.address)) == before + 1, "no notice after STOP"
    worker.stop()
    await working
    await stack.stop(runtime)
    await core.client.close()


async def _has(core: Services, thread: Thread, text: str) -> bool:
    return text in [one.text for one in await core.threads.messages(await core.threads.find(TENANT, thread.id), 0, 9)]


async def _opt_out(core: Services, wanted: list[str]) -> bool:
    (maria,) = await core.directory.users.lookup(TENANT, [1])
    return maria is not None and list(maria.opt_out) == wanted
