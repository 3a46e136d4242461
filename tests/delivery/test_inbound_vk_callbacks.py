"""VK's callback API, as the sandbox plays it, calls the API of Ada."""

from collections.abc import AsyncIterator

import pytest

from core.updates.events import TUBE, decode
from delivery.http.options import Inbound, Options
from sandbox.state import SandboxState
from sandbox.vk import VkServer
from sandbox.vk.events import NotConfirmed
from tests.delivery.conftest import Api
from tests.support.serving import serving
from tests.support.waiting import until

SECRET, CONFIRMATION, PERSON = "word", "f1a2b3c4", "200001"


@pytest.fixture
def options() -> Options:
    return Options(inbound=Inbound({"vk": SECRET}, {"vk": CONFIRMATION}))


@pytest.fixture
async def community() -> AsyncIterator[VkServer]:
    async with serving(VkServer(SandboxState())) as server:
        yield server


async def written(api: Api) -> list[str]:
    found = await api.call("GET", f"/v1/queue/tasks?tube={TUBE}")
    return [decode(task["body"])["event_text"] for task in found.json["tasks"]]


async def test_the_address_is_confirmed_and_then_gets_what_people_write(api: Api, community: VkServer) -> None:
    await community.events.connect(f"{api.url}/v1/inbound/vk", SECRET, CONFIRMATION)
    community.people.deny(PERSON)
    community.write(PERSON, "/help")
    community.people.allow(PERSON)
    assert await until(lambda: written(api)) == ["/help"]
    await until(lambda: community._state.counter("vk", "callbacks") == 3)


@pytest.mark.parametrize(("secret", "confirmation"), [("another", CONFIRMATION), (SECRET, "another")])
async def test_an_address_with_another_secret_or_text_is_not_confirmed(
    api: Api, community: VkServer, secret: str, confirmation: str
) -> None:
    with pytest.raises(NotConfirmed):
        await community.events.connect(f"{api.url}/v1/inbound/vk", secret, confirmation)
