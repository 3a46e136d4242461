"""A real Kannel with the configuration of docs/connect-sms.md calls the API for each SMS that it receives."""

import asyncio
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import unquote_plus

import pytest

from core.model.people import Group, User
from core.updates.events import TUBE, decode
from couriers.sending.runtime import Runtime
from couriers.sms import courier as sms
from delivery.http.options import Inbound, Options
from scenarios.execution.opening import ScenarioOptions
from tests.delivery.conftest import Api
from tests.support.kannel import Kannel
from tests.support.paths import ROOT
from tests.support.receiving import answering
from tests.support.stack import QUICK
from tests.support.waiting import until

GUIDE = ROOT / "docs" / "connect-sms.md"
SECRET = "a-secret"


@pytest.fixture
def options() -> Options:
    return Options(inbound=Inbound({"sms": SECRET}))


def documented_url(api: Api) -> str:
    """The get-url of the guide, with the secret and the address of this API."""
    documented = re.search(r'get-url = "([^"]+)"', GUIDE.read_text())
    assert documented
    return documented[1].replace("http://127.0.0.1:8080", api.url).replace("secret=…", f"secret={SECRET}")


@pytest.fixture
async def gateway(api: Api, tmp_path: Path) -> AsyncIterator[Kannel]:
    if shutil.which("bearerbox") is None:
        pytest.skip("needs the package kannel")
    running = Kannel(tmp_path)
    try:
        await running.start(documented_url(api))
        await running.connect_network()
        yield running
    finally:
        await running.stop()


async def written(api: Api) -> list[tuple[str, str]]:
    """Who wrote what, as the queue has it."""
    found = await api.call("GET", f"/v1/queue/tasks?tube={TUBE}")
    events = [decode(task["body"]) for task in found.json["tasks"]]
    return [(event["user_id"], event["event_text"]) for event in events]


async def test_an_sms_that_a_real_kannel_receives_becomes_an_event_letter_for_letter(api: Api, gateway: Kannel) -> None:
    texts = ["IVT-101 No lecture & no lab + 100% {x}?", "ИВТ-101 Пары не будет"]
    for number, text in enumerate(texts):
        await gateway.receive("79990000001", "79000000000", text)
        await until(lambda number=number: _has(api, number + 1))  # type: ignore[misc]
    assert sorted(await written(api)) == sorted(("+79990000001", text) for text in texts)


async def test_an_sms_in_ucs_2_arrives_letter_for_letter(api: Api, gateway: Kannel) -> None:
    text = "ИВТ-101 Пары не будет 😀"
    await gateway.receive_ucs_2("79990000001", "79000000000", text)
    await until(lambda: _has(api, 1))
    assert await written(api) == [("+79990000001", text)]


async def test_a_teacher_with_a_telephone_writes_to_a_group_and_gets_the_result_over_a_real_kannel(
    api: Api, gateway: Kannel, tmp_path: Path
) -> None:
    directory = api.services.core.directory
    await directory.users.create("default", User(1, "Анна", None, "trainer", "en", {"sms": ["+79990000001"]}))
    await directory.users.create("default", User(2, contacts={"sms": ["+79990000002"]}))
    await directory.groups.create("default", Group("g1", "IVT-101"), [2])
    await directory.ownerships.own("default", 1, "group", "g1")
    settings = sms.Settings(gateway.url, gateway.username, gateway.password, "79000000000")
    runtime = Runtime(api.store, "sms", QUICK)
    await runtime.add(await sms.open(settings, tmp_path))
    sending = asyncio.create_task(runtime.run())
    async with answering(api.services.core, ScenarioOptions("default", linking=api.services.linking)):
        await gateway.receive("79990000001", "79000000000", "ivt-101 No lecture today")
        await until(lambda: len(gateway.delivered) == 3)
    runtime.stop()
    await sending
    sent = sorted((line.split(" ", 3)[1], unquote_plus(line.split(" ", 3)[3])) for line in gateway.delivered)
    assert sent == [
        ("+79990000001", "Accepted. IVT-101, recipients: 1."),
        ("+79990000001", "Result. IVT-101: everybody was reached, 1 of 1."),
        ("+79990000002", "No lecture today"),
    ]


async def _has(api: Api, count: int) -> bool:
    return len(await written(api)) >= count


async def test_a_real_kannel_sends_nothing_back_by_itself(api: Api, gateway: Kannel) -> None:
    await gateway.receive("79990000001", "79000000000", "hello")
    await until(lambda: _has(api, 1))
    await gateway.receive("79990000002", "79000000000", "the same")
    await until(lambda: _has(api, 2))
    assert gateway.delivered == []
