"""Responses over connections of every kind: keep-alive, pipelined, HTTP/1.0, and a client that does not read."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import pytest

from delivery.app import build
from delivery.http.context import ApiServices
from delivery.http.server import ConnectionLimits, listening
from tests.delivery.conftest import Api, delivery_body
from tests.support.waiting import until

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def connected(api: Api) -> AsyncIterator[Connection]:
    host, port = api.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    yield reader, writer
    writer.close()


def request(api: Api, line: str, *fields: str, body: bytes = b"") -> bytes:
    head = [line, "Host: a", f"Authorization: Bearer {api.secret}", f"Content-Length: {len(body)}", *fields, "", ""]
    return "\r\n".join(head).encode() + body


def posted(api: Api, *fields: str, version: str = "HTTP/1.1") -> bytes:
    return request(api, f"POST /v1/deliveries {version}", *fields, body=json.dumps(delivery_body()).encode())


async def read_response(reader: asyncio.StreamReader) -> tuple[str, dict[str, str], bytes]:
    """One response: status line, headers, body."""
    line, *fields = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)).decode().splitlines()
    result = dict(field.split(": ", 1) for field in fields if field)
    return line, result, await asyncio.wait_for(reader.readexactly(int(result["Content-Length"])), 20)


async def test_a_response_has_a_date_a_length_and_a_content_type(api: Api) -> None:
    async with connected(api) as (reader, writer):
        writer.write(posted(api))
        line, fields, body = await read_response(reader)
    result = json.loads(body)
    assert line == "HTTP/1.1 202 Accepted"
    assert abs(parsedate_to_datetime(fields.pop("Date")) - datetime.now(UTC)) < timedelta(seconds=5)
    assert fields.pop("Server")
    assert fields == {
        "Content-Type": "application/json",
        "Location": f"/v1/deliveries/{result['id']}",
        "Content-Length": str(len(body)),
    }


async def test_pipelined_requests_get_their_responses_in_order(api: Api) -> None:
    async with connected(api) as (reader, writer):
        writer.write(posted(api) * 50)
        keys = [json.loads((await read_response(reader))[2])["id"] for _ in range(50)]
    assert len(set(keys)) == 50
    assert keys == sorted(keys, key=lambda key: int(key.rsplit(".", 1)[1]))


@pytest.mark.parametrize(
    ("version", "fields", "stays"),
    [
        ("HTTP/1.1", (), True),
        ("HTTP/1.1", ("Connection: close",), False),
        ("HTTP/1.0", (), False),
        ("HTTP/1.0", ("Connection: keep-alive",), True),
    ],
)
async def test_the_connection_is_kept_or_closed_as_the_client_asks(
    api: Api, version: str, fields: Sequence[str], stays: bool
) -> None:
    async with connected(api) as (reader, writer):
        writer.write(posted(api, *fields, version=version))
        line, result, _ = await read_response(reader)
        assert line == f"{version} 202 Accepted"
        assert result.get("Connection", "keep-alive" if version == "HTTP/1.1" else "close") == (
            "keep-alive" if stays else "close"
        )
        if stays:
            writer.write(posted(api, *fields, version=version))
            assert (await read_response(reader))[0] == line
        else:
            assert await asyncio.wait_for(reader.read(), 20) == b""


async def test_a_client_that_does_not_read_gets_no_more_responses(api: Api) -> None:
    """Otherwise its responses would fill the memory of the process."""
    asked = 1000
    people = [{"id": number, "contacts": {"telegram": str(number)}} for number in range(1, 101)]
    written = await api.call("POST", "/v1/deliveries", delivery_body(recipients=people))
    path = f"/v1/deliveries/{written.json['id']}"
    async with connected(api) as (reader, writer):
        writer.write(request(api, f"GET {path} HTTP/1.1") * asked)
        answered = await _settled(api)
        assert 0 < answered < asked / 2
        for _ in range(asked):
            line, _, body = await read_response(reader)
            assert line == "HTTP/1.1 200 OK"
            assert len(json.loads(body)["recipients"]) == 100
        await until(lambda: _all_are_answered(api, asked))


async def test_a_connection_whose_client_reads_nothing_is_closed_after_a_time(services: ApiServices) -> None:
    """Otherwise its responses would wait for ever, and the file stays open."""
    asked = b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n"
    async with listening(build(services), "127.0.0.1", 0, limits=ConnectionLimits(unread=0.3)) as (host, port):
        _, writer = await asyncio.open_connection(host, port)
        writer.write(asked * 400)

        def is_closed() -> bool:
            writer.write(b"\r\n")  # a closed connection refuses it
            return writer.transport.is_closing()

        await until(is_closed, every=0.5)  # more seldom than `unread`: a client that sends may read later
        writer.close()


async def test_a_client_that_reads_late_is_served_while_it_sends(api: Api) -> None:
    """A bulk request may be sent whole before its responses are read."""
    line = json.dumps(delivery_body(deliver_at="2030-01-01T00:00:00Z", far=True)).encode() + b"\n"
    lines, size = 40, 20_000
    limits = ConnectionLimits(unread=0.3)
    async with listening(build(api.services), "127.0.0.1", 0, limits=limits) as (host, port):
        reader, writer = await asyncio.open_connection(host, port)
        padded = line[:-1].ljust(size) + b"\n"
        fields = (f"Content-Length: {lines * len(padded)}", "Content-Type: application/x-ndjson")
        head = ["POST /v1/deliveries/bulk HTTP/1.1", "Host: a", f"Authorization: Bearer {api.secret}", *fields, "", ""]
        writer.write("\r\n".join(head).encode())
        for _ in range(lines):
            writer.write(padded)
            await asyncio.sleep(0.05)
        assert (await asyncio.wait_for(reader.readline(), 20)).startswith(b"HTTP/1.1 200")
        writer.close()


async def _all_are_answered(api: Api, asked: int) -> bool:
    return await _answered(api) == asked


async def _settled(api: Api) -> int:
    """The number of responses once it no longer grows."""
    before, now = -1, await _answered(api)
    while now != before or not now:
        await asyncio.sleep(0.2)
        before, now = now, await _answered(api)
    return now


async def _answered(api: Api) -> int:
    result = (await api.call("GET", "/metrics")).body.decode()
    found = re.search(r'_requests_total\{method="GET",route="/v1/deliveries/\{id\}",status="200"\} (\d+)', result)
    return int(found[1]) if found else 0
