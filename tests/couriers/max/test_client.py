"""What the client of MAX makes of each answer: the result, or the error that says who can help."""

from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from typing import Any

import pytest

from core.errors import SetupError
from couriers.max.client import Answer, MaxClient, MaxRefused, MaxTokenRefused, MaxUnavailable, check_token
from tests.support.http_double import HttpDouble


@pytest.fixture
async def max_api() -> AsyncIterator[HttpDouble]:
    async with HttpDouble() as server:
        yield server


@pytest.fixture
async def client(max_api: HttpDouble) -> AsyncIterator[MaxClient]:
    client = MaxClient("secret", max_api.url)
    yield client
    await client.close()


async def test_a_call_carries_the_token_and_returns_the_object(max_api: HttpDouble, client: MaxClient) -> None:
    max_api.answers(200, {"user_id": 1})
    assert await client.call("POST", "messages", {"chat_id": "5"}, {"text": "hello"}) == {"user_id": 1}
    (request,) = max_api.requests
    assert (request.method, request.path_qs) == ("POST", "/messages?chat_id=5")
    assert (request.headers["Authorization"], request.text) == ("secret", '{"text": "hello"}')


@pytest.mark.parametrize(
    ("status", "body", "fault", "text"),
    [
        (401, {}, MaxTokenRefused, "check ADA_MAX_TOKEN"),
        (403, {"code": "verify.token"}, MaxTokenRefused, "check ADA_MAX_TOKEN"),
        (403, {"code": "access.denied", "message": "no"}, MaxRefused, "access.denied: no"),
        (200, {"code": "attachment.not.ready", "message": 5}, MaxRefused, "attachment.not.ready: "),
        (200, {"error": "closed"}, MaxRefused, "closed: "),
        (404, {}, MaxRefused, "404: "),
        (200, [], MaxRefused, "200: "),
        (499, {}, MaxRefused, "499: "),
        (302, {}, MaxRefused, "302: "),
        (500, {}, MaxUnavailable, "GET /me: 500"),
        (503, {"code": "service.unavailable"}, MaxUnavailable, "GET /me: 503 service.unavailable"),
        (429, {"code": "too.many.requests"}, MaxUnavailable, "GET /me: 429 too.many.requests"),
        (502, "<html>", MaxUnavailable, "MAX cannot be reached (NotJson): check the network and ADA_MAX_API_URL"),
    ],
)
async def test_an_answer_without_a_result_is_an_error(
    max_api: HttpDouble, client: MaxClient, status: int, body: Any, fault: type[Exception], text: str
) -> None:
    max_api.answers(status, body, {"Location": "/elsewhere"})
    with pytest.raises(fault) as raised:
        await client.call("GET", "me")
    assert str(raised.value).endswith(text)
    assert len(max_api.requests) == 1, "neither repeated nor redirected"


@pytest.mark.parametrize(
    ("status", "headers", "is_throttle", "after"),
    [
        (429, {"Retry-After": "7"}, True, 7),
        (429, {}, True, 0),
        (429, {"Retry-After": "soon"}, True, 0),
        (429, {"Retry-After": "100000"}, True, 0),
        (429, {"Retry-After": "²"}, True, 0),
        (503, {"Retry-After": "30"}, False, 30),
    ],
)
async def test_a_throttle_has_the_pause_that_max_names(
    max_api: HttpDouble, client: MaxClient, status: int, headers: Mapping[str, str], is_throttle: bool, after: float
) -> None:
    max_api.answers(status, {}, headers)
    with pytest.raises(MaxUnavailable) as raised:
        await client.call("GET", "me")
    assert (raised.value.is_throttle, raised.value.after) == (is_throttle, after)


async def test_an_address_without_a_server_is_unavailable() -> None:
    client = MaxClient("secret", "http://127.0.0.1:9", timedelta(seconds=5))
    with pytest.raises(MaxUnavailable, match=r"MAX cannot be reached \(ClientConnectorError\)"):
        await client.call("GET", "me")
    await client.close()


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (401, {}, "check ADA_MAX_TOKEN"),
        (403, {"code": "access.denied", "message": "no"}, r"now \(access.denied: no\): a new bot waits"),
        (500, {}, r"now \(GET /me: 500\): a new bot waits"),
        (200, {"user_id": "1"}, "does not answer as expected: check ADA_MAX_API_URL"),
    ],
)
async def test_a_bot_that_cannot_sign_in_is_a_setup_error(
    max_api: HttpDouble, client: MaxClient, status: int, body: Any, message: str
) -> None:
    max_api.answers(status, body)
    with pytest.raises(SetupError, match=message):
        await check_token(client)


@pytest.mark.parametrize(
    ("sent", "received"), [("<retval>1</retval>", "<retval>1</retval>"), ('{"token": "x"}', {"token": "x"})]
)
async def test_a_file_goes_to_the_named_address_without_the_token(
    max_api: HttpDouble, client: MaxClient, sent: str, received: Any
) -> None:
    max_api.answers(200, sent)
    assert await client.upload(f"{max_api.url}/upload", "a.png", "image/png", b"PNG") == Answer(200, received)
    (request,) = max_api.requests
    assert "Authorization" not in request.headers
    assert 'filename="a.png"' in request.text
    assert "Content-Type: image/png" in request.text
