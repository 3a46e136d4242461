"""Whatever is wrong with a request as HTTP, and whatever befalls us, is a problem document."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, cast

import pytest

from core.history.deliveries import Deliveries
from core.redis.store import Store
from delivery.http.options import Options
from delivery.services import Services
from tests.crash.cuttable_link import CuttableLink
from tests.delivery.conftest import Api, BrokenService, delivery_body
from tests.support.servers import Server
from tests.support.waiting import until

pytestmark = pytest.mark.row("D-27")


@pytest.mark.parametrize(
    "path", ["/nowhere", "/v1", "/v1/", "/v1/deliveries/", "/v2/deliveries", "/docs/", "//", "/%00"]
)
async def test_an_address_that_is_not_there_is_not_found(api: Api, path: str) -> None:
    for method in ("GET", "POST", "PROPFIND"):
        answer = await api.call(method, path)
        assert (answer.status, answer.code) == (404, "ROUTE_NOT_FOUND")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/deliveries", "GET, POST"),
        ("POST", "/v1/deliveries/0.42.1763712000000000000", "DELETE, GET, PATCH"),
        ("DELETE", "/livez", "GET"),
        ("PROPFIND", "/v1/track", "POST"),
        ("OPTIONS", "/v1/queue/tasks/0.1:bury", "GET, POST"),
    ],
)
async def test_a_method_that_an_address_does_not_have_is_told_which_it_has(
    api: Api, method: str, path: str, allowed: str
) -> None:
    answer = await api.call(method, path)
    assert (answer.status, answer.code, answer.headers["Allow"]) == (405, "METHOD_NOT_ALLOWED", allowed)


async def test_a_huge_body_is_refused_whether_it_says_so_or_not(api: Api) -> None:
    before = await api.keys()
    body = json.dumps(delivery_body(text="a" * 2**20)).encode()

    async def silent() -> Any:
        for start in range(0, len(body), 2**16):
            yield body[start : start + 2**16]

    said = await api.call("POST", "/v1/deliveries", body)
    unsaid = await api.call("POST", "/v1/deliveries", data=silent(), headers={"Content-Type": "application/json"})
    packed, bomb = [
        await api.call("POST", "/v1/deliveries", gzip.compress(body * times), headers={"Content-Encoding": "gzip"})
        for times in (1, 20)
    ]
    for answer in (said, unsaid, packed, bomb):
        assert (answer.status, answer.code) == (413, "BODY_TOO_LARGE")
    assert await api.keys() == before


class TestLimit:
    """A body that came whole with its head is measured too, and as it is unpacked."""

    @pytest.fixture
    def options(self) -> Options:
        return Options(body_limit=1000)

    async def test_a_body_beyond_a_small_limit_is_refused(self, api: Api) -> None:
        body = json.dumps(delivery_body(text="a" * 1000)).encode()
        for sent, headers in ((body, {}), (gzip.compress(body), {"Content-Encoding": "gzip"})):
            answer = await api.call("POST", "/v1/deliveries", sent, headers=headers)
            assert (answer.status, answer.code) == (413, "BODY_TOO_LARGE")
        assert (await api.call("POST", "/v1/deliveries", delivery_body())).status == 202


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=cp1251"]
)
async def test_only_json_is_taken(api: Api, kind: str) -> None:
    answer = await api.call(
        "POST", "/v1/deliveries", json.dumps(delivery_body()).encode(), headers={"Content-Type": kind}
    )
    assert (answer.status, answer.code) == (415, "CONTENT_TYPE_UNSUPPORTED")


@pytest.mark.parametrize("kind", ["application/json; charset=UTF-8", "Application/JSON"])
async def test_json_may_be_said_in_other_ways(api: Api, kind: str) -> None:
    answer = await api.call(
        "POST", "/v1/deliveries", json.dumps(delivery_body()).encode(), headers={"Content-Type": kind}
    )
    assert answer.status == 202


async def exchanged(api: Api, sent: bytes) -> tuple[bytes, bytes]:
    """Bytes to the server as they are; the head and the body of its answer."""
    host, port = api.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(sent)
    answer = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return head, body


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (b"nonsense\r\n\r\n", 400, "REQUEST_MALFORMED"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: \x01\r\n\r\n", 400, "REQUEST_MALFORMED"),
        (b"GET /" + b"1" * 20_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 400, "REQUEST_MALFORMED"),
        (b"POST /v1/track HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n", 400, "REQUEST_MALFORMED"),
        (b"GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: tea\r\n\r\n", 417, "EXPECTATION_FAILED"),
    ],
)
async def test_what_is_no_http_is_a_problem_all_the_same(api: Api, sent: bytes, status: int, code: str) -> None:
    head, body = await exchanged(api, sent)
    assert head.split(b" ")[1] == str(status).encode()
    assert b"application/problem+json" in head
    assert json.loads(body)["code"] == code


async def test_a_caller_may_wait_for_leave_to_send_his_body(api: Api) -> None:
    answer = await api.call("POST", "/v1/deliveries", delivery_body(), expect100=True)
    assert answer.status == 202


async def test_a_body_that_breaks_off_is_no_fault_of_ours(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    head = f"POST /v1/deliveries HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {api.secret}\r\n"
    host, port = api.url.removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"{head}Content-Length: 1000\r\n\r\n{{".encode())
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    assert (await api.call("GET", "/livez")).status == 200
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


class TestFault:
    """A fault of ours: the caller learns that there was one, and nothing of our insides."""

    @pytest.fixture
    def services(self, services: Services) -> Services:
        return replace(services, deliveries=cast(Deliveries, BrokenService()))

    async def test_it_is_told_without_its_cause_and_logged_with_it(
        self, api: Api, caplog: pytest.LogCaptureFixture
    ) -> None:
        answer = await api.call("GET", "/v1/deliveries/0.42.1763712000000000000")
        assert (answer.status, answer.code) == (500, "INTERNAL")
        assert b"hunter2" not in answer.body
        assert "hunter2" in caplog.text


async def test_while_the_store_is_away_every_call_says_so_and_the_process_lives(api: Api, server: Server) -> None:
    made = await api.call("POST", "/v1/deliveries", delivery_body())
    server.kill()
    calls = [
        ("POST", "/v1/deliveries", delivery_body()),
        ("GET", made.headers["Location"], None),
        ("GET", "/v1/deliveries", None),
        ("DELETE", made.headers["Location"], None),
        ("POST", "/v1/history-keys", {"sender": {"id": 1}}),
        ("GET", "/v1/queue", None),
        ("GET", "/v1/queue/tasks", None),
        ("GET", "/readyz", None),
    ]
    headers = {"Idempotency-Key": "a"}
    answers = await asyncio.gather(*(api.call(*call, headers=headers) for call in calls))
    for call, answer in zip(calls, answers, strict=True):
        assert (answer.status, answer.code) == (503, "STORE_UNAVAILABLE"), call
        assert answer.headers["Retry-After"] == "1"
    assert (await api.call("GET", "/livez")).status == 200
    server.start()
    assert (await api.call("GET", "/readyz")).status == 200
    assert (await api.call("GET", made.headers["Location"])).json["id"] == made.json["id"]


class TestCutOff:
    """The store is behind a link that can be cut between what it did and its answer."""

    @pytest.fixture
    async def link(self, server: Server) -> AsyncIterator[CuttableLink]:
        link = CuttableLink(server.place.port)
        await link.start()
        yield link
        await link.stop()

    @pytest.fixture
    async def store(self, server: Server, link: CuttableLink) -> AsyncIterator[Store]:
        opened = await Store.open(server.url_through(link.port), patience=0.5)
        yield opened
        await opened.close()

    async def test_who_is_told_that_it_may_have_been_done_may_repeat_it_and_it_was(
        self, api: Api, server: Server, link: CuttableLink
    ) -> None:
        """With “nothing was written” he would ask for it once more, under another key."""
        words = {"body": delivery_body(text="tomorrow"), "headers": {"Idempotency-Key": "a"}}
        link.block_replies(trigger=b"tomorrow")
        asked = asyncio.create_task(api.call("POST", "/v1/deliveries", **words))
        await until(lambda: any(key.startswith("deliveries:") for key in server.all_keys()))
        link.redirect(1)  # nobody is there
        unclear = await asked
        assert (unclear.status, unclear.code) == (503, "STORE_UNAVAILABLE")
        assert unclear.json["detail"].startswith("It may have been done. A repeat with the same Idempotency-Key")
        assert "Nothing was written" not in unclear.json["detail"]
        link.redirect(server.place.port)
        (done,) = (await api.call("GET", "/v1/deliveries")).json["deliveries"]
        assert (await api.call("POST", "/v1/deliveries", **words)).json["id"] == done["id"]
        assert len((await api.call("GET", "/v1/deliveries")).json["deliveries"]) == 1


async def test_on_a_full_store_a_write_is_told_that_nothing_was_written_and_nothing_was(api: Api) -> None:
    before = await api.keys()
    await api.store.redis.config_set("maxmemory", 1)
    for headers in ({}, {"Idempotency-Key": "a"}):
        refused = await api.call("POST", "/v1/deliveries", delivery_body(), headers=headers)
        assert (refused.status, refused.code, refused.headers["Retry-After"]) == (503, "STORE_FULL", "10")
        assert refused.json["detail"].startswith("Nothing was written.")
        assert "may have been done" not in refused.json["detail"]
    assert await api.keys() == before


class TestLimits:
    @pytest.fixture
    def options(self) -> Options:
        return Options(max_recipients=2)

    async def test_an_operator_may_allow_fewer_recipients(self, api: Api) -> None:
        refused = await api.call("POST", "/v1/deliveries", delivery_body(recipients=[{"id": n} for n in range(3)]))
        assert refused.code == "TOO_MANY_RECIPIENTS"
        twice = await api.call("POST", "/v1/deliveries", delivery_body(recipients=[{"id": n % 2} for n in range(9)]))
        assert twice.json["recipients"] == 2
