"""Processes of benchmarks: `python -m bench.delivery.programs PROGRAM …`; for `bench lag` with

courier REDIS_URL COUNT
    a courier that measures lag: the address of a recipient is the time (Unix ms) at which its delivery is due; an
    attempt records how late it is. The lags (ms) are announced after COUNT attempts, or when it is asked to stop
timer FIRST COUNT SPACING
    how late the machine itself wakes a process: sleeps until FIRST (Unix ms), then COUNT times in all every SPACING
    ms, and announces how late (ms) it woke each time
fill REDIS_URL COUNT
    enqueues deliveries far in the future; announces the seconds it took. Several processes fill faster than one,
    because they share the cost of Python

for `bench enqueue` and `bench durability` with

load URL CONNECTIONS SECONDS
    posts the body in the file BENCH_BODY again and again over kept-alive connections, with as little Python as
    possible. Announces how many answers came in how many seconds; the first tenth of the time is not counted. A
    status other than 2xx ends it with an error
bare ANSWER_BYTES
    bare aiohttp handlers, to compare the API with: one reads and writes bytes; the other, at `/json`, JSON
"""

import asyncio
import os
import re
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import web

from bench.harness.delivery_samples import TEXT, order
from bench.harness.environment import API_KEY
from cli.processes.startup import stop_requested
from cli.processes.supervisor import announce
from core.deliveries.channels import Channels
from core.deliveries.deliveries import Deliveries
from core.model.content import Feature
from core.model.delivery import NewDelivery, Recipient
from core.redis.store import Store
from couriers.sending.interface import FOREVER, Message, Outcome, Sent
from couriers.sending.runtime import Runtime

_CONTENT_LENGTH = re.compile(rb"\r\nContent-Length: (\d+)", re.IGNORECASE)
_WARM_UP = 0.1
_LAST_CHUNK = b"\r\n0\r\n\r\n"


class Counter:
    """The answers on all connections, and the first error."""

    def __init__(self) -> None:
        self.answers = 0
        self.error: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class LoadConnection(asyncio.Protocol):
    """One connection. Sends the next request when the answer to the previous one is complete."""

    def __init__(self, request: bytes, counter: Counter) -> None:
        self._request = request
        self._counter = counter
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not is_complete(self._received):
            return
        if not self._received.startswith(b"HTTP/1.1 2") and not self._counter.error.done():
            self._counter.error.set_exception(RuntimeError(self._received[:500].decode()))
            return
        self._received = b""
        self._counter.answers += 1
        self._transport.write(self._request)


def is_complete(received: bytes) -> bool:
    """Return whether a whole answer was received, by its Content-Length or its last chunk."""
    end = received.find(b"\r\n\r\n")
    if end < 0:
        return False
    length = _CONTENT_LENGTH.search(received, 0, end)
    if length:
        return len(received) - end - 4 >= int(length[1])
    return received.endswith(_LAST_CHUNK)


async def post_again_and_again(url: str, connections: int, seconds: float, body: bytes) -> None:
    counter = Counter()
    loop = asyncio.get_running_loop()
    request, (host, port) = request_of(url, body), address_of(url)
    opened = [
        await loop.create_connection(lambda: LoadConnection(request, counter), host, port) for _ in range(connections)
    ]
    await asyncio.wait([counter.error], timeout=seconds * _WARM_UP)
    before, began = counter.answers, time.perf_counter()
    await asyncio.wait([counter.error], timeout=seconds * (1 - _WARM_UP))
    answers, took = counter.answers - before, time.perf_counter() - began
    for transport, _ in opened:
        transport.abort()
    if counter.error.done():
        counter.error.result()
    announce(answers=answers, seconds=took)


def address_of(url: str) -> tuple[str, int]:
    target = urlsplit(url)
    assert target.hostname
    assert target.port
    return target.hostname, target.port


def request_of(url: str, body: bytes) -> bytes:
    """Return the whole HTTP request. The bulk endpoint takes one delivery per line, the others JSON."""
    target = urlsplit(url)
    content_type = "application/x-ndjson" if target.path.endswith("/bulk") else "application/json"
    head = (
        f"POST {target.path} HTTP/1.1\r\nHost: {target.netloc}\r\nAuthorization: Bearer {API_KEY}\r\n"
        f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


BACKLOG = 1024


async def serve_bare(answer: bytes) -> None:
    async def handle_bytes(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(status=202, body=answer, headers={"Content-Type": "application/json"})

    async def handle_json(request: web.Request) -> web.Response:
        body = await request.json()
        return web.json_response({"text": body["text"], "recipients": len(body["recipients"])}, status=202)

    app = web.Application()
    app.router.add_post("/v1/deliveries", handle_bytes)
    app.router.add_post("/json", handle_json)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=BACKLOG).start()
    announce(http=f"http://127.0.0.1:{runner.addresses[0][1]}")
    await stop_requested().wait()
    await runner.cleanup()


HTTP_PROGRAMS: Mapping[str, Callable[..., Coroutine[None, None, None]]] = {
    "load": lambda url, connections, seconds: post_again_and_again(
        url, int(connections), float(seconds), Path(os.environ["BENCH_BODY"]).read_bytes()
    ),
    "bare": lambda answer_bytes: serve_bare(b"x" * int(answer_bytes)),
}


CHANNEL = "lag"
PARCEL = 100


class LagCourier:
    """Implements couriers.sending.interface.Courier."""

    channel = CHANNEL
    account = "bench"
    batch = 1
    parcel = PARCEL
    remembers = FOREVER
    shows = frozenset[Feature]()

    def __init__(self, count: int) -> None:
        self._count = count
        self.lags: list[float] = []
        self.has_all = asyncio.Event()

    async def attempt(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        now = time.time() * 1000
        self.lags += [now - float(message.address) for message in messages]
        if len(self.lags) >= self._count:
            self.has_all.set()
        return [Sent()] * len(messages)

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


async def deliver(url: str, count: int) -> None:
    stop = stop_requested()
    store = await Store.open(url)
    courier = LagCourier(count)
    runtime = Runtime(store, CHANNEL)
    await runtime.add(courier)
    running = asyncio.create_task(runtime.run())
    announce(channel=CHANNEL)
    ends = [asyncio.create_task(event.wait()) for event in (courier.has_all, stop)]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    announce(lags=courier.lags)
    await stop.wait()
    runtime.stop()
    await running
    await store.close()


async def wake(first: int, count: int, spacing: int) -> None:
    stop = stop_requested()
    lags = []
    for moment in range(first, first + count * spacing, spacing):
        await asyncio.sleep(moment / 1000 - time.time())
        lags.append(time.time() * 1000 - moment)
    announce(lags=lags)
    await stop.wait()


PAGE = 500
CONCURRENT_PAGES = 4
"""Pages in flight at once, so that the server always has the next one."""

DUE_IN = timedelta(days=30)


async def fill(url: str, count: int) -> None:
    store = await Store.open(url)
    deliveries = Deliveries(store, Channels(store))
    began = time.monotonic()
    pages = iter(range(0, count, PAGE))
    await asyncio.gather(*(enqueue_pages(deliveries, pages, count) for _ in range(CONCURRENT_PAGES)))
    announce(seconds=time.monotonic() - began)
    await store.close()


async def enqueue_pages(deliveries: Deliveries, pages: Iterator[int], count: int) -> None:
    """Enqueues the next page until none is left; the callers share the iterator."""
    at = datetime.now(UTC) + DUE_IN
    for start in pages:
        numbers = range(start, min(start + PAGE, count))
        await deliveries.enqueue_many([(pending(number, at), None) for number in numbers])


def pending(number: int, at: datetime) -> NewDelivery:
    """Return a delivery to one person. No two are due in the same millisecond."""
    recipient = Recipient(number, contacts={CHANNEL: [str(number)]})
    return order(TEXT, [recipient], [CHANNEL], at + timedelta(milliseconds=number))


PROGRAMS: Mapping[str, Callable[..., Coroutine[None, None, None]]] = {
    **HTTP_PROGRAMS,
    "courier": lambda url, count: deliver(url, int(count)),
    "timer": lambda first, count, spacing: wake(int(first), int(count), int(spacing)),
    "fill": lambda url, count: fill(url, int(count)),
}


if __name__ == "__main__":
    asyncio.run(PROGRAMS[sys.argv[1]](*sys.argv[2:]))
