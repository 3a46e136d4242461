"""Linking over HTTP: the status and code of each case, and Retry-After of the limits."""

import pytest

from core.directory.linking import ALPHABET
from tests.delivery.conftest import Api
from tests.support.outbox import Outbox
from tests.support.servers import several_shards

__all__ = ["several_shards"]

LINK = {"email": "anna@example.org", "channel": "telegram", "address": "100001"}


@pytest.fixture
async def person(api: Api) -> None:
    await api.call("POST", "/v1/users", {"id": 1, "email": "anna@example.org", "contacts": {"sms": "+79991112233"}})


@pytest.mark.usefixtures("person")
async def test_a_mailed_code_links_the_contact(api: Api, outbox: Outbox) -> None:
    requested = await api.call("POST", "/v1/links", LINK)
    assert (requested.status, requested.json.keys()) == (202, {"id", "expires_at"})
    assert outbox.codes[0] not in str(requested.json)
    path = f"/v1/links/{requested.json['id']}/confirm"
    confirmed = await api.call("POST", path, {"code": outbox.codes[0].lower()})
    assert (confirmed.status, confirmed.json) == (200, {"user": 1, "channel": "telegram", "address": "100001"})
    found = await api.call("GET", "/v1/users?contact=telegram:100001")
    assert found.json["users"][0]["id"] == 1
    again = await api.call("POST", path, {"code": outbox.codes[0]})
    assert (again.status, again.code) == (409, "CONTACT_LINKED")


@pytest.mark.usefixtures("person")
@pytest.mark.parametrize(
    ("given", "status", "code"),
    [
        ({"email": "stranger@example.org"}, 404, "EMAIL_UNKNOWN"),
        ({"channel": "sms", "address": "8 999 111 22 33"}, 409, "CONTACT_LINKED"),
        ({"channel": "pigeon"}, 400, "UNKNOWN_CHANNEL"),
        ({"email": ""}, 400, "TOO_SHORT"),
        ({"email": "anna@example.org\r\nBcc: x@example.org"}, 422, "EMAIL_MALFORMED"),
        ({"email": "nonsense"}, 422, "EMAIL_MALFORMED"),
        ({"address": "7,9991E+10"}, 422, "ADDRESS_MALFORMED"),
    ],
)
async def test_each_refusal_of_a_request_has_its_own_status_and_code(
    api: Api, outbox: Outbox, given: dict[str, str], status: int, code: str
) -> None:
    refused = await api.call("POST", "/v1/links", {**LINK, **given})
    assert (refused.status, refused.code) == (status, code)
    assert outbox.sent == []


@pytest.mark.usefixtures("person")
async def test_each_refusal_of_a_code_has_its_own_status_and_code(api: Api, outbox: Outbox) -> None:
    missing = await api.call("POST", "/v1/links/0123/confirm", {"code": "ABCDEF"})
    assert (missing.status, missing.code) == (404, "CODE_MISSING")
    path = f"/v1/links/{(await api.call('POST', '/v1/links', LINK)).json['id']}/confirm"
    wrong = next(letter for letter in ALPHABET if letter != outbox.codes[0][0]) + outbox.codes[0][1:]
    api.store.clock_offset_ms = 24 * 60_000 + 1
    expired = await api.call("POST", path, {"code": outbox.codes[0]})
    assert (expired.status, expired.code) == (410, "CODE_EXPIRED")
    api.store.clock_offset_ms = 0
    for _ in range(5):
        refused = await api.call("POST", path, {"code": wrong})
        assert (refused.status, refused.code) == (403, "CODE_WRONG")
    void = await api.call("POST", path, {"code": outbox.codes[0]})
    assert (void.status, void.code) == (429, "TOO_MANY_GUESSES")


@pytest.mark.usefixtures("person")
async def test_too_many_codes_are_refused_with_the_time_to_wait(api: Api) -> None:
    for _ in range(5):
        await api.call("POST", "/v1/links", LINK)
    refused = await api.call("POST", "/v1/links", LINK)
    assert (refused.status, refused.code) == (429, "TOO_MANY_MAILS")
    assert 3500 < int(refused.headers["Retry-After"]) <= 3600


@pytest.mark.usefixtures("person")
async def test_a_mail_server_that_is_down_is_a_503_and_leaves_no_code(api: Api, outbox: Outbox) -> None:
    outbox.is_down = True
    refused = await api.call("POST", "/v1/links", LINK)
    assert (refused.status, refused.code, refused.headers["Retry-After"]) == (503, "MAIL_UNAVAILABLE", "30")
    assert not [key for key in await api.keys() if key.startswith("link:")]
