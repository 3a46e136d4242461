"""What the client of VK makes of each answer: the result, or the error that says who can help."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from couriers.vk.client import TokenRefused, VkClient, VkRefused, VkUnavailable, find_community
from tests.support.http_double import HttpDouble

BROWSER = "Confirm the account in a browser."
LATER = "The token may be right; Ada tries again. Other programs that use this token share its limit."
NO_COMMUNITY = "VK does not accept this token for a community (no community): check ADA_VK_TOKEN"


@pytest.fixture
async def vk_api() -> AsyncIterator[HttpDouble]:
    async with HttpDouble() as server:
        yield server


@pytest.fixture
async def client(vk_api: HttpDouble) -> AsyncIterator[VkClient]:
    client = VkClient("secret", f"{vk_api.url}/method")
    yield client
    await client.close()


def error(code: int) -> dict[str, Any]:
    return {"error": {"error_code": code, "error_msg": "no"}}


async def test_a_call_returns_the_response(vk_api: HttpDouble, client: VkClient) -> None:
    vk_api.answers(200, {"response": [1]})
    assert await client.call("messages.send", peer_id=5) == [1]
    assert vk_api.requests[0].path_qs.startswith("/method/messages.send?")
    assert "peer_id=5" in vk_api.requests[0].text


@pytest.mark.parametrize(
    ("body", "fault", "text"),
    [
        (error(5), TokenRefused, "VK does not accept the token: check ADA_VK_TOKEN"),
        (error(27), TokenRefused, "VK does not accept the token: check ADA_VK_TOKEN"),
        (error(28), TokenRefused, "VK does not accept the token: check ADA_VK_TOKEN"),
        (error(100), VkRefused, "users.get: error 100"),
        ([], VkUnavailable, "the answer has another form than VK's"),
        ("<html>", VkUnavailable, "VK cannot be reached (NotJson): check the network and ADA_VK_API_URL"),
    ],
)
async def test_an_answer_without_a_response_is_an_error(
    vk_api: HttpDouble, client: VkClient, body: Any, fault: type[Exception], text: str
) -> None:
    vk_api.answers(200, body)
    with pytest.raises(fault) as raised:
        await client.call("users.get")
    assert (type(raised.value), str(raised.value)) == (fault, text)
    assert len(vk_api.requests) == 1


@pytest.mark.parametrize("found", [{"groups": [{"id": 5}, {"id": 6}]}, [{"id": 5}]])
async def test_the_community_of_a_token_is_found(vk_api: HttpDouble, client: VkClient, found: Any) -> None:
    vk_api.answers(200, {"response": found})
    assert await find_community(client) == 5


@pytest.mark.parametrize(
    ("body", "fault", "text"),
    [
        ({"response": {"groups": []}}, TokenRefused, NO_COMMUNITY),
        ({"response": {"groups": [{"id": "5"}]}}, TokenRefused, NO_COMMUNITY),
        ({"response": {"groups": {"id": 5}}}, TokenRefused, NO_COMMUNITY),
        ({"response": 5}, TokenRefused, NO_COMMUNITY),
        ([], TokenRefused, NO_COMMUNITY),
        ({"error": "no"}, TokenRefused, NO_COMMUNITY),
        *((error(code), TokenRefused, f"(error {code}: no): check ADA_VK_TOKEN") for code in (5, 27, 28)),
        *((error(code), VkUnavailable, f"(error {code}: no). {LATER}") for code in (1, 6, 9, 10, 29, 950)),
        *((error(code), VkUnavailable, f"(error {code}: no). {BROWSER}") for code in (14, 17, 3300)),
        (error(15), VkRefused, "(error 15: no): check ADA_VK_TOKEN"),
        ("<html>", VkUnavailable, "VK cannot be reached (NotJson): check the network and ADA_VK_API_URL"),
    ],
)
async def test_a_token_without_a_community_is_an_error_that_says_who_can_help(
    vk_api: HttpDouble, client: VkClient, body: Any, fault: type[Exception], text: str
) -> None:
    vk_api.answers(200, body)
    with pytest.raises(fault) as raised:
        await find_community(client)
    assert type(raised.value) is fault
    assert str(raised.value).endswith(text)
