"""A scenario begins when a person's words were passed on to an inbox."""

import asyncio
from typing import Any

import pytest

from core.deliveries.received import ReceivedMessages
from core.errors import StoreUnavailable
from core.model.people import User
from core.services import Services
from core.threads import Inbox, ReplyWorker
from core.updates.events import TUBE, Events
from tests.scenarios.execution.conftest import Installation
from tests.support.stack import TENANT, person
from tests.support.waiting import until

BOT = """
ill:
  actions:
    - {type: send, text: "Get well: {event_text} {thread_inbox} {delivery_text}"}
"""


async def test_a_reply_that_was_passed_on_begins_a_scenario_once(
    bare: Installation, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    core = Services.on(bare.stack.store)
    await bare.start_courier()
    bare.write("scenarios/s.yaml", BOT)
    bare.write("triggers.yaml", "reply: {contains: {ill: s.ill}}")
    for user in (User(7, "Anna", role="trainer"), User(1, "Maria", contacts={"echo": ["a1"]})):
        await core.directory.users.create(TENANT, user)
    replies = ReplyWorker(core.store, core.client, core.directory, core.threads, core.relay)
    await replies.open()
    accepted = await bare.stack.deliver(person(1, "echo"), replies="sender")
    await bare.stack.finished(accepted.key)
    (address,) = bare.courier.addresses
    received = ReceivedMessages(core.store)
    message = (await until(lambda: received.last(TENANT, "echo", address, 0))).reference  # type: ignore[union-attr]
    await write(core, address, "I am ill", message)  # no bot has triggers for replies yet
    monkeypatch.setattr(core.client.queue, "put_once", fails_once_after(core.client.queue.put_once))
    worker = replies.worker()
    running = asyncio.create_task(worker.run())
    await until(lambda: has(core, 1))
    await bare.start()
    await write(core, address, "I am ill again", message)
    await write(core, address, "Thanks", message)
    await until(lambda: has(core, 3))
    (thread,), _ = await core.threads.page(TENANT, Inbox("user", "7"), None, 9)
    wanted = "Get well: I am ill again user:7 hello"
    await until(lambda: wanted in bare.texts)
    await until(lambda: is_idle(core))
    assert [text for text in bare.texts if text.startswith("Get well")] == [wanted]
    assert thread.messages == 3
    assert [line for line in caplog.messages if "Thanks" in line or "ill" in line.split()] == []
    worker.stop()
    await running
    await core.client.close()


def fails_once_after(put_once: Any) -> Any:
    """Return the function that puts tasks, and fails once after it has put an event of the bot, as a process that is
    killed then.
    """
    failed: list[bool] = []

    async def put(tube: str, *task: Any, **names: Any) -> bool:
        is_new = bool(await put_once(tube, *task, **names))
        if tube == TUBE and not failed:
            failed.append(is_new)
            raise StoreUnavailable("killed")
        return is_new

    return put


async def write(core: Services, address: str, text: str, message: str) -> None:
    """Write a reply to a message."""
    event = {"id": text.replace(" ", "-"), "channel": "echo", "kind": "text", "source": "bot", "user_id": address}
    await Events(core.client, TENANT).put_reply({**event, "event_text": text, "reply_message_id": message})


async def has(core: Services, number: int) -> bool:
    found, _ = await core.threads.page(TENANT, Inbox("user", "7"), None, 9)
    return [one.messages for one in found] == [number]


async def is_idle(core: Services) -> bool:
    tubes = (await core.queue.inspector.stats()).tubes
    return not any(tubes[name].live for name in ("replies", TUBE, "echo") if name in tubes)
