"""A real Kannel with the configuration of docs/connect-sms.md calls the API for each SMS that it receives."""

import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from core.updates import Update, tube_of
from delivery.http.options import Inbound, Options
from tests.delivery.conftest import Api
from tests.support.kannel import PORTS, Kannel, free_ports
from tests.support.waiting import until

GUIDE = Path(__file__).parents[2] / "docs" / "connect-sms.md"
SECRET = "a-secret"


@pytest.fixture
def options() -> Options:
    return Options(inbound=Inbound(sms_secret=SECRET))


def documented_url(api: Api) -> str:
    """The get-url of the guide, with the secret and the address of this API."""
    documented = re.search(r'get-url = "([^"]+)"', GUIDE.read_text())
    assert documented
    return documented[1].replace("http://127.0.0.1:8080", api.url).replace("secret=…", f"secret={SECRET}")


@pytest.fixture
async def gateway(api: Api, tmp_path: Path) -> AsyncIterator[Kannel]:
    if shutil.which("bearerbox") is None:
        pytest.skip("needs the package kannel")
    running = Kannel(tmp_path, free_ports(*PORTS))
    try:
        await running.start(documented_url(api))
        await running.connect_network()
        yield running
    finally:
        await running.stop()


async def written(api: Api) -> list[tuple[str, str]]:
    """Who wrote what, as the queue has it."""
    found = await api.call("GET", f"/v1/queue/tasks?tube={tube_of('sms')}")
    updates = [msgspec.json.decode(task["body"], type=Update) for task in found.json["tasks"]]
    return [(update.address, update.text) for update in updates]


@pytest.mark.row("D-24")
async def test_an_sms_that_a_real_kannel_receives_becomes_an_update_letter_for_letter(
    api: Api, gateway: Kannel
) -> None:
    texts = ["IVT-101 No lecture & no lab + 100% {x}?", "ИВТ-101 Пары не будет"]
    for number, text in enumerate(texts):
        await gateway.receive("79990000001", "79000000000", text)
        await until(lambda number=number: _has(api, number + 1), within=20)  # type: ignore[misc]
    assert await written(api) == [("+79990000001", text) for text in texts]


@pytest.mark.row("D-24")
async def test_an_sms_in_ucs_2_arrives_letter_for_letter(api: Api, gateway: Kannel) -> None:
    text = "ИВТ-101 Пары не будет 😀"
    await gateway.receive_ucs_2("79990000001", "79000000000", text)
    await until(lambda: _has(api, 1), within=20)
    assert await written(api) == [("+79990000001", text)]


async def _has(api: Api, count: int) -> bool:
    return len(await written(api)) >= count


async def test_a_real_kannel_sends_nothing_back_by_itself(api: Api, gateway: Kannel) -> None:
    await gateway.receive("79990000001", "79000000000", "hello")
    await until(lambda: _has(api, 1), within=20)
    await gateway.receive("79990000002", "79000000000", "the same")
    await until(lambda: _has(api, 2), within=20)
    assert gateway.delivered == []
