"""The outside service of the tests of limits: it counts how many calls are open at once, by user and account."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from aiohttp import web


@dataclass
class Shop:
    """`most`: by "", `user 1` and `account x`, how many calls were open at once; `calls`: when each came; `takes`:
    seconds of a call.
    """

    takes: float = 0.2
    most: Counter[str] = field(default_factory=Counter)
    calls: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    url: str = ""
    _open: Counter[str] = field(default_factory=Counter)
    _runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.add_routes([web.post("/call", self._call)])
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        if self._runner:
            await self._runner.cleanup()

    @property
    def open(self) -> int:
        """How many calls are open now."""
        return self._open[""]

    async def _call(self, request: web.Request) -> web.Response:
        """Takes its time; ends when the process of the caller dies."""
        account = f"account {request.query['account']}"
        names = ["", f"user {request.query['user']}", account]
        self.calls[account].append(time.monotonic())
        self._open.update(names)
        for name in names:
            self.most[name] = max(self.most[name], self._open[name])
        try:
            await asyncio.sleep(self.takes)
        finally:
            self._open.subtract(names)
        return web.json_response({})


def shortest(times: Sequence[float], calls: int) -> float:
    """Return the shortest time in which one call more than `calls` came."""
    return min(later - earlier for earlier, later in zip(times, times[calls:], strict=False))
