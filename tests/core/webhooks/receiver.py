"""A real HTTP receiver of webhooks, whose answers a test chooses."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from standardwebhooks import Webhook as Verifier

from cli.processes.embedded_valkey import free_port

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Call:
    """One request, as it came."""

    path: str
    headers: dict[str, str]
    body: str

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def message(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found

    @property
    def type(self) -> str:
        return str(self.message["type"])

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = self.message["data"]
        return found

    def verify(self, secret: str) -> None:
        """Raises WebhookVerificationError if the signature is not that of this secret."""
        Verifier(secret).verify(self.body, self.headers)


async def accept(request: web.Request) -> web.StreamResponse:
    return web.Response(status=204)


def status(number: int, **headers: str) -> Answer:
    """An answer with this status."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(status=number, headers={name.replace("_", "-"): value for name, value in headers.items()})

    return answer


@dataclass
class Receiver:
    """`stop` closes the port; `start` opens the same port again."""

    answer: Answer = accept
    port: int = field(default_factory=free_port)
    calls: list[Call] = field(default_factory=list)
    _runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._receive)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _receive(self, request: web.Request) -> web.StreamResponse:
        self.calls.append(Call(request.path, {k.lower(): v for k, v in request.headers.items()}, await request.text()))
        return await self.answer(request)

    def url(self, path: str = "/hook") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def of_type(self, kind: str) -> list[Call]:
        return [call for call in self.calls if call.type == kind]

    def copies(self) -> Counter[str]:
        """Message id → how often it came."""
        return Counter(call.id for call in self.calls)

    def finished(self) -> set[str]:
        """The deliveries of whose end it was notified."""
        return {str(call.data["delivery"]) for call in self.of_type("finished")}


async def hang(request: web.Request) -> web.StreamResponse:
    """Never answers."""
    await asyncio.Event().wait()
    return web.Response()
