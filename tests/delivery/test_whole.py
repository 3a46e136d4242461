"""An answer written in one piece is the same answer over every connection, and waits for a caller who does not read."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import pytest

from delivery.http.whole import Whole
from tests.delivery.conftest import Api, a_delivery

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
    return request(api, f"POST /v1/deliveries {version}", *fields, body=json.dumps(a_delivery()).encode())


async def answer(reader: asyncio.StreamReader) -> tuple[str, dict[str, str], bytes]:
    """One answer: its first line, its fields, its body."""
    line, *fields = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)).decode().splitlines()
    told = dict(field.split(": ", 1) for field in fields if field)
    return line, told, await asyncio.wait_for(reader.readexactly(int(told["Content-Length"])), 5)


async def test_it_has_all_that_http_wants_of_it(api: Api) -> None:
    async with connected(api) as (reader, writer):
        writer.write(posted(api))
        line, fields, body = await answer(reader)
    told = json.loads(body)
    assert line == "HTTP/1.1 202 Accepted"
    assert abs(parsedate_to_datetime(fields.pop("Date")) - datetime.now(UTC)) < timedelta(seconds=5)
    assert fields == {
        "Content-Type": "application/json",
        "Location": f"/v1/deliveries/{told['id']}",
        "Content-Length": str(len(body)),
    }


async def test_requests_sent_at_once_are_answered_one_after_another(api: Api) -> None:
    async with connected(api) as (reader, writer):
        writer.write(posted(api) * 50)
        keys = [json.loads((await answer(reader))[2])["id"] for _ in range(50)]
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
async def test_the_connection_stays_or_ends_as_the_caller_wants(
    api: Api, version: str, fields: Sequence[str], stays: bool
) -> None:
    async with connected(api) as (reader, writer):
        writer.write(posted(api, *fields, version=version))
        line, told, _ = await answer(reader)
        assert line == f"{version} 202 Accepted"
        assert told.get("Connection", "keep-alive" if version == "HTTP/1.1" else "close") == (
            "keep-alive" if stays else "close"
        )
        if stays:
            writer.write(posted(api, *fields, version=version))
            assert (await answer(reader))[0] == line
        else:
            assert await asyncio.wait_for(reader.read(), 5) == b""


async def test_a_caller_who_does_not_read_is_not_answered_on_and_on(api: Api) -> None:
    """Or his answers would fill our memory."""
    asked = 1000
    people = [{"id": number, "contacts": {"telegram": str(number)}} for number in range(1, 101)]
    written = await api.call("POST", "/v1/deliveries", a_delivery(recipients=people))
    path = f"/v1/deliveries/{written.told['id']}"
    async with connected(api) as (reader, writer):
        writer.write(request(api, f"GET {path} HTTP/1.1") * asked)
        answered = await _settled(api)
        assert 0 < answered < asked / 2
        for _ in range(asked):
            line, _, body = await answer(reader)
            assert line == "HTTP/1.1 200 OK"
            assert len(json.loads(body)["recipients"]) == 100
    assert await _answered(api) == asked


async def _settled(api: Api) -> int:
    """How many histories were told when no more are."""
    before, now = -1, await _answered(api)
    while now != before or not now:
        await asyncio.sleep(0.2)
        before, now = now, await _answered(api)
    return now


async def _answered(api: Api) -> int:
    told = (await api.call("GET", "/metrics")).body.decode()
    found = re.search(r'_requests_total\{method="GET",route="/v1/deliveries/\{id\}",status="200"\} (\d+)', told)
    return int(found[1]) if found else 0


async def test_a_field_can_not_break_its_line(api: Api) -> None:
    for value in ("a\r\nSet-Cookie: b", "a\nb", "a\0"):
        with pytest.raises(ValueError, match="Location"):
            Whole(200, b"", {"Location": value})._head()
