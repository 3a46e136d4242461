"""Signing in to the console: the cookie, its end, and which requests it is good for."""

import re
from http.cookies import SimpleCookie
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from core.admission.api_keys import ApiKeys
from core.redis.connection import Word
from delivery.http.options import Options
from tests.delivery.conftest import Api, ApiResponse
from tests.delivery.test_authentication import a_key
from tests.support.servers import several_shards
from tests.support.waiting import until

__all__ = ["several_shards"]


def cookie_of(response: ApiResponse) -> SimpleCookie:
    return SimpleCookie(response.headers["Set-Cookie"])


class Browser:
    """A client with the cookie of a session, which says where its pages come from."""

    def __init__(self, api: Api, signed_in: ApiResponse) -> None:
        self.api = api
        self.secret = cookie_of(signed_in)["ada_session"].value
        self.headers = {"Sec-Fetch-Site": "same-origin"}

    async def is_signed_out(self) -> bool:
        return (await self.call("GET", "/v1/me")).status == 401

    async def upload(self, name: str, content: bytes) -> ApiResponse:
        return await self.call("POST", f"/v1/files?name={name}", content)

    async def call(self, method: str, path: str, body: object = None) -> ApiResponse:
        given = {"Cookie": f"ada_session={self.secret}", **self.headers}
        url, sent = self.api.url + path, {"data": body} if isinstance(body, bytes) else {"json": body}
        async with self.api.session.request(method, url, headers=given, **sent) as response:
            raw = await response.read()
            is_json = "json" in response.headers.get("Content-Type", "") and raw
            return ApiResponse(
                response.status, response.headers, raw, await response.json(content_type=None) if is_json else None
            )


async def signed_in_with_key(api: Api, *scopes: str) -> Browser:
    _, secret = await api.services.api_keys.create("office", scopes)
    return Browser(api, await sign_in(api, {"key": secret}))


async def sign_in(api: Api, body: object, **headers: str) -> ApiResponse:
    return await api.call("POST", "/v1/sessions", body, headers={"Authorization": "", **headers})


async def test_a_key_signs_in_and_its_secret_and_that_of_the_session_are_stored_nowhere(api: Api) -> None:
    key, secret = await api.services.api_keys.create("office", ["read"])
    response = await sign_in(api, {"key": secret})
    cookie = cookie_of(response)["ada_session"]
    assert (response.status, response.json["kind"], response.json["id"]) == (201, "key", key.id)
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Strict", "/")
    assert (cookie["secure"], int(cookie["max-age"])) == ("", 12 * 3600)
    assert re.fullmatch(r"\d+\.[\w-]{43}", cookie.value)
    assert cookie.value not in response.body.decode()
    stored = [(name, await api.store.redis.dump(name) or b"") for name in await api.keys()]
    for hidden in (secret, cookie.value):
        assert not [name for name, dumped in stored if hidden in name or hidden.encode() in dumped]
    (session,) = [name for name in await api.keys() if name.startswith("session:")]
    assert 0 < await api.store.redis.pttl(session) <= 12 * 3600 * 1000


async def test_the_session_of_a_key_reads_and_changes_what_the_key_may_and_no_more(api: Api) -> None:
    browser = await signed_in_with_key(api, "manage")
    me = (await browser.call("GET", "/v1/me")).json
    assert (me["name"], me["scopes"], me["rights"], me["quota"]) == ("office", ["manage"], ["people"], None)
    assert (await browser.call("POST", "/v1/groups", {"id": "A-1"})).status == 201
    assert (await browser.call("GET", "/v1/groups/A-1")).json["id"] == "A-1"
    refused = await browser.call("GET", "/v1/deliveries")
    assert (refused.status, refused.code) == (403, "SCOPE_MISSING")


SAME, OTHER = "same-origin", "cross-site"
ORIGINS = [
    ({}, False),
    ({"Sec-Fetch-Site": SAME}, True),
    ({"Sec-Fetch-Site": SAME, "Origin": "http://evil.example"}, True),
    ({"Sec-Fetch-Site": OTHER}, False),
    ({"Sec-Fetch-Site": "same-site"}, False),
    ({"Sec-Fetch-Site": "none"}, False),
    ({"Sec-Fetch-Site": ""}, False),
    ({"Sec-Fetch-Site": OTHER, "Origin": "http://HOST"}, False),
    ({"Origin": "http://HOST"}, True),
    ({"Origin": "http://HOST:1"}, False),
    ({"Origin": "http://evil.example"}, False),
    ({"Origin": "http://HOST.evil.example"}, False),
    ({"Origin": "http://evil.example/http://HOST"}, False),
    ({"Origin": "null"}, False),
    ({"Origin": "http://[broken"}, False),
    ({"Origin": "https://console.example"}, True),
    ({"Origin": "https://other.console.example"}, False),
]


class TestBehindAProxy:
    @pytest.fixture
    def options(self) -> Options:
        return Options(public_url="https://console.example/ada")

    @pytest.mark.parametrize(("given", "is_allowed"), ORIGINS, ids=str)
    async def test_a_session_changes_something_only_from_a_page_of_this_server(
        self, api: Api, given: dict[str, str], is_allowed: bool
    ) -> None:
        browser = await signed_in_with_key(api, "manage")
        host = api.url.removeprefix("http://")
        headers = {name: value.replace("HOST", host) for name, value in given.items()}
        browser.headers = headers
        response = await browser.call("POST", "/v1/groups", {"id": "A-1"})
        assert (response.status == 201) is is_allowed, response.body
        assert is_allowed or response.code == "CROSS_SITE"
        assert (await browser.call("GET", "/v1/groups")).status == 200, "reading is safe"
        with_key = await api.call("POST", "/v1/groups", {"id": "A-2"}, headers=headers)
        assert with_key.status == 201, "a page of another site does not know a key"
        signed_in = await sign_in(api, {"key": api.secret}, **headers)
        assert (signed_in.status == 201) is (is_allowed or not headers), "nor is anybody signed in by another site"

    async def test_the_cookie_is_secure_if_the_page_came_over_https(self, api: Api) -> None:
        plain = await sign_in(api, {"key": api.secret}, Origin=api.url)
        secure = await sign_in(api, {"key": api.secret}, Origin="https://console.example")
        assert (cookie_of(plain)["ada_session"]["secure"], cookie_of(secure)["ada_session"]["secure"]) == ("", True)


async def test_signing_out_ends_this_session_or_all_of_the_key(api: Api) -> None:
    _, secret = await api.services.api_keys.create("office", ["read"])
    first, second, third = [Browser(api, await sign_in(api, {"key": secret})) for _ in range(3)]
    stranger = await signed_in_with_key(api, "read")
    response = await first.call("DELETE", "/v1/sessions")
    assert (response.status, cookie_of(response)["ada_session"]["max-age"]) == (204, "0")
    assert [(await one.call("GET", "/v1/me")).status for one in (first, second)] == [401, 200]
    assert (await second.call("DELETE", "/v1/sessions?all")).status == 204
    assert [(await one.call("GET", "/v1/me")).status for one in (second, third, stranger)] == [401, 401, 200]
    assert (await first.call("GET", "/v1/me")).code == "SESSION_ENDED"
    names = [name for name in await api.keys() if name.startswith("session")]
    assert len(names) == 2, "that of the stranger and its list"


async def test_a_session_that_begins_while_all_are_ended_ends_with_them(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, secret = await api.services.api_keys.create("office", ["read"])
    first, command = Browser(api, await sign_in(api, {"key": secret})), api.store.command

    async def ends_all_first(*words: Word) -> Any:
        if words[0] == "SET" and str(words[1]).startswith("session:"):
            monkeypatch.undo()
            assert (await first.call("DELETE", "/v1/sessions?all")).status == 204
        return await command(*words)

    monkeypatch.setattr(api.store, "command", ends_all_first)
    assert (await sign_in(api, {"key": secret})).code == "SESSION_ENDED"
    assert [name for name in await api.keys() if name.startswith("session")] == []


@pytest.mark.parametrize("secret", ["0.x", "4.x", "5.x", "99999.x", f"{'9' * 200}.x", "-1.x", "٣.x", ".x", "x"])
async def test_a_secret_that_was_made_up_signs_nobody_in(api: Api, secret: str) -> None:
    """Whatever shard it names."""
    assert await api.services.sessions.find(secret) is None
    for proof, code in (({"link": secret}, "LINK_USED"), ({"code_id": secret, "code": "ABCDEF"}, "CODE_WRONG")):
        assert (await sign_in(api, proof)).code == code


async def test_a_revoked_key_loses_its_session(api: Api) -> None:
    """The key is revoked in another process: here only the store knows."""
    browser = await signed_in_with_key(api, "read")
    assert (await browser.call("GET", "/v1/me")).status == 200
    await ApiKeys(api.store).revoke((await browser.call("GET", "/v1/me")).json["id"])
    await until(browser.is_signed_out)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"key": "ada_nobody"}, 401, "KEY_UNKNOWN"),
        ({}, 400, "ONE_FIELD_WANTED"),
        ({"key": 7}, 400, "WRONG_TYPE"),
        ({"key": ""}, 400, "TOO_SHORT"),
        ({"key": "x" * 257}, 400, "TOO_LONG"),
        ({"key": "x", "more": 1}, 400, "UNKNOWN_FIELD"),
        ([], 400, "WRONG_TYPE"),
        ({"key": "x" * 5000}, 413, "BODY_TOO_LARGE"),
    ],
    ids=str,
)
async def test_a_wrong_request_signs_nobody_in(api: Api, body: object, status: int, code: str) -> None:
    response = await sign_in(api, body)
    assert (response.status, response.code) == (status, code)
    assert "Set-Cookie" not in response.headers


class TestTimezone:
    """The console shows and plans times in the zone of the tenant."""

    @pytest.fixture
    def options(self) -> Options:
        return Options(timezone=ZoneInfo("Europe/Moscow"), tenant_timezones={"theirs": ZoneInfo("Asia/Tokyo")})

    async def test_me_names_the_zone_of_the_tenant_or_else_of_the_installation(self, api: Api) -> None:
        theirs = await a_key(api, "read", tenant="theirs")
        zones = [(await one.call("GET", "/v1/me")).json["timezone"] for one in (api, theirs)]
        assert zones == ["Europe/Moscow", "Asia/Tokyo"]
