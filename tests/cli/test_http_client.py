"""The HTTP client of the command line, against servers that break off, refuse early, and never answer."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from cli.client.http_client import ClientUpload, HttpClient
from cli.command import CommandFailed
from core.errors import SetupError

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
OUTCOME = b"event: outcome\ndata: {}\n\n"
PROBLEM = b'{"code": "BODY_TOO_LARGE", "detail": "At most 5 bytes are allowed."}'
REFUSAL = b"HTTP/1.1 413 X\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(PROBLEM), PROBLEM)

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def client_of(serve: Serve) -> AsyncIterator[HttpClient]:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield HttpClient(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", "key")


async def test_a_stream_that_breaks_off_is_no_end() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(STREAM + b"%x\r\n%s\r\n" % (len(OUTCOME), OUTCOME))
        writer.close()

    async with client_of(serve) as api:
        events = api.events("/v1/deliveries/x/events")
        assert (await anext(events)).name == "outcome"
        with pytest.raises(SetupError, match="cannot reach Ada"):
            await anext(events)


async def test_a_server_that_refuses_a_body_before_its_end_is_understood() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(REFUSAL)
        writer.write_eof()
        while await reader.read(2**20):
            pass
        writer.close()

    async with client_of(serve) as api:
        with pytest.raises(CommandFailed, match="BODY_TOO_LARGE: At most 5 bytes"):
            await api.upload("/v1/import", ClientUpload(b"x" * 2**22, "text/csv"), {"kind": "users"})


async def test_a_call_that_is_cancelled_leaves_no_thread_waiting() -> None:
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await reader.read()
        ended.set()
        writer.close()

    asked = asyncio.Event()
    async with client_of(serve) as api:
        calling = asyncio.create_task(api.call("GET", "/v1/me"))
        await asyncio.wait_for(asked.wait(), 10)
        calling.cancel()
        await asyncio.wait([calling], timeout=10)
        assert calling.cancelled()
        await asyncio.wait_for(ended.wait(), 10)
