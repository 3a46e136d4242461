"""A relay in front of the sandbox's Bot API: it writes down each call as it was sent, and can answer in its place."""

import json
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import ClientSession, FormData, web

from sandbox.bot_api import BotApiServer
from sandbox.http_listener import HttpListener, no_response
from sandbox.state import SandboxState
from tests.support.serving import serving

MOMENTS = ("until_date", "expire_date")
"""Parameters that differ from run to run."""


@dataclass(frozen=True)
class Answer:
    """The response of the relay. `cut`: after so many bytes the connection breaks; 0: without a response."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int | None = None


SILENCE = Answer(status=0)


@dataclass
class Relay:
    """`calls`: what was received. `answers`: the next ones; after them the sandbox answers."""

    server: BotApiServer
    url: str = ""
    calls: list[Any] = field(default_factory=list)
    answers: deque[Answer] = field(default_factory=deque)

    def received(self) -> list[Any]:
        """Return the calls since this was last asked."""
        calls, self.calls = self.calls, []
        return calls

    async def handle(self, request: web.Request) -> web.StreamResponse:
        is_json = request.content_type == "application/json"
        fields: Mapping[str, Any] = await request.json() if is_json else await request.post()
        self.calls.append(_noted(request, fields))
        if self.answers:
            return await _respond(request, self.answers.popleft())
        return await self._forward(request, _form(fields))

    async def _forward(self, request: web.Request, form: FormData) -> web.Response:
        async with (
            ClientSession() as session,
            session.request(request.method, f"{self.server.url}{request.path}", data=form) as answer,
        ):
            return web.Response(status=answer.status, body=await answer.read(), content_type=answer.content_type)


def _noted(request: web.Request, fields: Mapping[str, Any]) -> list[Any]:
    """Return a call: the method, its parameters, name and size of its files. JSON and a form that mean the same are the
    same; so are the names by which parameters refer to files.
    """
    files = {name: value for name, value in fields.items() if isinstance(value, web.FileField)}
    sizes = {name: len(file.file.read()) for name, file in files.items()}
    for file in files.values():
        file.file.seek(0)
    texts = {name: _text(value) for name, value in fields.items() if name not in files}
    for name, file in files.items():
        texts = {key: text.replace(f"attach://{name}", f"attach://{file.filename}") for key, text in texts.items()}
    parameters = {name: "a moment" if name in MOMENTS else _value(text) for name, text in sorted(texts.items())}
    uploads = sorted([file.filename, sizes[name]] for name, file in files.items())
    verb = [] if request.method == "POST" else [request.method]
    return [*verb, request.path.replace(f"/bot{request.match_info.get('token', '')}/", ""), parameters, *uploads]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _value(text: str) -> Any:
    """Return an object or a list as such, everything else as its text."""
    return json.loads(text) if text[:1] in ("{", "[") else text


def _form(fields: Mapping[str, Any]) -> FormData:
    form = FormData(quote_fields=False)
    for name, value in fields.items():
        if isinstance(value, web.FileField):
            form.add_field(name, value.file.read(), filename=value.filename, content_type=value.content_type)
        else:
            form.add_field(name, _text(value))
    return form


async def _respond(request: web.Request, answer: Answer) -> web.StreamResponse:
    if answer is SILENCE:
        return await no_response()
    if answer.cut is None:
        return web.Response(status=answer.status, body=answer.body, headers=answer.headers)
    response = web.StreamResponse(status=answer.status, headers={"Content-Length": "1000"})
    if answer.cut:
        await response.prepare(request)
        await response.write(answer.body[: answer.cut])
    assert request.transport is not None
    request.transport.close() if answer.cut else request.transport.abort()
    return response


@asynccontextmanager
async def relaying() -> AsyncIterator[Relay]:
    async with serving(BotApiServer(SandboxState())) as server:
        relay = Relay(server)
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/bot{token}/{method}", relay.handle)
        app.router.add_route("*", "/{path:.*}", relay.handle)
        async with serving(HttpListener(app, "127.0.0.1", 0, "")) as listener:
            relay.url = listener.url
            yield relay
