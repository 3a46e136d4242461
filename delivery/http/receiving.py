"""Receives bodies: within a size, within a time, and unpacked only here, after the client was authenticated."""

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from hashlib import blake2b
from typing import IO

from aiohttp import StreamReader, hdrs, web

from core.errors import Refused

_PIECE = 2**16
"""The most bytes that are unpacked at once."""


async def read_body(request: web.Request, limit: int, timeout: timedelta) -> bytes:
    """Return the body, unpacked. Raises `Refused` BODY_TOO_LARGE, BODY_TOO_SLOW, CONTENT_ENCODING_UNSUPPORTED,
    BODY_MALFORMED. The application's `client_max_size` must be at least `limit`.
    """
    unpacker = unpacker_of(request)
    raw = await receive(request, limit, timeout)
    if unpacker is None:
        return raw
    body = b""
    for piece in unpacker.feed(raw):
        body += piece
        if len(body) > limit:
            raise body_too_large(limit)
    unpacker.end()
    return body


async def receive(request: web.Request, limit: int, timeout: timedelta) -> bytes:
    """Return the body as it was sent. Raises `Refused` BODY_TOO_LARGE, BODY_TOO_SLOW."""
    check_content_length(request, limit)
    try:
        if request.content.is_eof():  # most bodies arrive with their head, and need no timer
            raw = await request.read()
        else:
            async with asyncio.timeout(timeout.total_seconds()):
                raw = await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise body_too_large(limit) from None
    except TimeoutError:
        raise _too_slow(timeout) from None
    if len(raw) > limit:
        raise body_too_large(limit)
    return raw


async def receive_file(request: web.Request, limit: int, timeout: timedelta, file: IO[bytes]) -> str:
    """Write the body to `file` as it arrives, unpacked; return a fingerprint of it. Raises `Refused` as `read_body`."""
    check_content_length(request, limit)
    size, content = 0, blake2b(digest_size=16)
    async for chunk in chunks(request.content, timeout, unpacker_of(request)):
        size += len(chunk)
        if size > limit:
            raise body_too_large(limit)
        content.update(chunk)
        file.write(chunk)
    return content.hexdigest()


async def chunks(content: StreamReader, timeout: timedelta, unpacker: "Unpacker | None") -> AsyncIterator[bytes]:
    """Emit the body as it arrives, unpacked; `timeout` is for each chunk. Raises `Refused` as `read_body`."""
    while chunk := await _next_chunk(content, timeout):
        if unpacker is None:
            yield chunk
            continue
        for piece in unpacker.feed(chunk):
            yield piece
    if unpacker is not None:
        unpacker.end()


async def _next_chunk(content: StreamReader, timeout: timedelta) -> bytes:
    try:
        async with asyncio.timeout(timeout.total_seconds()):
            return await content.readany()
    except TimeoutError:
        raise _too_slow(timeout) from None


def check_content_length(request: web.Request, limit: int) -> None:
    """Check the size of a body before it is received. Raises `Refused` BODY_TOO_LARGE if the announced length is above
    `limit` bytes.
    """
    if (request.content_length or 0) > limit:
        raise body_too_large(limit)


def body_too_large(limit: int) -> Refused:
    return Refused("BODY_TOO_LARGE", f"At most {limit} bytes are allowed.")


def _too_slow(timeout: timedelta) -> Refused:
    return Refused("BODY_TOO_SLOW", f"The body did not arrive within {timeout.total_seconds():g} s.")


class Unpacker:
    """Unpacks gzip, a piece at a time."""

    def __init__(self) -> None:
        self._gzip = zlib.decompressobj(16 + zlib.MAX_WBITS)

    def feed(self, packed: bytes) -> Iterator[bytes]:
        """Emit the pieces of what `packed` completes. Raises `Refused` BODY_MALFORMED."""
        while packed:
            if self._gzip.eof:  # zlib leaves what follows the end where it is, for ever
                raise _not_gzip()
            try:
                piece = self._gzip.decompress(packed, _PIECE)
            except zlib.error:
                raise _not_gzip() from None
            yield piece
            packed = self._gzip.unconsumed_tail

    def end(self) -> None:
        """End a body. Raises `Refused` BODY_MALFORMED if the body is not complete."""
        if not self._gzip.eof or self._gzip.unused_data:
            raise _not_gzip()


def _not_gzip() -> Refused:
    return Refused("BODY_MALFORMED", "The body is not complete gzip.")


def unpacker_of(request: web.Request) -> Unpacker | None:
    """Return the unpacker of a body; None if it is not packed. Raises `Refused` CONTENT_ENCODING_UNSUPPORTED."""
    encoding = request.headers.get(hdrs.CONTENT_ENCODING, "identity").strip().lower()
    if encoding in ("identity", ""):
        return None
    if encoding not in ("gzip", "x-gzip"):
        raise Refused("CONTENT_ENCODING_UNSUPPORTED", "Only gzip is supported.")
    return Unpacker()
