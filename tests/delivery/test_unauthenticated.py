"""Clients without a key: nothing they send is unpacked, and they cannot keep the others out."""

import asyncio
import gc
import gzip
import json
import logging
import resource
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import ClientSession

from core.redis.store import Store
from delivery.app import build
from delivery.http.context import ApiServices
from delivery.http.options import Options
from delivery.http.server import ConnectionLimits, LogLimit, listening
from tests.delivery.conftest import Api, delivery_body
from tests.support.waiting import until

LIMITS = ConnectionLimits(head=0.3, idle=0.6, rest=0.2, connections=20)
BEGUN = b"POST /v1/deliveries HTTP/1.1\r\nHost: a\r\n"


@pytest.fixture
def options() -> Options:
    return Options(body_timeout=timedelta(seconds=1.5))


@pytest.fixture
async def api(services: ApiServices, store: Store, options: Options) -> AsyncIterator[Api]:
    """The API with short times and few connections."""
    async with ClientSession() as session, AsyncExitStack() as server:
        listener = listening(build(services, options), "127.0.0.1", 0, limits=LIMITS)
        host, port = await server.enter_async_context(listener)
        yield Api(f"http://{host}:{port}", session, store, services, server.aclose)


async def connect(api: Api) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = api.url.removeprefix("http://").split(":")
    return await asyncio.open_connection(host, int(port))


async def longest_pause(work: "asyncio.Future[Any]") -> float:
    """The most seconds of processor time that the event loop spent without a turn for others until `work` ended.

    Without the garbage collector: what it takes depends on what the tests before have left.
    """
    longest, before = 0.0, time.thread_time()
    gc.disable()
    try:
        while not work.done():
            await asyncio.sleep(0)
            now = time.thread_time()
            longest, before = max(longest, now - before), now
    finally:
        gc.enable()
    return longest


PAUSE = 0.5
"""Seconds of processor time. A busy machine takes some times as long for the same work as an idle one."""


@pytest.mark.parametrize("path", ["/v1/deliveries", "/v1/deliveries/bulk", "/v1/receipts/sms", "/nowhere"])
async def test_a_packed_body_without_a_key_is_not_unpacked(api: Api, path: str) -> None:
    """3 MB of gzip are 3 GB of zeros: 10 s of unpacking."""
    bomb = gzip.compress(bytes(2**28), 1)
    packed = {"Authorization": "", "Content-Encoding": "gzip", "Content-Type": "application/x-www-form-urlencoded"}
    work = asyncio.ensure_future(api.call("POST", path, data=bomb, headers=packed))
    assert await longest_pause(work) < PAUSE
    assert (await work).status in (401, 404, 413)


async def test_a_packed_body_with_a_key_is_unpacked_up_to_the_limit(api: Api) -> None:
    packed = {"Content-Encoding": "gzip"}
    bomb = gzip.compress(b" " * 2**27)
    work = asyncio.ensure_future(api.call("POST", "/v1/deliveries", bomb, headers=packed))
    assert await longest_pause(work) < PAUSE
    assert (await work).code == "BODY_TOO_LARGE"
    body = gzip.compress(json.dumps(delivery_body()).encode())
    assert (await api.call("POST", "/v1/deliveries", body, headers=packed)).status == 202
    assert (await api.call("POST", "/v1/deliveries", body[:-4], headers=packed)).code == "BODY_MALFORMED"


async def test_an_unknown_encoding_is_refused(api: Api) -> None:
    response = await api.call("POST", "/v1/deliveries", b"{}", headers={"Content-Encoding": "br"})
    assert (response.status, response.code) == (415, "CONTENT_ENCODING_UNSUPPORTED")


@pytest.mark.parametrize("sent", [b"", BEGUN, b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"], ids=["idle", "head", "keep"])
async def test_a_connection_that_sends_no_whole_head_in_time_is_closed(api: Api, sent: bytes) -> None:
    reader, writer = await connect(api)
    writer.write(sent)
    await asyncio.wait_for(reader.read(), 20)
    writer.close()


async def test_a_head_that_arrives_byte_by_byte_does_not_extend_its_time(api: Api) -> None:
    reader, writer = await connect(api)
    ended = asyncio.ensure_future(reader.read())
    start = time.monotonic()
    writer.write(BEGUN)
    while not ended.done() and time.monotonic() < start + 20:
        writer.write(b"x")
        await asyncio.wait({ended}, timeout=0.05)
    assert ended.done()
    await asyncio.gather(ended, return_exceptions=True)
    writer.close()


async def test_a_slow_head_is_cut_although_connections_may_be_idle_for_longer(services: ApiServices) -> None:
    limits = ConnectionLimits(head=0.3, idle=60)
    async with listening(build(services), "127.0.0.1", 0, limits=limits) as (host, port):
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(BEGUN)
        with suppress(ConnectionResetError):
            await asyncio.wait_for(reader.read(), 20)
        writer.close()


async def test_a_slow_head_is_cut_also_after_another_request(services: ApiServices) -> None:
    limits = ConnectionLimits(head=0.3, idle=60)
    async with listening(build(services), "127.0.0.1", 0, limits=limits) as (host, port):
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
        assert await asyncio.wait_for(reader.readuntil(b'{"status":"ok"}'), 20)
        writer.write(BEGUN)
        with suppress(ConnectionResetError):
            assert await asyncio.wait_for(reader.read(), 20) == b""
        writer.close()


async def test_of_the_connections_that_wait_the_one_that_has_waited_longest_is_closed(services: ApiServices) -> None:
    """A connection that was used meanwhile waits from then on."""
    limits = ConnectionLimits(idle=60, connections=2)
    async with listening(build(services), "127.0.0.1", 0, limits=limits) as (host, port):
        used = await asyncio.open_connection(host, port)
        await ask(*used)
        waiting = await asyncio.open_connection(host, port)
        await ask(*waiting)
        await ask(*used)
        new = await asyncio.open_connection(host, port)
        await ask(*new)
        with suppress(ConnectionResetError):
            assert await asyncio.wait_for(waiting[0].read(), 20) == b""
        await ask(*used)
        for _, writer in (used, waiting, new):
            writer.close()


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One request and its response, over a connection that stays open."""
    writer.write(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
    await asyncio.wait_for(reader.readuntil(b'{"status":"ok"}'), 20)


async def test_a_body_that_does_not_arrive_in_time_is_refused_and_the_connection_closed(api: Api) -> None:
    reader, writer = await connect(api)
    key = f"Authorization: Bearer {api.secret}\r\nContent-Length: 100\r\n\r\n{{".encode()
    writer.write(BEGUN + key)
    response = await asyncio.wait_for(reader.read(), 20)
    assert response.startswith(b"HTTP/1.1 408")
    assert b'"BODY_TOO_SLOW"' in response
    writer.close()


async def test_a_bulk_that_pauses_too_long_is_refused_in_its_next_line(api: Api) -> None:
    reader, writer = await connect(api)
    line = json.dumps(delivery_body()).encode() + b"\n"
    head = f"Authorization: Bearer {api.secret}\r\nContent-Length: 9999\r\n\r\n".encode()
    writer.write(BEGUN.replace(b"deliveries", b"deliveries/bulk") + head + line)
    response = await asyncio.wait_for(reader.read(), 20)
    assert response.count(b'"status":202') == 1
    assert b'"BODY_TOO_SLOW"' in response
    writer.close()


@pytest.mark.parametrize("sent", [b"", BEGUN], ids=["idle", "slow heads"])
async def test_connections_that_only_wait_do_not_keep_others_out(api: Api, sent: bytes) -> None:
    waiting = [await connect(api) for _ in range(3 * LIMITS.connections)]
    for _, writer in waiting:
        writer.write(sent)
    async with ClientSession() as session, session.get(api.url + "/livez") as response:
        assert response.status == 200
    for _, writer in waiting:
        writer.close()


async def test_a_busy_connection_is_not_closed_for_a_new_one(api: Api) -> None:
    made = await api.call("POST", "/v1/deliveries", delivery_body(deliver_at="2030-01-01T00:00:00Z", far=True))
    key = {"Authorization": f"Bearer {api.secret}"}
    async with (
        ClientSession() as session,
        session.get(f"{api.url}{made.headers['Location']}/events", headers=key) as stream,
    ):
        waiting = [await connect(api) for _ in range(3 * LIMITS.connections)]
        await api.call("DELETE", made.headers["Location"])
        body = await asyncio.wait_for(stream.content.read(), 20)
        assert b"finished" in body
        for _, writer in waiting:
            writer.close()


def test_the_connection_limit_stays_below_the_limit_of_open_files() -> None:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    limits = ConnectionLimits()
    assert limits.connections > 0
    assert limits.connections + limits.backlog < files


async def test_malformed_requests_write_few_log_lines(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    for _ in range(100):
        reader, writer = await connect(api)
        writer.write(b"nonsense\r\n\r\n")
        assert (await asyncio.wait_for(reader.read(), 20)).startswith(b"HTTP/1.0 400")
        writer.close()
    assert sum("400 from" in line for line in caplog.messages) == 20


def test_after_the_window_a_log_line_reports_how_many_were_left_out(caplog: pytest.LogCaptureFixture) -> None:
    limit, log = LogLimit(count=2, seconds=0.1), logging.getLogger("test.limited")
    log.addFilter(limit)
    try:
        end = time.monotonic() + 0.15
        written = 0
        while time.monotonic() < end:
            log.warning("again %d", written)
            written += 1
    finally:
        log.removeFilter(limit)
    assert len(caplog.messages) == 4
    assert "lines like this left out" in caplog.messages[2]


def test_a_flood_of_one_log_line_leaves_no_other_out(caplog: pytest.LogCaptureFixture) -> None:
    limit, log = LogLimit(count=2), logging.getLogger("test.limited")
    log.addFilter(limit)
    try:
        for _ in range(5):
            log.warning("a flood")
            log.warning("another line")
    finally:
        log.removeFilter(limit)
    assert caplog.messages == ["a flood", "another line"] * 2


async def test_a_log_line_that_comes_rarely_is_never_left_out(caplog: pytest.LogCaptureFixture) -> None:
    limit, log = LogLimit(count=2, seconds=0.01), logging.getLogger("test.limited")
    log.addFilter(limit)
    try:
        for written in range(5):
            end = time.monotonic() + 0.02
            await until(lambda end=end: time.monotonic() > end, every=0.005)  # type: ignore[misc]  # as elsewhere
            log.warning("rarely %d", written)
    finally:
        log.removeFilter(limit)
    assert caplog.messages == [f"rarely {written}" for written in range(5)]


async def test_a_large_refused_body_does_not_stop_the_others(api: Api) -> None:
    """Its errors are searched for in a thread, and the search ends after a number of errors."""
    people = [{"id": number, "contacts": {"telegram": str(number)}, "name": "n" * 30} for number in range(9_999)]
    bodies = [
        delivery_body(recipients=[*people, {"id": 1.5}]),
        delivery_body(recipients=[{**one, "contacts": {"pigeon": "1"}} for one in people]),
    ]
    for body in bodies:
        work = asyncio.ensure_future(api.call("POST", "/v1/deliveries", json.dumps(body).encode()))
        assert await longest_pause(work) < PAUSE
        assert (await work).status == 400
        assert len((await work).json["errors"]) <= 20
