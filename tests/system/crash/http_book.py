"""A service that bots of several tenants post to, and that keeps a book of every request.

Of some requests the first one goes wrong, by a seed: an error before it is written down, or a lost answer after it. A
request with a key that is in the book gets the number of before, and is not written down again.
"""

import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

Line = tuple[str, str, str]
"""Tenant, person and what the person wrote."""

_WRONG = 0.2
"""The share of requests whose first attempt goes wrong."""


@dataclass
class HttpBook:
    """`written`: how often each line was posted, without repeats of a key. `keys`: those that it was posted with.
    `strange`: lines that came with the secret of another tenant.
    """

    seed: int
    url: str = ""
    written: Counter[Line] = field(default_factory=Counter)
    numbers: dict[Line, int] = field(default_factory=dict)
    keys: dict[Line, set[str]] = field(default_factory=lambda: defaultdict(set))
    strange: list[Line] = field(default_factory=list)
    repeats: int = 0
    _tried: set[Line] = field(default_factory=set)
    _runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        self._random = random.Random(self.seed)
        app = web.Application()
        app.router.add_post("/{tenant}", self._handle)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner:
            await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.Response:
        body = await request.json()
        line = request.match_info["tenant"], str(body["person"]), str(body["line"])
        if request.headers["X-Secret"] != f"secret of {line[0]}":
            self.strange.append(line)
        fault = self._fault(line)
        if fault == "refused":
            return web.Response(status=503)
        self._write(line, request.headers.get("Idempotency-Key", ""))
        if fault == "lost" and request.transport:
            request.transport.abort()
        return web.json_response({"number": self.numbers[line]})

    def _fault(self, line: Line) -> Any:
        is_first = line not in self._tried
        self._tried.add(line)
        return self._random.choice(("refused", "lost")) if is_first and self._random.random() < _WRONG else ""

    def _write(self, line: Line, key: str) -> None:
        if key and key in self.keys[line]:
            self.repeats += 1
            return
        if key:
            self.keys[line].add(key)
        self.written[line] += 1
        self.numbers[line] = len(self.numbers) + 1
