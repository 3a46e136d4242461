"""NDJSON requests and responses: cuts a body into lines as it arrives, and buffers response lines for a slow client."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Sequence
from dataclasses import dataclass

from aiohttp import web

from core.errors import Refused

CONTENT_TYPE = "application/x-ndjson"


@dataclass(frozen=True, slots=True)
class Line:
    """A line as received, or why it could not be received. Lines are counted from 1, empty ones included."""

    number: int
    raw: bytes
    refused: Refused | None = None


async def read_lines(
    chunks: AsyncIterable[bytes], *, body_limit: int, line_limit: int, batch: int
) -> AsyncIterator[Sequence[Line]]:
    """Yield lines as they arrive, at most `batch` at once. After `body_limit` bytes the last line is a refusal."""
    splitter = LineSplitter(line_limit)
    try:
        async for chunk in _limited(chunks, body_limit):
            for lines in _batches(splitter.feed(chunk), batch):
                yield lines
    except Refused as refused:
        yield [splitter.refuse(refused)]
    except web.RequestPayloadError as error:
        yield [splitter.refuse(Refused("BODY_MALFORMED", f"The body breaks off here: {type(error).__name__}."))]
    else:
        for lines in _batches(splitter.feed(b"\n"), batch):
            yield lines


async def _limited(chunks: AsyncIterable[bytes], limit: int) -> AsyncIterator[bytes]:
    left = limit
    async for chunk in chunks:
        left -= len(chunk)
        if left < 0:
            raise Refused("BODY_TOO_LARGE", f"At most {limit} bytes are allowed; nothing was read from here on.")
        yield chunk


def _batches(lines: Sequence[Line], size: int) -> list[Sequence[Line]]:
    return [lines[start : start + size] for start in range(0, len(lines), size)]


class LineSplitter:
    """Cuts chunks into lines. Of a line longer than `limit` bytes nothing is kept."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest = b""
        self._is_skipping = False
        self._number = 0

    def feed(self, chunk: bytes) -> list[Line]:
        """Return the lines that `chunk` completes, without the empty ones."""
        *complete, self._rest = (self._rest + chunk).split(b"\n")
        lines = [self._line(raw) for raw in complete]
        if len(self._rest) > self._limit:
            self._is_skipping, self._rest = True, b""
        return [line for line in lines if line.refused or (not line.raw.isspace() and line.raw)]

    def _line(self, raw: bytes) -> Line:
        is_too_long, self._is_skipping = self._is_skipping or len(raw) > self._limit, False
        if is_too_long:
            return self.refuse(Refused("BODY_TOO_LARGE", f"A line has at most {self._limit} bytes."))
        self._number += 1
        return Line(self._number, raw)

    def refuse(self, reason: Refused) -> Line:
        """Return the next line, marked as refused."""
        self._number += 1
        return Line(self._number, b"", reason)


class ResponseBuffer:
    """Responses on their way to the client. While `limit` bytes wait, `put` waits too."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._queue = asyncio.Queue[bytes]()
        self._has_room = asyncio.Event()

    async def put(self, lines: bytes) -> None:
        while self._size >= self._limit:
            self._has_room.clear()
            await self._has_room.wait()
        self._size += len(lines)
        self._queue.put_nowait(lines)

    async def take(self) -> bytes:
        lines = await self._queue.get()
        self._size -= len(lines)
        self._has_room.set()
        return lines
