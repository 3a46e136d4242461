"""Read marks over the real protocols: a person reads, and the history says so (D-37)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest

from core.deliveries.delivery_reports import DeliveryReports, EntryName, MessageReferences, Reference
from core.model.clock import Backoff
from core.model.delivery import Recipient, Strategy
from core.model.history_key import HistoryKey
from core.model.states import Status
from couriers.sending import ReadMark
from couriers.sending.runtime import Runtime
from couriers.sending.services import CourierOptions
from couriers.vk import courier as vk
from sandbox.state import Fault, Rule, SandboxState
from sandbox.vk import VkServer
from tests.couriers.telegram_provider import TelegramProvider, provider
from tests.support.every_verb import report_token
from tests.support.stack import FLOOR, TENANT, FakeCourier, Stack, people
from tests.support.waiting import until

__all__ = ["provider"]

QUICK = CourierOptions(max_sleep=FLOOR, backoff=Backoff(timedelta(milliseconds=10), timedelta(milliseconds=50), 4))
ANNA, BEN = "100001", "100002"
ANNAS_PHONE, BENS_PHONE = "+79990000078", "+79990000079"  # a person's account finds others by phone


def to(channel: str, *addresses: str) -> list[Recipient]:
    return [Recipient(address, contacts={channel: [address]}) for address in addresses]


async def statuses(stack: Stack, key: HistoryKey, channel: str) -> list[str]:
    return [one.outcomes[channel].status for one in (await stack.history(key)).recipients]


async def until_statuses(stack: Stack, key: HistoryKey, channel: str, *wanted: str) -> None:
    async def are_reached() -> bool:
        return await statuses(stack, key, channel) == list(wanted)

    await until(are_reached)


@pytest.fixture
async def vk_server(stack: Stack) -> AsyncIterator[VkServer]:
    """A VK sandbox whose courier, with long poll, runs on the stack."""
    server = VkServer(SandboxState())
    await server.start()
    courier = await vk.open(vk.Settings(server.token, server.url, long_poll=True), Path())
    runtime = await stack.courier(courier, QUICK)
    yield server
    if runtime in stack.runtimes:
        await stack.stop(runtime)
    await courier.close()
    await server.stop()


@pytest.fixture
async def user_runtime(stack: Stack, provider: TelegramProvider) -> AsyncIterator[Runtime]:
    """A Telegram courier with a person's account."""
    await provider.use_user_account()
    runtime = await stack.courier(await provider.open(), QUICK)
    yield runtime
    await stack.stop(runtime)


@pytest.mark.usefixtures("user_runtime")
async def test_a_read_mark_of_telegram_makes_the_messages_of_that_chat_read(
    stack: Stack, provider: TelegramProvider
) -> None:
    keys = []
    for people_of in ((ANNAS_PHONE,), (BENS_PHONE, ANNAS_PHONE)):
        keys.append((await stack.deliver(*to("telegram", *people_of), channels=("telegram",))).key)
        await stack.finished(keys[-1])
    assert provider.server.mark_read(provider.state.inbox("telegram")[0].address) == 1
    await until_statuses(stack, keys[0], "telegram", "read")
    await until_statuses(stack, keys[1], "telegram", "sent", "read")
    later = (await stack.deliver(*to("telegram", ANNAS_PHONE), channels=("telegram",), text="later")).key
    await stack.finished(later)
    assert await statuses(stack, later, "telegram") == ["sent"], "a mark covers only what came before it"


@pytest.mark.usefixtures("user_runtime")
async def test_read_marks_come_again_after_the_connection_to_telegram_was_lost(
    stack: Stack, provider: TelegramProvider
) -> None:
    key = (await stack.deliver(*to("telegram", ANNAS_PHONE), channels=("telegram",))).key
    await stack.finished(key)
    await provider.stop()
    await provider.start()
    again = (await stack.deliver(*to("telegram", ANNAS_PHONE), channels=("telegram",), text="again")).key
    await stack.finished(again)
    assert provider.server.mark_read(provider.state.inbox("telegram")[0].address) == 1
    await until_statuses(stack, key, "telegram", "read")
    await until_statuses(stack, again, "telegram", "read")


async def test_a_read_event_of_vk_makes_the_messages_of_that_dialog_read(stack: Stack, vk_server: VkServer) -> None:
    key = (await stack.deliver(*to("vk", ANNA, BEN), channels=("vk",))).key
    await stack.finished(key)
    assert vk_server.mark_read(BEN) == 1
    await until_statuses(stack, key, "vk", "sent", "read")
    assert vk_server.mark_read("777") == 0, "nothing was sent there"


async def test_a_refused_key_of_the_long_poll_is_replaced(stack: Stack, vk_server: VkServer) -> None:
    key = (await stack.deliver(*to("vk", ANNA), channels=("vk",))).key
    await stack.finished(key)
    vk_server.long_poll.forget_key()
    vk_server.long_poll.push("message_typing_state", {"from_id": 5})  # answers the request that waits
    await until(lambda: vk_server._state.counter("vk", "groups.getLongPollServer") == 2)
    vk_server.mark_read(ANNA)
    await until_statuses(stack, key, "vk", "read")


async def test_a_mark_in_a_chat_of_many_says_nothing_about_private_messages(stack: Stack, vk_server: VkServer) -> None:
    key = (await stack.deliver(*to("vk", ANNA, BEN), channels=("vk",))).key
    await stack.finished(key)
    in_a_chat = {"from_id": int(ANNA), "peer_id": 2_000_000_001, "read_message_id": 10**6}
    vk_server.long_poll.push("message_read", in_a_chat)
    vk_server.mark_read(BEN)
    await until_statuses(stack, key, "vk", "sent", "read")


async def test_a_read_mark_within_the_wait_spares_the_next_channel(stack: Stack, vk_server: VkServer) -> None:
    sms = FakeCourier("sms")
    await stack.courier(sms)
    both = [Recipient(name, contacts={"vk": [name], "sms": [name]}) for name in (ANNA, BEN)]
    wait = timedelta(hours=1)
    key = (await stack.deliver(*both, channels=("vk", "sms"), strategy=Strategy.FIRST, wait=wait)).key
    await until_statuses(stack, key, "vk", "sent", "sent")
    vk_server.mark_read(ANNA)
    await until_statuses(stack, key, "sms", "skipped", "queued")
    stack.advance_clock(timedelta(hours=2))
    await stack.finished(key)
    assert sms.addresses == [BEN]


async def test_a_courier_without_long_poll_asks_vk_for_no_events(stack: Stack) -> None:
    server = VkServer(state := SandboxState())
    await server.start()
    courier = await vk.open(vk.Settings(server.token, server.url), Path())
    await stack.courier(courier, QUICK)
    await stack.finished((await stack.deliver(*to("vk", ANNA), channels=("vk",))).key)
    assert state.counter("vk", "groups.getLongPollServer") == 0
    assert await stack.store.command("KEYS", "references:*") == []
    for runtime in stack.runtimes:
        await stack.stop(runtime)
    await courier.close()
    await server.stop()


# the index of references


async def delivered(
    stack: Stack,
) -> tuple[MessageReferences, Callable[[int], Reference], Callable[[], Awaitable[list[str]]]]:
    """References of one account, a message to the n-th recipient, and the statuses of all."""
    await stack.courier(FakeCourier())
    key = (await stack.deliver(*people(3))).key
    await stack.finished(key)
    references = MessageReferences(stack.store, DeliveryReports(stack.store), "echo", "ada")

    def message_to(number: int) -> Reference:
        name = EntryName(key.shard, key.suffix, "echo", 0, number + 1, number, 0, 1)
        return Reference("dialog", 10 + number, str(10 + number), name)

    return references, message_to, lambda: statuses(stack, key, "echo")


async def test_a_mark_that_overtakes_the_noting_of_its_message_is_not_lost(stack: Stack) -> None:
    references, message_to, shown = await delivered(stack)
    await references.mark_read("dialog", 11)
    await references.note([message_to(number) for number in range(3)])
    assert await shown() == ["read", "read", "sent"]


@pytest.mark.parametrize("shards", [16])
async def test_the_dialogs_of_an_account_are_noted_by_shard_and_read_one_by_one(stack: Stack) -> None:
    await stack.courier(FakeCourier())
    key = (await stack.deliver(*people(20))).key
    await stack.finished(key)
    references = MessageReferences(stack.store, DeliveryReports(stack.store), "echo", "ada")
    names = [EntryName(key.shard, key.suffix, "echo", 0, number + 1, number, 0, 1) for number in range(20)]
    await references.mark_read("dialog 3", 7)
    await references.note([Reference(f"dialog {n}", 7, str(n), name) for n, name in enumerate(names)])
    await references.mark_read("dialog 5", 6)
    await references.mark_read("dialog 8", 8)
    assert await references.report("dialog 9", Status.READ)
    shown = await statuses(stack, key, "echo")
    assert [number for number, status in enumerate(shown) if status == "read"] == [3, 8, 9]


async def test_marks_may_come_twice_and_in_any_order(stack: Stack) -> None:
    references, message_to, shown = await delivered(stack)
    await references.note([message_to(number) for number in range(3)])
    for number in (11, 10, 11):
        await references.mark_read("dialog", number)
    assert await shown() == ["read", "read", "sent"]
    left = await stack.store.command("ZRANGE", "references:{0}:echo:ada:dialog", 0, -1, "WITHSCORES")
    assert [int(number) for _, number in left] == [11, 12], "the mark, and what is not read yet"


async def test_the_index_of_a_dialog_keeps_its_newest_messages_for_a_month(stack: Stack) -> None:
    references, message_to, _ = await delivered(stack)
    await references.note([message_to(0)._replace(number=n, text=str(n)) for n in range(1, 251)])
    key = "references:{0}:echo:ada:dialog"
    assert await stack.store.command("ZCARD", key) == 100
    assert 29 < await stack.store.command("PTTL", key) / 86_400_000 <= 30


async def test_a_status_only_moves_forward(stack: Stack) -> None:
    await stack.courier(FakeCourier())
    key = (await stack.deliver(*people(1))).key
    await stack.finished(key)
    token = await report_token(stack, key)
    steps = [
        (Status.SENT, "sent"),
        (Status.DELIVERED, "delivered"),
        (Status.FAILED, "delivered"),
        (Status.READ, "read"),
        (Status.DELIVERED, "read"),
        (Status.SENT, "read"),
        (Status.FAILED, "read"),
    ]
    for reported, shown in steps:
        await stack.deliveries.record_report(token, reported, "")
        assert await statuses(stack, key, "echo") == [shown], reported


async def test_a_fault_of_the_read_marks_stops_no_message(stack: Stack, vk_server: VkServer) -> None:
    vk_server._state.add_rule(Rule("vk", Fault("not_json"), method="groups.getLongPollServer"))
    vk_server.long_poll.forget_key()
    vk_server.long_poll.push("message_typing_state", {"from_id": 5})
    key = (await stack.deliver(*to("vk", ANNA), channels=("vk",))).key
    assert (await stack.finished(key)).counts[Status.SENT] == 1


class FaultySource(FakeCourier):
    """Its read marks fail at first."""

    failures = 1

    async def read_marks(self) -> AsyncIterator[ReadMark]:
        self.failures -= 1
        if self.failures >= 0:
            raise RuntimeError("the provider changed its protocol")
        yield ReadMark("dialog", 10)
        await asyncio.Event().wait()


async def test_read_marks_go_on_after_a_fault_of_the_courier(stack: Stack) -> None:
    source = FaultySource()
    await stack.courier(source)
    key = (await stack.deliver(*people(1))).key
    await stack.finished(key)
    references = MessageReferences(stack.store, DeliveryReports(stack.store), "echo", "ada")
    name = EntryName(key.shard, key.suffix, "echo", 0, 1, 0, 0, 1)
    await references.note([Reference("dialog", 10, "10", name)])
    await until_statuses(stack, key, "echo", "read")
    assert (await stack.deliveries.read(key, TENANT)).recipients[0].outcomes["echo"].reference == "10"
