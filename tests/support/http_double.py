"""An HTTP server for tests of a client: the same answer to each request, and what was asked."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web


@dataclass(frozen=True)
class Asked:
    """One request."""

    method: str
    path_qs: str
    headers: Mapping[str, str]
    text: str


@dataclass
class HttpDouble:
    """`requests`: in the order of their arrival. `url`: without a slash at the end. While `answering` is not set, it
    does not answer.
    """

    requests: list[Asked] = field(default_factory=list)
    url: str = ""
    answering: asyncio.Event = field(default_factory=asyncio.Event)
    _answer: tuple[int, str, Mapping[str, str]] = (200, "{}", {})
    _runner: web.AppRunner | None = None

    def answers(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        """Set the answer. `body`: a text as it is, anything else as JSON."""
        self._answer = status, body if isinstance(body, str) else json.dumps(body), headers or {}

    async def __aenter__(self) -> Self:
        self.answering.set()
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner:
            await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.Response:
        text = await request.text()
        self.requests.append(Asked(request.method, request.path_qs, dict(request.headers), text))
        await self.answering.wait()
        status, body, headers = self._answer
        return web.Response(status=status, text=body, content_type="application/json", headers=headers)
