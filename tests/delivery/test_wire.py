"""The handlers of a connection run in its one task, and end with it as they would in tasks of their own."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from delivery.http.error_handling import Plain
from delivery.http.server import STRAIGHT, Runner

Served = tuple[str, Runner]
GRACE = 0.3


@asynccontextmanager
async def serving(handler: Plain, handler_cancellation: bool = False) -> AsyncIterator[Served]:
    """`handler` at /, past the router, and at /routed."""
    app = web.Application()
    app.router.add_get("/routed", handler)
    app[STRAIGHT] = {("GET", "/"): handler}
    runner = Runner(app, shutdown_timeout=GRACE, handler_cancellation=handler_cancellation)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", runner
    finally:
        await runner.cleanup()


class Stuck:
    """A handler that answers when it is told to, and notes what became of it."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self.end: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.begun.set()
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.end.set_result("cancelled")
            raise
        self.end.set_result("answered")
        return web.Response(text="late")


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="tasks begin eagerly there")
async def test_requests_of_one_connection_run_in_its_task() -> None:
    tasks = []

    async def handler(request: web.Request) -> web.StreamResponse:
        tasks.append(asyncio.current_task())
        await asyncio.sleep(0)
        return web.Response()

    async with serving(handler) as (url, _), aiohttp.ClientSession() as session:
        for path in ("/", "/routed", "/"):
            async with session.get(url + path) as answer:
                assert answer.status == 200
    assert len(tasks) == 3
    assert len(set(tasks)) == 1


async def test_a_handler_that_raises_is_answered_and_the_next_connection_served() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        raise RuntimeError("no")

    async with serving(handler) as (url, _), aiohttp.ClientSession() as session:
        for _ in range(2):
            async with session.get(url) as answer:
                assert answer.status == 500


async def test_a_handler_that_takes_too_long_for_itself_is_answered() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(60)
        raise AssertionError

    async with serving(handler) as (url, _), aiohttp.ClientSession() as session, session.get(url) as answer:
        assert answer.status == 504


@pytest.mark.parametrize(("cancels", "end"), [(True, "cancelled"), (False, "answered")])
async def test_a_caller_who_goes_ends_his_handler_only_where_that_is_wanted(cancels: bool, end: str) -> None:
    stuck = Stuck()
    async with serving(stuck.handle, handler_cancellation=cancels) as (url, _):
        async with aiohttp.ClientSession() as session:
            asking = asyncio.create_task(get(session, url))
            await stuck.begun.wait()
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        await asyncio.sleep(0.1)
        stuck.go_on.set()
        assert await asyncio.wait_for(stuck.end, 5) == end


@pytest.mark.parametrize(
    ("release", "end"), [(lambda stuck: stuck.go_on.set(), "answered"), (lambda stuck: None, "cancelled")]
)
async def test_the_end_of_the_process_waits_for_a_handler_and_then_ends_it(
    release: Callable[[Stuck], None], end: str
) -> None:
    stuck = Stuck()
    async with serving(stuck.handle) as (url, runner), aiohttp.ClientSession() as session:
        asking = asyncio.create_task(get(session, url))
        await stuck.begun.wait()
        asyncio.get_running_loop().call_later(GRACE / 3, release, stuck)
        await asyncio.wait_for(runner.cleanup(), 10)
        assert await asyncio.wait_for(stuck.end, 5) == end
        (told,) = await asyncio.gather(asking, return_exceptions=True)
        assert told == "late" if end == "answered" else isinstance(told, aiohttp.ClientError)


async def get(session: aiohttp.ClientSession, url: str) -> str:
    async with session.get(url) as answer:
        return await answer.text()
