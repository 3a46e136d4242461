"""A request is announced when it has its connection, and before the server sees any of it."""

import asyncio

import pytest
from aiohttp import ClientSession, web

from couriers.provider_calls import AnnouncingConnector, announcing
from tests.support.serving import serving_app
from tests.support.waiting import until


async def test_a_request_that_waits_for_a_connection_is_not_announced() -> None:
    order: list[str] = []
    answer = asyncio.Event()

    async def handle(request: web.Request) -> web.Response:
        order.append(f"received {request.path}")
        await answer.wait()
        return web.Response()

    app = web.Application()
    app.router.add_get("/{name}", handle)
    async with serving_app(app) as url, ClientSession(connector=AnnouncingConnector(limit=1)) as session:

        async def request(name: str) -> None:
            async def announce() -> None:
                order.append(f"announced {name}")

            with announcing(announce):
                async with session.get(f"{url}/{name}"):
                    pass

        both = [asyncio.create_task(request(name)) for name in ("1", "2")]
        await until(lambda: order == ["announced 1", "received /1"])
        answer.set()
        await asyncio.gather(*both)
    assert order == ["announced 1", "received /1", "announced 2", "received /2"]


async def test_what_the_announcement_raises_is_raised_and_the_connection_is_free_again() -> None:
    received: list[str] = []

    async def handle(request: web.Request) -> web.Response:
        received.append(request.path)
        return web.Response()

    async def refuse() -> None:
        raise LookupError

    app = web.Application()
    app.router.add_get("/{name}", handle)
    async with serving_app(app) as url, ClientSession(connector=AnnouncingConnector(limit=1)) as session:
        for _ in range(2):
            with announcing(refuse), pytest.raises(LookupError):
                await session.get(f"{url}/refused")
        async with session.get(f"{url}/plain"):
            pass
    assert received == ["/plain"]
