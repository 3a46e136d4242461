"""A loft: keeps what was sent, and hands out what people have written."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from aiohttp import web

TOKEN, RING = "corn", "ring-7"


class Loft:
    """Implements `couriers.channel.Simulator`. `address.txt` in its directory says where it listens."""

    def __init__(self) -> None:
        self.environment: Mapping[str, str] = {}
        self._sent: list[dict[str, Any]] = []
        self._arrived: list[dict[str, Any]] = []
        self._news = asyncio.Event()
        app = web.Application()
        app.add_routes([web.post("/send", self._send), web.get("/sent", self._show)])
        app.add_routes([web.post("/write", self._write), web.get("/arrived", self._poll)])
        self._runner = web.AppRunner(app)

    async def start(self, directory: Path) -> None:
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        address = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        (directory / "address.txt").write_text(address)
        self.environment = {"ADA_PIGEON_URL": address, "ADA_PIGEON_TOKEN": TOKEN, "ADA_PIGEON_RING": RING}

    async def close(self) -> None:
        await self._runner.cleanup()

    async def _send(self, request: web.Request) -> web.Response:
        self._sent.append(await request.json())
        return web.Response(status=200 if request.headers.get("Authorization") == TOKEN else 401, text="flown")

    async def _show(self, request: web.Request) -> web.Response:
        return web.json_response(self._sent)

    async def _write(self, request: web.Request) -> web.Response:
        self._arrived.append({**await request.json(), "id": len(self._arrived) + 1})
        self._news.set()
        return web.Response()

    async def _poll(self, request: web.Request) -> web.Response:
        after = int(request.query["after"] or 0)
        self._news.clear()
        if not self._arrived[after:]:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), 2)
        return web.json_response(self._arrived[after:])


async def start_simulator(directory: Path) -> Loft:
    loft = Loft()
    await loft.start(directory)
    return loft
