"""The server: what it does with a handler that fails, hangs or outlives its client or the process."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
import pytest
from aiohttp import web
from aiohttp.typedefs import Handler

from delivery.http.server import listening
from tests.support.waiting import stays


@asynccontextmanager
async def serving(handler: Handler, shutdown_timeout: float = 0.3) -> AsyncIterator[tuple[str, AsyncExitStack]]:
    """Yields the URL of `handler` and the stack whose `aclose` stops the server."""
    app = web.Application()
    app.router.add_get("/", handler)
    async with AsyncExitStack() as server:
        address = listening(app, "127.0.0.1", 0, shutdown_timeout=shutdown_timeout)
        host, port = await server.enter_async_context(address)
        yield f"http://{host}:{port}", server


class BlockedHandler:
    """A handler that responds when `proceed` is set. `end` is how it ended."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.proceed = asyncio.Event()
        self.end: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.started.set()
        try:
            await self.proceed.wait()
        except asyncio.CancelledError:
            self.end.set_result("cancelled")
            raise
        self.end.set_result("responded")
        return web.Response(text="late")


async def test_a_handler_that_raises_gets_a_problem_document_and_the_server_goes_on() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        raise RuntimeError("the password is hunter2")

    async with serving(handler) as (url, _), aiohttp.ClientSession() as session:
        for _ in range(2):
            async with session.get(url) as response:
                assert response.status == 500
                assert (await response.json(content_type="application/problem+json"))["status"] == 500
                assert "hunter2" not in await response.text()


async def test_a_handler_that_runs_into_its_own_timeout_gets_a_response() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        async with asyncio.timeout(0.01):
            await asyncio.Event().wait()
        raise AssertionError

    async with serving(handler) as (url, _), aiohttp.ClientSession() as session, session.get(url) as response:
        assert response.status == 504


async def test_a_handler_runs_to_its_end_although_its_client_disconnects() -> None:
    blocked = BlockedHandler()
    async with serving(blocked.handle) as (url, _):
        async with aiohttp.ClientSession() as session:
            request = asyncio.create_task(get(session, url))
            await blocked.started.wait()
            request.cancel()
            await asyncio.gather(request, return_exceptions=True)
        await stays(lambda: not blocked.end.done())
        blocked.proceed.set()
        assert await asyncio.wait_for(blocked.end, 20) == "responded"


@pytest.mark.parametrize(
    ("release", "timeout", "end"),
    [(lambda blocked: blocked.proceed.set(), 60, "responded"), (lambda blocked: None, 0.3, "cancelled")],
)
async def test_shutdown_waits_for_a_handler_and_cancels_it_after_the_timeout(
    release: Callable[[BlockedHandler], None], timeout: float, end: str
) -> None:
    blocked = BlockedHandler()
    async with serving(blocked.handle, timeout) as (url, server), aiohttp.ClientSession() as session:
        request = asyncio.create_task(get(session, url))
        await blocked.started.wait()
        asyncio.get_running_loop().call_later(0.1, release, blocked)
        await asyncio.wait_for(server.aclose(), 20)
        assert await asyncio.wait_for(blocked.end, 20) == end
        (result,) = await asyncio.gather(request, return_exceptions=True)
        assert result == "late" if end == "responded" else isinstance(result, aiohttp.ClientError)


async def get(session: aiohttp.ClientSession, url: str) -> str:
    async with session.get(url) as response:
        return await response.text()
