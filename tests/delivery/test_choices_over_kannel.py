"""A message with buttons goes out over a real Kannel, and the number that comes back presses one of them."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from core.model.delivery import NewDelivery, Recipient, Sender
from core.queue import QueueClient
from core.redis.store import Store
from core.updates.events import TUBE
from couriers.inbound import events_ingress
from couriers.sending import Button, Content
from couriers.sending.runtime import Runtime
from couriers.sms import courier as sms
from delivery.http.context import ApiServices
from tests.delivery.conftest import Api
from tests.delivery.test_inbound_kannel import gateway, options
from tests.support.kannel import Kannel
from tests.support.stack import QUICK
from tests.support.waiting import until

__all__ = ["gateway", "options"]

PHONE = "+79990000001"
DAYS = Content(inline=[[Button("Today", "today"), Button("Tomorrow", "tomorrow")]])


@pytest.fixture
async def services(services: ApiServices, store: Store) -> ApiServices:
    """What is written goes to the scenarios of a bot."""
    ingress = events_ingress(store, QueueClient(store), "default")
    await ingress["sms"].open()
    return replace(services, ingress=ingress)


@pytest.fixture
async def courier(api: Api, gateway: Kannel, tmp_path: Path) -> AsyncIterator[None]:
    settings = sms.Settings(gateway.url, gateway.username, gateway.password, "79000000000")
    runtime = Runtime(api.store, "sms", QUICK)
    await runtime.add(await sms.open(settings, tmp_path))
    running = asyncio.create_task(runtime.run())
    await until(lambda: runtime.claims > 0)
    yield
    runtime.stop()
    await running


async def events(api: Api) -> list[dict[str, Any]]:
    found = await api.call("GET", f"/v1/queue/tasks?tube={TUBE}")
    return [msgspec.json.decode(task["body"]) for task in found.json["tasks"]]


async def test_a_person_who_answers_an_sms_with_a_number_presses_a_button(
    api: Api, gateway: Kannel, courier: None
) -> None:
    recipient = Recipient(1, contacts={"sms": [PHONE]})
    question = NewDelivery("default", Sender(1), "When?", [recipient], ["sms"], content=DAYS)
    await api.services.core.deliveries.enqueue(question)
    await until(lambda: len(gateway.delivered) == 3)
    first, *others = gateway.delivered  # the fake network writes a line for each line of the text
    assert [first.split(" ", 3)[3], *others] == ["When?", "1. Today", "2. Tomorrow"]
    await gateway.receive(PHONE.removeprefix("+"), "79000000000", "2")
    found = await until(lambda: events(api))
    assert [(one["channel"], one["user_id"], one["kind"], one["callback_data"]) for one in found] == [
        ("sms", PHONE, "callback", "tomorrow")
    ]
