"""The outside service of the tests of kills: it remembers the idempotency keys of a call, and counts those it has
taken."""

import asyncio
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from aiohttp import web

Call = tuple[str, str]
"""Whose call it is, and its name."""


@dataclass
class Ledger:
    """`keys`: of each call, in the order of their first coming; one more than once is a repetition. `waiting`: the
    calls without an answer, as long as `gate` is closed, of the names `held`. `failures`: how often a name still fails.
    """

    held: frozenset[str] = frozenset()
    keys: defaultdict[Call, list[str]] = field(default_factory=lambda: defaultdict(list))
    waiting: Counter[Call] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""
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

    def doubled(self) -> dict[Call, list[str]]:
        """Return the calls that took place more than once: with more than one key."""
        return {call: keys for call, keys in self.keys.items() if len(set(keys)) > 1}

    async def _call(self, request: web.Request) -> web.Response:
        who, name, key = (request.query[word] for word in ("who", "name", "key"))
        self.keys[who, name].append(key)
        if self.failures[name] > 0:
            self.failures[name] -= 1
            raise web.HTTPServiceUnavailable
        if name in self.held:
            self.waiting[who, name] += 1
            try:
                await self.gate.wait()
            finally:
                self.waiting[who, name] -= 1
        return web.json_response(f"{name} done")
