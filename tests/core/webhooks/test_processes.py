"""Real processes of `serve` send webhooks; they and the server are killed."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, web

from tests.core.webhooks.receiver import Receiver
from tests.support.servers import Server
from tests.support.stack import FakeCourier, Stack, people
from tests.support.waiting import stays, until
from tests.system.crash.process import AdaProcess

KEY = "ada_webhooks"
TENANT = "default"


class Senders:
    """Processes of `serve` on one server."""

    def __init__(self, server: Server, directory: Path) -> None:
        self._server = server
        self._directory = directory
        self.processes: list[AdaProcess] = []

    async def start(self, **settings: str) -> str:
        """Start a process; return its address when it is ready."""
        own = {
            "ADA_REDIS_URL": self._server.url,
            "ADA_DATA": str(self._directory / "data"),
            "ADA_HTTP": "127.0.0.1:0",
            "ADA_API_KEY": KEY,
            "ADA_WEBHOOK_ALLOW_PRIVATE": "1",
        }
        log = self._directory / f"serve-{len(self.processes)}.log"
        self.processes.append(AdaProcess(("serve",), {**own, **settings}, log))
        return str((await self.processes[-1].ready())["http"])

    def kill(self) -> None:
        for process in self.processes:
            process.kill()
        self.processes.clear()


async def add_webhook(address: str, url: str) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {KEY}"}
    async with ClientSession(headers=headers) as session:
        async with session.post(f"{address}/v1/webhooks", json={"url": url, "events": ["outcome", "finished"]}) as made:
            created: dict[str, Any] = await made.json()
    assert made.status == 201, created
    return created


@pytest.fixture
async def core(own_server: Server) -> AsyncIterator[Stack]:
    opened = await Stack.open(own_server)
    yield opened
    await opened.close()


@pytest.fixture
async def senders(own_server: Server, tmp_path: Path) -> AsyncIterator[Senders]:
    made = Senders(own_server, tmp_path)
    yield made
    made.kill()


async def deliver(core: Stack, count: int) -> set[str]:
    """Deliveries to two people each; returns their ids."""
    made = [await core.deliver(*people(2), tenant=TENANT) for _ in range(count)]
    return {accepted.key.id for accepted in made}


async def test_no_event_is_lost_when_the_sender_and_the_server_are_killed(
    core: Stack, senders: Senders, own_server: Server, receiver: Receiver
) -> None:
    """The receiver gets each message at least once, with one id for each, although everything is killed on the way."""

    async def slow(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(0.01)
        return web.Response()

    receiver.answer = slow
    webhook = await add_webhook(await senders.start(), receiver.url())
    await core.courier(FakeCourier())
    wanted = await deliver(core, 40)
    await until(lambda: len(receiver.calls) > 10)
    senders.kill()
    wanted |= await deliver(core, 10)
    await senders.start()
    seen = len(receiver.calls)
    await until(lambda: len(receiver.calls) > seen + 10)
    own_server.kill()
    own_server.start()
    wanted |= await deliver(core, 10)
    await until(lambda: receiver.finished() == wanted, within=40)
    await until(lambda: len(receiver.copies()) == 60 * 3)
    for call in receiver.calls:
        call.verify(webhook["secret"])


async def test_several_processes_share_the_work_and_send_each_message_once(
    core: Stack, senders: Senders, receiver: Receiver
) -> None:
    address = await senders.start()
    await senders.start()
    await add_webhook(address, receiver.url())
    await core.courier(FakeCourier())
    wanted = await deliver(core, 60)
    await until(lambda: receiver.finished() == wanted)
    await until(lambda: len(receiver.calls) >= 180)
    await stays(lambda: set(receiver.copies().values()) == {1}, during=0.5)


async def test_a_stopped_process_ends_at_once_and_the_next_one_goes_on_at_once(
    core: Stack, senders: Senders, receiver: Receiver
) -> None:
    await add_webhook(await senders.start(), receiver.url())
    await core.courier(FakeCourier())
    first = await deliver(core, 1)
    await until(lambda: receiver.finished() == first)
    senders.processes[0].terminate()
    assert await senders.processes[0].wait(within=20) == 0
    await senders.start()
    second = await deliver(core, 1)
    await until(lambda: receiver.finished() == first | second)


async def test_private_addresses_are_refused_without_the_setting(senders: Senders, receiver: Receiver) -> None:
    address = await senders.start(ADA_WEBHOOK_ALLOW_PRIVATE="0")
    headers = {"Authorization": f"Bearer {KEY}"}
    async with ClientSession(headers=headers) as session:
        body = {"url": receiver.url(), "events": ["finished"]}
        async with session.post(f"{address}/v1/webhooks", json=body) as refused:
            assert (refused.status, (await refused.json())["code"]) == (400, "WEBHOOK_TARGET_FORBIDDEN")
