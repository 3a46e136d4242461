"""The outside service of the tests: search, apply, and whether somebody has applied."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from aiohttp import web


@dataclass
class Service:
    """`applied`: (user, item) → how often. `searched`: (user, iteration) → how often. `offers`: items per iteration.

    `takes`: seconds between storing an application and answering: a caller that dies then does not know.
    """

    offers: int = 3
    takes: float = 0.1
    applied: Counter[tuple[str, str]] = field(default_factory=Counter)
    searched: Counter[tuple[str, str]] = field(default_factory=Counter)
    url: str = ""
    _runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.add_routes(
            [
                web.get("/search", self._search),
                web.post("/apply", self._apply),
                web.get("/applied", self._applied),
            ]
        )
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        if self._runner:
            await self._runner.cleanup()

    async def _search(self, request: web.Request) -> web.Response:
        user, iteration = request.query["user"], request.query["iteration"]
        self.searched[user, iteration] += 1
        newest = int(iteration) + self.offers
        return web.json_response([f"item-{n}" for n in range(int(iteration), newest)])

    async def _apply(self, request: web.Request) -> web.Response:
        self.applied[request.query["user"], request.query["item"]] += 1
        await asyncio.sleep(self.takes)
        return web.json_response({})

    async def _applied(self, request: web.Request) -> web.Response:
        return web.json_response(self.applied[request.query["user"], request.query["item"]] > 0)
