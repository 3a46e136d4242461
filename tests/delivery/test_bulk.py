"""Bulk: NDJSON in, NDJSON out, line by line and in order, also with invalid lines."""

import asyncio
import gzip
import json
import tracemalloc
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, cast

import pytest

from core.orders import Sending
from delivery.api.deliveries.bulk import BATCH
from delivery.http.context import ApiServices
from delivery.http.options import Options
from delivery.http.responses.ndjson import LineSplitter, ResponseBuffer, read_lines
from tests.delivery.conftest import Api, BrokenService, Couriers, delivery_body
from tests.support.servers import Server
from tests.support.waiting import until

BULK = "/v1/deliveries/bulk"
LINES = {"Content-Type": "application/x-ndjson"}
LATER = "2030-01-01T00:00:00+03:00"


def ndjson(*bodies: object) -> bytes:
    return b"".join(json.dumps(body).encode() + b"\n" for body in bodies)


async def bulk(api: Api, body: Any, **headers: str) -> list[dict[str, Any]]:
    response = await api.call("POST", BULK, body, headers={**LINES, **headers})
    assert (response.status, response.headers["Content-Type"]) == (200, "application/x-ndjson"), response
    return [json.loads(line) for line in response.body.splitlines()]


async def test_many_deliveries_are_accepted_in_one_request_in_order(api: Api) -> None:
    result = await bulk(
        api, ndjson(*(delivery_body(text=f"number {n}", deliver_at=LATER, far=True) for n in range(1500)))
    )
    assert [one["line"] for one in result] == list(range(1, 1501))
    assert {one["status"] for one in result} == {202}
    for number in (0, 499, 500, 1499):
        history = await api.call("GET", f"/v1/deliveries/{result[number]['id']}")
        assert history.json["text"] == f"number {number}"


async def test_an_invalid_line_stops_no_other_and_writes_nothing(api: Api) -> None:
    good = json.dumps(delivery_body()).encode()
    lines = [good, b"{", b"", b'{"text": "\xff"}', b"\xef\xbb\xbf" + good, good + b"\r", b"[]", b"  ", good]
    result = await bulk(api, b"\n".join(lines))
    assert [(one["line"], one["status"], one.get("code")) for one in result] == [
        (1, 202, None),
        (2, 400, "JSON_MALFORMED"),
        (4, 400, "JSON_NOT_UTF8"),
        (5, 400, "JSON_BYTE_ORDER_MARK"),
        (6, 202, None),
        (7, 400, "WRONG_TYPE"),
        (9, 202, None),
    ]
    assert len((await api.call("GET", "/v1/deliveries")).json["deliveries"]) == 3


async def test_a_refusal_of_core_is_reported_on_its_line(api: Api) -> None:
    key = (await api.call("POST", "/v1/history-keys", {"sender": {"id": 42}})).json["history_key"]
    body = delivery_body(history_key=key)
    result = await bulk(api, ndjson(body, body, delivery_body()))
    assert [one["status"] for one in result] == [202, 409, 202]
    assert result[1]["code"] == "HISTORY_KEY_USED"


async def test_a_repeated_bulk_request_gets_the_first_response(api: Api) -> None:
    body = ndjson(*(delivery_body(text=str(n), deliver_at=LATER, far=True) for n in range(20)))
    first = await bulk(api, body, **{"Idempotency-Key": "monday"})
    second = await bulk(api, body, **{"Idempotency-Key": "monday"})
    assert [one["id"] for one in second] == [one["id"] for one in first]
    assert ({one["replayed"] for one in first}, {one["replayed"] for one in second}) == ({False}, {True})
    other = await bulk(api, ndjson(delivery_body(text="other")), **{"Idempotency-Key": "monday"})
    assert other[0]["code"] == "IDEMPOTENCY_KEY_REUSED"
    assert (other[0]["line"], other[0]["status"]) == (1, 422)


async def test_a_line_may_have_its_own_idempotency_key(api: Api) -> None:
    line = delivery_body(idempotency_key="a", deliver_at=LATER, far=True)
    result = await bulk(api, ndjson(line, delivery_body(deliver_at=LATER, far=True), line), **{"Idempotency-Key": "x"})
    assert result[0]["id"] == result[2]["id"] != result[1]["id"]
    bad = await bulk(api, ndjson(delivery_body(idempotency_key="я")))
    assert bad[0]["code"] == "IDEMPOTENCY_KEY_MALFORMED"


@pytest.mark.parametrize("own_keys", [False, True])
async def test_a_repeat_may_end_its_lines_otherwise(api: Api, own_keys: bool) -> None:
    """A file that was edited on Windows, or read by another library, is the same request."""
    keys = [{"idempotency_key": f"line {n}"} if own_keys else {} for n in range(12)]
    body = ndjson(*(delivery_body(text=str(n), deliver_at=LATER, far=True, **key) for n, key in enumerate(keys)))
    first = await bulk(api, body, **{"Idempotency-Key": "monday"})
    again = await bulk(api, body.replace(b"\n", b" \r\n"), **{"Idempotency-Key": "monday"})
    assert [one["id"] for one in again] == [one["id"] for one in first]
    assert {one["replayed"] for one in again} == {True}


async def test_response_lines_arrive_while_the_request_is_still_sent(api: Api) -> None:
    first_is_answered = asyncio.Event()

    async def lines() -> AsyncIterator[bytes]:
        yield ndjson(delivery_body(text="first"))
        await first_is_answered.wait()
        yield ndjson(delivery_body(text="second"))

    headers = {"Authorization": f"Bearer {api.secret}", **LINES}
    async with api.session.post(api.url + BULK, data=lines(), headers=headers) as response:
        assert json.loads(await response.content.readline())["status"] == 202
        first_is_answered.set()
        assert json.loads(await response.content.readline())["line"] == 2


async def test_lines_of_one_lane_are_delivered_in_order_although_scripts_are_flushed(
    api: Api, courier: Couriers
) -> None:
    async def forget() -> None:
        while True:
            await api.store.redis.function_flush()
            await asyncio.sleep(0.003)

    count = 5 * BATCH // 2
    forgetting = asyncio.create_task(forget())
    result = await bulk(api, ndjson(*(delivery_body(text=str(number), lane="exam") for number in range(count))))
    forgetting.cancel()
    assert [one["status"] for one in result] == [202] * count
    played = await courier("sms")
    await until(lambda: len(played.attempted) == count)
    assert [message.text for message in played.attempted] == [str(number) for number in range(count)]


async def test_a_client_may_send_everything_before_it_reads_anything(api: Api) -> None:
    """Regression: responses filled the buffers of the connection, and each side waited for the other."""
    count = 8000
    line = json.dumps(dict.fromkeys("abcdefghijklmnopqrstuvw", 0)).encode().ljust(2000) + b"\n"
    host, port = api.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=2**27)
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    head = f"POST {BULK} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {api.secret}\r\nConnection: close\r\n"
    writer.write(f"{head}Content-Length: {count * len(line)}\r\n\r\n".encode() + line * count)
    await asyncio.wait_for(writer.drain(), 30)
    writer.transport.resume_reading()  # type: ignore[attr-defined]
    assert (await asyncio.wait_for(reader.read(), 30)).count(b'"line"') == count
    writer.close()


async def test_the_response_buffer_makes_writers_wait_at_its_limit() -> None:
    backlog = ResponseBuffer(limit=10)
    await backlog.put(b"123456")
    await backlog.put(b"123456")
    late = asyncio.create_task(backlog.put(b"late"))
    await asyncio.sleep(0)
    assert not late.done()
    assert [await backlog.take(), await backlog.take()] == [b"123456", b"123456"]
    await late
    assert await backlog.take() == b"late"


async def test_a_compressed_bulk_is_read_and_a_corrupt_one_is_reported_where_it_breaks_off(api: Api) -> None:
    packed = gzip.compress(ndjson(*(delivery_body(text=str(n)) for n in range(3))))
    assert [one["status"] for one in await bulk(api, packed, **{"Content-Encoding": "gzip"})] == [202, 202, 202]
    broken = await bulk(api, b"\0\0not gzip", **{"Content-Encoding": "gzip"})
    assert broken[-1]["code"] == "BODY_MALFORMED"


async def test_a_compressed_bulk_that_ends_too_early_says_so_behind_its_last_line(api: Api) -> None:
    """Otherwise the client would take the lines that are missing for accepted."""
    packed = gzip.compress(ndjson(*(delivery_body(text=str(n)) for n in range(3))))
    result = await bulk(api, packed[:-4], **{"Content-Encoding": "gzip"})
    assert result[-1]["code"] == "BODY_MALFORMED"


@pytest.mark.parametrize("size", [1, 7, 100])
async def test_the_limit_of_a_body_is_that_of_all_its_chunks(size: int) -> None:
    body = b"".join(b"line %d\n" % number for number in range(10))

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(body), size):
            yield body[start : start + size]

    for limit, refused in ((len(body), []), (len(body) - 1, ["BODY_TOO_LARGE"])):
        batches = [lines async for lines in read_lines(chunks(), body_limit=limit, line_limit=50, batch=3)]
        found = [line for lines in batches for line in lines]
        assert [line.refused.code for line in found if line.refused] == refused
        assert max(map(len, batches)) <= 3


def test_of_a_line_that_is_too_long_nothing_is_kept() -> None:
    splitter, chunk = LineSplitter(limit=2**10), b"x" * 2**16
    tracemalloc.start()
    try:
        for _ in range(100):
            assert splitter.feed(chunk) == []
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
    (line,) = splitter.feed(b"\n")
    assert line.refused


async def test_without_the_store_every_line_reports_it(api: Api, server: Server) -> None:
    await bulk(api, ndjson(delivery_body()))  # now the API key and the channels are cached
    server.kill()
    result = await bulk(api, ndjson(delivery_body(), {}, delivery_body()))
    assert [(one["status"], one["code"]) for one in result] == [
        (503, "STORE_UNAVAILABLE"),
        (400, "REQUIRED"),
        (503, "STORE_UNAVAILABLE"),
    ]
    for one in (result[0], result[2]):
        assert "It may have been done." in one["detail"]
        assert "Nothing was written" not in one["detail"]
    server.start()


async def test_on_a_full_store_every_line_reports_that_nothing_was_written(api: Api) -> None:
    before = await api.keys()
    await api.store.redis.config_set("maxmemory", 1)
    result = await bulk(api, ndjson(delivery_body(), {}, delivery_body()))
    assert [(one["status"], one["code"]) for one in result] == [
        (503, "STORE_FULL"),
        (400, "REQUIRED"),
        (503, "STORE_FULL"),
    ]
    for one in (result[0], result[2]):
        assert one["detail"].startswith("Nothing was written.")
        assert "may have been done" not in one["detail"]
    assert await api.keys() == before


class TestFault:
    @pytest.fixture
    def services(self, services: ApiServices) -> ApiServices:
        return replace(services, core=replace(services.core, sending=cast(Sending, BrokenService())))

    async def test_an_internal_error_breaks_off_a_response_that_has_begun(self, api: Api) -> None:
        host, port = api.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        body = ndjson(delivery_body())
        head = f"POST {BULK} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {api.secret}\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        response = await asyncio.wait_for(reader.read(), 20)
        assert response.count(b"HTTP/1.1") == 1
        assert not response.endswith(b"0\r\n\r\n")
        writer.close()


class TestSmall:
    @pytest.fixture
    def options(self) -> Options:
        return Options(bulk_limit=3000, line_limit=1000)

    async def test_only_the_line_that_is_too_long_is_refused(self, api: Api) -> None:
        result = await bulk(api, ndjson(delivery_body(), delivery_body(text="a" * 1000), delivery_body()))
        assert [(one["line"], one["status"]) for one in result] == [(1, 202), (2, 413), (3, 202)]
        assert result[1]["code"] == "BODY_TOO_LARGE"

    async def test_a_body_announced_as_too_long_is_refused_at_once(self, api: Api) -> None:
        response = await api.call("POST", BULK, b" " * 3001, headers=LINES)
        assert (response.status, response.code) == (413, "BODY_TOO_LARGE")

    async def test_a_stream_that_becomes_too_long_ends_with_an_error_line(self, api: Api) -> None:
        async def lines() -> AsyncIterator[bytes]:
            for _ in range(50):
                yield ndjson(delivery_body())

        response = await api.call("POST", BULK, headers=LINES, data=lines())
        result = [json.loads(line) for line in response.body.splitlines()]
        assert {one["status"] for one in result[:-1]} <= {202}
        assert len(result) < 50
        assert (result[-1]["status"], result[-1]["code"]) == (413, "BODY_TOO_LARGE")


@pytest.mark.parametrize("kind", ["text/plain", "multipart/form-data", "application/x-ndjson; charset=cp1251"])
async def test_only_ndjson_content_types_are_accepted(api: Api, kind: str) -> None:
    response = await api.call("POST", BULK, ndjson(delivery_body()), headers={"Content-Type": kind})
    assert (response.status, response.code) == (415, "CONTENT_TYPE_UNSUPPORTED")


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_lines_do_not_depend_on_how_the_body_is_cut_into_chunks(size: int) -> None:
    text = b"one\n\ntwo\r\n" + b"x" * 30 + b"\nthree\n" + b"y" * 31 + b"\nlast"
    splitter = LineSplitter(limit=10)
    lines = [line for start in range(0, len(text), size) for line in splitter.feed(text[start : start + size])]
    lines += splitter.feed(b"\n")
    assert [(line.number, line.raw.strip(), line.refused is not None) for line in lines] == [
        (1, b"one", False),
        (3, b"two", False),
        (4, b"", True),
        (5, b"three", False),
        (6, b"", True),
        (7, b"last", False),
    ]
