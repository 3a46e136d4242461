"""Malformed requests, unavailable stores and internal errors: each becomes a problem document."""

import asyncio
import gzip
import json
import re
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from typing import Any, cast

import pytest

from core.deliveries.deliveries import Deliveries
from core.directory import Directory
from core.orders import Sending
from core.redis.store import Store
from delivery.http.context import ApiServices
from delivery.http.options import Options
from delivery.routes import EVERY_ROUTE
from tests.delivery.conftest import Api, ApiResponse, BrokenService, delivery_body
from tests.support.servers import Server
from tests.support.waiting import until
from tests.system.crash.cuttable_link import CuttableLink


@pytest.mark.parametrize(
    "path", ["/nowhere", "/v1", "/v1/", "/v1/deliveries/", "/v2/deliveries", "/docs/", "//", "/%00"]
)
async def test_an_unknown_address_is_not_found(api: Api, path: str) -> None:
    for method in ("GET", "POST", "PROPFIND"):
        response = await api.call(method, path)
        assert (response.status, response.code) == (404, "ROUTE_NOT_FOUND")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/deliveries", "GET, HEAD, POST"),
        ("POST", "/v1/deliveries/0.42.1763712000000000000", "DELETE, GET, HEAD, PATCH"),
        ("DELETE", "/livez", "GET, HEAD"),
        ("PROPFIND", "/v1/track", "POST"),
        ("OPTIONS", "/v1/queue/tasks/0.1:bury", "POST"),
    ],
)
async def test_an_unsupported_method_is_refused_with_the_allowed_ones(
    api: Api, method: str, path: str, allowed: str
) -> None:
    response = await api.call(method, path)
    assert (response.status, response.code, response.headers["Allow"]) == (405, "METHOD_NOT_ALLOWED", allowed)


NO_HEAD = {
    "/v1/actions.csv", "/v1/costs.csv", "/v1/deliveries/{id}/answers.csv", "/v1/deliveries/{id}/events",
    "/v1/deliveries/{id}/recipients.csv", "/v1/export/{kind}", "/v1/forms/{name}/answers.csv", "/v1/import/sample",
    "/v1/inbound/sms", "/v1/jobs/{job_id}/log", "/v1/live", "/v1/receipts/sms", "/v1/receipts/sms/{profile}",
    "/v1/sessions/providers/{provider}", "/v1/sessions/providers/{provider}/callback",
    "/v1/sessions/providers/{provider}/sign-out", "/v1/sign-in/callback", "/v1/users/{id}/export",
}  # fmt: skip
"""Streams, and addresses that others call with GET to change something."""


async def test_head_gets_the_headers_of_get_and_no_body(api: Api) -> None:
    paths = {route.path for route in EVERY_ROUTE if route.method == "GET"}
    assert paths >= NO_HEAD
    wrong = []
    for path in map(filled, sorted(paths - NO_HEAD)):
        head, got = await api.call("HEAD", path), await api.call("GET", path)
        if head.body or signs_of(head) != signs_of(got):
            wrong.append((path, head, got))
    assert wrong == []


def filled(path: str) -> str:
    """Return the path with an id of nothing in place of each parameter."""
    return re.sub(r"\{\w+\}", "1", path)


def signs_of(response: ApiResponse) -> tuple[int, str | None]:
    return response.status, response.headers.get("Content-Type")


async def test_head_is_refused_where_get_streams_or_changes_something(api: Api) -> None:
    wrong = []
    for path in map(filled, sorted(NO_HEAD)):
        head = await api.call("HEAD", path)
        if head.body or head.status != 405 or "HEAD" in head.headers["Allow"]:
            wrong.append((path, head))
    assert wrong == []


async def test_a_body_that_is_too_large_is_refused_with_or_without_content_length(api: Api) -> None:
    before = await api.keys()
    body = json.dumps(delivery_body(text="a" * 2**20)).encode()

    async def chunks() -> Any:
        for start in range(0, len(body), 2**16):
            yield body[start : start + 2**16]

    announced = await api.call("POST", "/v1/deliveries", body)
    streamed = await api.call("POST", "/v1/deliveries", data=chunks(), headers={"Content-Type": "application/json"})
    packed, bomb = [
        await api.call("POST", "/v1/deliveries", gzip.compress(body * times), headers={"Content-Encoding": "gzip"})
        for times in (1, 20)
    ]
    for response in (announced, streamed, packed, bomb):
        assert (response.status, response.code) == (413, "BODY_TOO_LARGE")
    assert await api.keys() == before


class TestLimit:
    """The limit also applies to a body that arrives with its head, and to the unpacked size."""

    @pytest.fixture
    def options(self) -> Options:
        return Options(body_limit=1000)

    async def test_a_body_above_a_small_limit_is_refused(self, api: Api) -> None:
        body = json.dumps(delivery_body(text="a" * 1000)).encode()
        for sent, headers in ((body, {}), (gzip.compress(body), {"Content-Encoding": "gzip"})):
            response = await api.call("POST", "/v1/deliveries", sent, headers=headers)
            assert (response.status, response.code) == (413, "BODY_TOO_LARGE")
        assert (await api.call("POST", "/v1/deliveries", delivery_body())).status == 202

    async def test_a_body_of_exactly_the_limit_is_accepted(self, api: Api) -> None:
        body = json.dumps(delivery_body()).encode()
        for size, status in ((1000, 202), (1001, 413)):
            for sent, headers in (
                (body.ljust(size), {}),
                (gzip.compress(body.ljust(size)), {"Content-Encoding": "gzip"}),
            ):
                assert (await api.call("POST", "/v1/deliveries", sent, headers=headers)).status == status


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=cp1251"]
)
async def test_only_json_is_accepted(api: Api, kind: str) -> None:
    response = await api.call(
        "POST", "/v1/deliveries", json.dumps(delivery_body()).encode(), headers={"Content-Type": kind}
    )
    assert (response.status, response.code) == (415, "CONTENT_TYPE_UNSUPPORTED")


@pytest.mark.parametrize("kind", ["application/json; charset=UTF-8", "Application/JSON"])
async def test_json_content_types_may_have_a_charset_and_any_case(api: Api, kind: str) -> None:
    response = await api.call(
        "POST", "/v1/deliveries", json.dumps(delivery_body()).encode(), headers={"Content-Type": kind}
    )
    assert response.status == 202


async def exchanged(api: Api, sent: bytes) -> tuple[bytes, bytes]:
    """Sends raw bytes; returns the head and the body of the response."""
    host, port = api.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(sent)
    response = await asyncio.wait_for(reader.read(), 20)
    writer.close()
    head, _, body = response.partition(b"\r\n\r\n")
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
async def test_malformed_http_gets_a_problem_document(api: Api, sent: bytes, status: int, code: str) -> None:
    head, body = await exchanged(api, sent)
    assert head.split(b" ")[1] == str(status).encode()
    assert b"application/problem+json" in head
    assert json.loads(body)["code"] == code


async def test_a_client_may_wait_for_100_continue(api: Api) -> None:
    response = await api.call("POST", "/v1/deliveries", delivery_body(), expect100=True)
    assert response.status == 202


async def test_a_body_that_breaks_off_is_not_logged_as_an_error(api: Api, caplog: pytest.LogCaptureFixture) -> None:
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
    """The client learns that there was an internal error, and nothing else."""

    @pytest.fixture
    def services(self, services: ApiServices) -> ApiServices:
        return replace(services, core=replace(services.core, deliveries=cast(Deliveries, BrokenService())))

    async def test_an_internal_error_is_logged_and_its_cause_stays_hidden(
        self, api: Api, caplog: pytest.LogCaptureFixture
    ) -> None:
        response = await api.call("GET", "/v1/deliveries/0.42.1763712000000000000")
        assert (response.status, response.code) == (500, "INTERNAL")
        assert b"hunter2" not in response.body
        assert "hunter2" in caplog.text


async def test_without_the_store_every_operation_reports_it(api: Api, server: Server) -> None:
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
    responses = await asyncio.gather(*(api.call(*call, headers=headers) for call in calls))
    for call, response in zip(calls, responses, strict=True):
        assert (response.status, response.code) == (503, "STORE_UNAVAILABLE"), call
        assert response.headers["Retry-After"] == "1"
    assert (await api.call("GET", "/livez")).status == 200
    server.start()
    assert (await api.call("GET", "/readyz")).status == 200
    assert (await api.call("GET", made.headers["Location"])).json["id"] == made.json["id"]


class TestCutOff:
    """The link to the store can be cut between a command and its reply."""

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

    async def test_a_write_with_unknown_outcome_can_be_repeated_with_its_key(
        self, api: Api, server: Server, link: CuttableLink
    ) -> None:
        """After “nothing was written” a client would send it again with another key."""
        words = {"body": delivery_body(text="tomorrow"), "headers": {"Idempotency-Key": "a"}}
        link.block_replies(trigger=b"tomorrow")
        asked = asyncio.create_task(api.call("POST", "/v1/deliveries", **words))
        await until(lambda: any(key.startswith("deliveries:") for key in server.all_keys()))
        link.redirect(1)  # nothing listens there
        unclear = await asked
        assert (unclear.status, unclear.code) == (503, "STORE_UNAVAILABLE")
        assert unclear.json["detail"].startswith("It may have been done. A repeat with the same Idempotency-Key")
        assert "Nothing was written" not in unclear.json["detail"]
        link.redirect(server.place.port)
        (done,) = (await api.call("GET", "/v1/deliveries")).json["deliveries"]
        assert (await api.call("POST", "/v1/deliveries", **words)).json["id"] == done["id"]
        assert len((await api.call("GET", "/v1/deliveries")).json["deliveries"]) == 1


async def test_on_a_full_store_a_write_reports_that_nothing_was_written(api: Api) -> None:
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
    def services(self, services: ApiServices) -> ApiServices:
        store, deliveries = services.core.store, services.core.deliveries
        sending = Sending(store, deliveries, Directory(store), max_recipients=2)
        return replace(services, core=replace(services.core, sending=sending))

    async def test_the_number_of_recipients_can_be_limited(self, api: Api) -> None:
        refused = await api.call("POST", "/v1/deliveries", delivery_body(recipients=people(range(3))))
        assert refused.code == "TOO_MANY_RECIPIENTS"
        twice = await api.call("POST", "/v1/deliveries", delivery_body(recipients=people(n % 2 for n in range(9))))
        assert twice.json["recipients"] == 2


def people(ids: Iterable[int]) -> list[dict[str, Any]]:
    return [{"id": one, "contacts": {}} for one in ids]
