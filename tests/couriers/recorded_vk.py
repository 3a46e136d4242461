"""The sandbox's VK that records each request, and plays an answer of a test in place of its own."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from sandbox.http_listener import disconnect, no_response
from sandbox.state import SandboxState
from sandbox.vk import VkServer

_RANDOM = re.compile(r"(?<=_)[0-9a-f]{10}(?![0-9a-f])|(?<![0-9a-f])(?:[0-9a-f]{16}|[0-9a-f]{40})(?![0-9a-f])")
_ADDRESS = re.compile(r"127\.0\.0\.1:\d+")


@dataclass(frozen=True)
class Answer:
    """What is sent back. `lost`: "before" the request is handled or "after" it, the connection is cut; "silence"."""

    body: str | bytes = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    lost: str = ""


class RecordedVk(VkServer):
    """`requests`: in their order, a line each and one for each field of the form, without what differs by run.
    `played`: method → the answer to each of its requests, or the answers in turn, of which the last is repeated.
    """

    def __init__(self, state: SandboxState | None = None) -> None:
        self.requests: list[str] = []
        self.played: dict[str, Answer | list[Answer]] = {}
        super().__init__(state or SandboxState())

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        return await self._recorded(request, request.match_info["method"], super()._handle)

    async def _handle_long_poll(self, request: web.Request) -> web.StreamResponse:
        return await self._recorded(request, "longpoll", super()._handle_long_poll)

    async def _handle_upload(self, request: web.Request) -> web.StreamResponse:
        return await self._recorded(request, "upload", super()._handle_upload)

    async def _recorded(self, request: web.Request, name: str, handle: Any) -> web.StreamResponse:
        query = "".join(f" {key}={value}" for key, value in request.query.items()).replace(self.token, "TOKEN")
        form = [f"  {key}: {_shown(value)}" for key, value in (await request.post()).items()]
        self.requests += map(without_chance, [f"{request.method} {request.path}{query}", *form])
        answer = self.played.get(name)
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        if answer is None:
            return await handle(request)  # type: ignore[no-any-return]
        match answer.lost:
            case "silence":
                return await no_response()
            case "after":
                await handle(request)
        if answer.lost:
            return await disconnect(request)
        body = answer.body.encode() if isinstance(answer.body, str) else answer.body
        return web.Response(status=answer.status, body=body, headers=answer.headers)


def _shown(value: Any) -> str:
    """Return a field of a form; of a file its headers and its size."""
    if not isinstance(value, web.FileField):
        return repr(value)
    size = len(value.file.read())
    value.file.seek(0)
    return f"{dict(sorted(value.headers.items()))}, {size} bytes"


def without_chance(text: str) -> str:
    """Return a text without random keys and the address of this machine."""
    return _ADDRESS.sub("SERVER", _RANDOM.sub("KEY", text))
