"""The poller of VK over the sandbox's long poll: every event once, with one poller of several processes."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from cli.commands.parts.bot import ReceivingBots
from cli.processes.noted_process import noted_process
from cli.settings.settings import load
from core.deliveries.channels import Channels
from core.errors import SetupError
from core.monitoring.overview import Matter, MatterKind, Overviews
from core.processes.register import BotFaults
from core.queue import QueueClient, Task
from core.redis.cancel_and_wait import cancel_and_wait
from core.services import Services
from core.updates.bot_calls import BotCalls, PressAnswer, TypingMark
from core.updates.events import TUBE, Event, decode
from core.webhooks.http_client import WebhookClient
from core.webhooks.registry import Webhooks
from couriers import vk as vk_provider
from couriers.inbound import events_ingress
from couriers.receiving import poller
from couriers.receiving.poller import Page, PollerLease
from couriers.vk.client import TokenRefused, VkClient, VkLongPoll, VkUnavailable, find_community
from couriers.vk.receive import VkCalls
from sandbox.state import SandboxState
from sandbox.vk import VkServer
from tests.support.receiving import poll, running
from tests.support.serving import serving
from tests.support.stack import TENANT, Stack
from tests.support.waiting import stays, until

PERSON = "200001"


@pytest.fixture
async def vk() -> AsyncIterator[VkServer]:
    async with serving(VkServer(SandboxState())) as server:
        yield server


@asynccontextmanager
async def vk_client(token: str, url: str) -> AsyncIterator[VkClient]:
    client = VkClient(token, url)
    yield client
    await client.close()


@asynccontextmanager
async def polling(stack: Stack, vk: VkServer) -> AsyncIterator[None]:
    """A process that polls."""
    ingress = events_ingress(stack.store, QueueClient(stack.store), TENANT)[vk_provider.CHANNEL]
    async with vk_client(vk.token, vk.url) as client:
        task = asyncio.create_task(poll(stack.store, VkLongPoll(client), ingress))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def events_in(stack: Stack) -> list[Event]:
    tasks = await stack.take(TUBE, 100)
    for task in tasks:
        await stack.queue.settle(task)
    return [decode(task.body) for task in tasks]


async def read(stack: Stack, *texts: str) -> None:
    """Wait until these texts are in the queue, take them, and check that nothing else was there."""
    found: list[str] = []

    async def has_all() -> bool:
        found.extend(event["event_text"] for event in await events_in(stack))
        return len(found) >= len(texts)

    await until(has_all)
    assert found == list(texts)


async def until_polled(vk: VkServer, times: int = 1) -> None:
    await until(lambda: vk._state.counter("vk", "longpoll") >= times)


async def test_a_message_of_a_person_becomes_an_event(stack: Stack, vk: VkServer) -> None:
    async with polling(stack, vk):
        await until_polled(vk)
        vk.write(PERSON, "/help")
        await until_polled(vk, 2)
        (event,) = await events_in(stack)
        assert (event["channel"], event["user_id"], event["event_text"]) == ("vk", int(PERSON), "/help")


async def test_what_is_written_while_no_process_polls_is_read_by_the_next_one(stack: Stack, vk: VkServer) -> None:
    async with polling(stack, vk):
        await until_polled(vk)
        vk.write(PERSON, "one")
        await read(stack, "one")
    vk.write(PERSON, "two")
    async with polling(stack, vk):
        await read(stack, "two")


async def test_an_event_with_half_a_surrogate_pair_is_skipped_with_one_log_line(
    stack: Stack, vk: VkServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with polling(stack, vk):
        await until_polled(vk)
        vk.write(PERSON, "half \ud83d")
        vk.write(PERSON, "one")
        await read(stack, "one")
    assert len([line for line in caplog.messages if "is ignored: EVENT_MALFORMED" in line]) == 1


async def test_a_poller_whose_provider_is_away_is_a_matter_until_it_is_back(stack: Stack) -> None:
    async with serving(VkServer(SandboxState())) as vk:
        token, url = vk.token, vk.url
    webhooks = Webhooks(stack.store, stack.queue, WebhookClient(allow_private=True))
    overviews = Overviews(stack.store, stack.queue, Channels(stack.store), webhooks)
    ingress = events_ingress(stack.store, QueueClient(stack.store), TENANT)[vk_provider.CHANNEL]

    async def not_polling() -> list[Matter]:
        stack.store.tubes_changed.set()  # the entry of the process is written at once
        return [one for one in (await overviews.show()).matters if one.kind is MatterKind.NOT_POLLING]

    async with noted_process(stack.store, "bot", "vk") as process, vk_client(token, url) as client:
        process.runs()
        polled = asyncio.create_task(poll(stack.store, VkLongPoll(client), ingress))
        (matter,) = await until(not_polling)
        assert (matter.subject, matter.reason.startswith("polling pauses: VK cannot be reached")) == ("vk", True)
        polled.cancel()
        await asyncio.gather(polled, return_exceptions=True)
        await until(lambda: is_empty(not_polling()))


async def is_empty(found: Awaitable[list[Matter]]) -> bool:
    return not await found


async def test_of_two_processes_one_polls_and_the_other_takes_over(stack: Stack, vk: VkServer) -> None:
    async with polling(stack, vk):
        await until_polled(vk)
        async with polling(stack, vk):
            await stays(lambda: vk._state.counter("vk", "groups.getLongPollServer") == 1, during=1)
    async with polling(stack, vk), polling(stack, vk):
        vk.write(PERSON, "one")
        await read(stack, "one")
        assert vk._state.counter("vk", "groups.getLongPollServer") == 2


async def test_a_key_that_is_no_longer_valid_is_replaced_and_nothing_is_lost(stack: Stack, vk: VkServer) -> None:
    async with polling(stack, vk):
        await until_polled(vk)
        vk.long_poll.forget_key()
        vk.write(PERSON, "one")
        vk.write(PERSON, "two")
        await read(stack, "one", "two")


async def test_a_server_that_counts_anew_is_followed_from_the_position_that_it_names(
    stack: Stack, vk: VkServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with polling(stack, vk):
        await until_polled(vk)
        vk.write(PERSON, "one")
        await read(stack, "one")
        (key,) = [key async for key in stack.redis.scan_iter("dialog:*:polled:*")]
    await stack.redis.set(key, "1000")
    async with polling(stack, vk):
        await until(lambda: _position_is(stack, str(vk.long_poll.ts)))
        vk.write(PERSON, "two")
        await read(stack, "two")
    assert len([line for line in caplog.messages if "counts its events anew" in line]) == 1


async def test_an_event_that_came_as_a_callback_too_is_one(stack: Stack, vk: VkServer) -> None:
    callbacks = events_ingress(stack.store, QueueClient(stack.store), TENANT)[vk_provider.CHANNEL]
    async with polling(stack, vk):
        await until_polled(vk)
        vk.write(PERSON, "one")
        answer = await vk.long_poll.answer({"key": vk.long_poll.key, "ts": "1", "wait": "0"})
        await until_polled(vk, 2)
        assert await callbacks.put(answer["updates"][-1])
        await read(stack, "one")


async def test_a_refused_token_ends_the_poller_with_what_to_do(stack: Stack, vk: VkServer) -> None:
    async with vk_client("vk1.a.wrong", vk.url) as client:
        ingress = events_ingress(stack.store, QueueClient(stack.store), TENANT)[vk_provider.CHANNEL]
        with pytest.raises(TokenRefused, match="ADA_VK_TOKEN") as refused:
            await poll(stack.store, VkLongPoll(client), ingress)
        assert "wrong" not in str(refused.value)


async def test_a_server_that_cannot_be_reached_is_reported_without_its_address() -> None:
    async with vk_client("vk1.a.token", "http://127.0.0.1:9/method/") as client:
        with pytest.raises(VkUnavailable) as unavailable:
            await find_community(client)
    assert str(unavailable.value) == (
        "VK cannot be reached (ClientConnectorError): check the network and ADA_VK_API_URL"
    )


async def test_a_call_that_does_not_reach_vk_is_made_again() -> None:
    async with vk_client("vk1.a.token", "http://127.0.0.1:9/method/") as client:
        assert await VkCalls(client).make(PressAnswer("1", 1, 1)) is False


async def test_the_mark_that_the_bot_is_writing_is_shown(vk: VkServer) -> None:
    async with vk_client(vk.token, vk.url) as client:
        assert await VkCalls(client).make(TypingMark(int(PERSON)))
        assert await VkCalls(client).make(TypingMark("nowhere")), "a refusal is not repeated"
    assert vk._state.counter("vk", "messages.setActivity") == 2


async def test_the_position_moves_on_with_each_event_that_was_put(stack: Stack, vk: VkServer) -> None:
    """VK keeps a thousand events; a process that began at an old position would lose those in between."""
    async with polling(stack, vk):
        await until_polled(vk)
        for number in range(12):
            vk.write(PERSON, str(number))
            await until(lambda: _position_is(stack, str(vk.long_poll.ts)))
        await read(stack, *map(str, range(12)))


async def _position_is(stack: Stack, ts: str) -> bool:
    return [await stack.redis.get(key) async for key in stack.redis.scan_iter("dialog:*:polled:*")] == [ts]


async def test_with_scenarios_a_press_is_an_event_and_its_answer_is_shown(stack: Stack, vk: VkServer) -> None:
    queue = QueueClient(stack.store)
    ingress = events_ingress(stack.store, queue, TENANT)[vk_provider.CHANNEL]
    await ingress.open()
    async with vk_client(vk.token, vk.url) as client:
        make = VkCalls(client).make
        answer = PressAnswer("unknown", int(PERSON), int(PERSON))
        assert await make(answer)  # a press that VK no longer knows is no fault
        calls, events = BotCalls(queue, TENANT, vk_provider.CHANNEL), list[Event]()
        await calls.open()
        worker = calls.worker(make)
        polled = poll(stack.store, VkLongPoll(client), ingress)
        parts = [asyncio.create_task(part) for part in (worker.run(), polled)]
        try:
            await until_polled(vk)
            keyboard = {"inline": True, "buttons": [[{"action": BUTTON}]]}
            message = {"peer_id": PERSON, "random_id": 1, "message": "?", "keyboard": json.dumps(keyboard)}
            await client.call("messages.send", **message)
            for text in ("", "Записано"):
                query = vk.people.press(PERSON, 1, "да")
                await until(lambda: read_press(stack, query, events))  # noqa: B023 - awaited at once
                assert await calls.answer_press(events[-1], text)
                assert not await calls.answer_press(events[-1], "another answer"), "a press has one answer"
                shown = {"query": query, "text": text}
                await until(lambda: vk.people.answers(PERSON)[-1:] == [shown])  # noqa: B023
        finally:
            await cancel_and_wait(*parts)
    event = events[0]
    assert (event["kind"], event["callback_data"], event["user_id"]) == ("callback", "да", int(PERSON))


async def read_press(stack: Stack, query: str, events: list[Event]) -> bool:
    """Add the events that came; return whether the last is this press."""
    events += [decode(body) for body in await stack.finish_all(TUBE)]
    return bool(events) and events[-1].get("callback_id") == query


BUTTON = {"type": "callback", "label": "Да", "payload": {"data": "да"}}


async def test_the_bot_of_a_folder_is_polled_and_a_wrong_one_stops_alone(
    stack: Stack, vk: VkServer, tmp_path: Path
) -> None:
    for tenant, token in (("school-a", "wrong"), ("school-b", vk.token)):
        (tmp_path / tenant / "scenarios").mkdir(parents=True)
        (tmp_path / tenant / ".env").write_text(f"ADA_VK_TOKEN={token}\n")
    bots = bots_of(stack, tmp_path, ADA_VK_API_URL=vk.url)
    async with running(bots):
        await until(lambda: BotFaults(stack.store).of("school-a"))
        await until_polled(vk)
        vk.write(PERSON, "/start")
        task = await until(lambda: _event(stack))
    assert task
    assert (task.tenant, decode(task.body)["event_text"]) == ("school-b", "/start")
    assert not await BotFaults(stack.store).of("school-b")


async def _event(stack: Stack) -> Task | None:
    return next(iter(await stack.take(TUBE)), None)


async def test_the_bots_of_folders_have_no_webhook(stack: Stack, tmp_path: Path) -> None:
    bots = bots_of(stack, tmp_path, ADA_MAX_WEBHOOK_URL="https://ada.example.org")
    with pytest.raises(SetupError, match="remove ADA_MAX_WEBHOOK_URL"):
        await bots.run(asyncio.Event(), lambda **_: None)


def bots_of(stack: Stack, folder: Path, **settings: str) -> ReceivingBots:
    """The bots of a folder of bots in VK."""
    core = Services.on(stack.store)
    return ReceivingBots(load({"ADA_SCENARIOS": str(folder), **settings}, folder), "vk", core)


async def test_a_process_that_does_not_reach_the_provider_lets_another_one_poll(stack: Stack) -> None:
    lease, other = PollerLease(stack.store), PollerLease(stack.store)
    holding = [asyncio.create_task(one.run()) for one in (lease, other)]
    lease.want("vk.1")
    await lease.acquire()
    other.want("vk.1")
    lease.give_up()
    await asyncio.wait_for(other.acquire(), 20)
    await cancel_and_wait(*holding)


async def test_a_process_that_ends_leaves_the_right_to_poll_to_the_one_that_has_it_now(stack: Stack) -> None:
    lease, other = PollerLease(stack.store), PollerLease(stack.store)
    holding, holding_now = [asyncio.create_task(one.run()) for one in (lease, other)]
    lease.want("vk.1")
    await lease.acquire()
    (key,) = [key async for key in stack.redis.scan_iter("dialog:*:poller:*")]
    await stack.redis.delete(key)  # as if the process had been frozen
    other.want("vk.1")
    await asyncio.wait_for(other.acquire(), 20)
    await cancel_and_wait(holding)
    assert await stack.redis.exists(key)
    await cancel_and_wait(holding_now)


async def test_a_server_that_refuses_writes_is_logged_once_and_again_after_it_took_some(
    stack: Stack, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a full disk each bot wrote a line to it every second."""
    monkeypatch.setattr(poller, "_PAUSE", 0.01)
    lease = PollerLease(stack.store)
    lease.want("vk.1")

    async def refused(least: int = 0) -> int:
        count = int((await stack.redis.info("errorstats")).get("errorstat_OOM", {}).get("count", 0))
        return count if count >= least else 0

    for lines in (1, 2):
        await stack.redis.config_set("maxmemory", "1")
        before, holding = await refused(), asyncio.create_task(lease.run())
        await until(partial(refused, before + 3))
        await stack.redis.config_set("maxmemory", "0")
        await lease.acquire()
        await cancel_and_wait(holding)
        assert [one.getMessage()[:15] for one in caplog.records if "polling" in one.getMessage()] == lines * [
            "polling pauses:"
        ]


class OnePage:
    """A provider with one event before the position 7."""

    faults: tuple[type[Exception], ...] = ()

    async def sign_in(self) -> str:
        return "vk.1"

    async def poll(self, position: str) -> Page:
        if position:
            await asyncio.Event().wait()
        return Page([{"text": "Hello"}], "7")


async def test_an_event_that_a_killed_process_was_putting_is_polled_again(stack: Stack) -> None:
    begun, got = asyncio.Event(), asyncio.Queue[object]()

    class Hangs:
        async def put(self, raw: object) -> bool:
            begun.set()
            await asyncio.Event().wait()
            return True

    class Takes:
        async def put(self, raw: object) -> bool:
            got.put_nowait(raw)
            return True

    killed = asyncio.create_task(poll(stack.store, OnePage(), Hangs()))
    await asyncio.wait_for(begun.wait(), 20)
    await cancel_and_wait(killed)
    following = asyncio.create_task(poll(stack.store, OnePage(), Takes()))
    assert await asyncio.wait_for(got.get(), 20) == {"text": "Hello"}
    await cancel_and_wait(following)
