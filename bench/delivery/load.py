"""A process that posts one body again and again over kept-alive connections, as light as Python can.

`python -m bench.delivery.load URL CONNECTIONS SECONDS` reads the whole request's body from the file in BENCH_BODY.
Announces how
many answers came and in how many seconds; the first tenth of the time is not counted. An answer that is no 2xx ends it.
"""

import asyncio
import os
import re
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

from bench.harness.ground import API_KEY
from cli.processes.supervisor import announce

_LENGTH = re.compile(rb"\r\nContent-Length: (\d+)", re.IGNORECASE)
_WARMING = 0.1
_LAST_CHUNK = b"\r\n0\r\n\r\n"


class Tally:
    """What all connections counted together."""

    def __init__(self) -> None:
        self.answers = 0
        self.fault: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class Poster(asyncio.Protocol):
    """One connection: the next request goes out when the answer to the one before is whole."""

    def __init__(self, request: bytes, tally: Tally) -> None:
        self._request = request
        self._tally = tally
        self._heard = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._heard += data
        if not is_whole(self._heard):
            return
        if not self._heard.startswith(b"HTTP/1.1 2") and not self._tally.fault.done():
            self._tally.fault.set_exception(RuntimeError(self._heard[:500].decode()))
            return
        self._heard = b""
        self._tally.answers += 1
        self._transport.write(self._request)


def is_whole(heard: bytes) -> bool:
    """Whether an answer has come to its end, by its length or by its last chunk."""
    end = heard.find(b"\r\n\r\n")
    if end < 0:
        return False
    length = _LENGTH.search(heard, 0, end)
    if length:
        return len(heard) - end - 4 >= int(length[1])
    return heard.endswith(_LAST_CHUNK)


async def post(url: str, connections: int, seconds: float, body: bytes) -> None:
    tally = Tally()
    loop = asyncio.get_running_loop()
    request = request_of(url, body)
    made = [await loop.create_connection(lambda: Poster(request, tally), *address_of(url)) for _ in range(connections)]
    await asyncio.wait([tally.fault], timeout=seconds * _WARMING)
    before, began = tally.answers, time.perf_counter()
    await asyncio.wait([tally.fault], timeout=seconds * (1 - _WARMING))
    counted, took = tally.answers - before, time.perf_counter() - began
    for transport, _ in made:
        transport.abort()
    if tally.fault.done():
        tally.fault.result()
    announce(answers=counted, seconds=took)


def address_of(url: str) -> tuple[str, int]:
    target = urlsplit(url)
    assert target.hostname
    assert target.port
    return target.hostname, target.port


def request_of(url: str, body: bytes) -> bytes:
    """Many deliveries go to …/bulk, as lines."""
    target = urlsplit(url)
    kind = "application/x-ndjson" if target.path.endswith("/bulk") else "application/json"
    head = (
        f"POST {target.path} HTTP/1.1\r\nHost: {target.netloc}\r\nAuthorization: Bearer {API_KEY}\r\n"
        f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


if __name__ == "__main__":
    asyncio.run(post(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), Path(os.environ["BENCH_BODY"]).read_bytes()))
