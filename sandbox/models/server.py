"""The HTTP server of the models: counts requests, checks keys, injects faults."""

import asyncio
from base64 import b64encode
from collections.abc import Awaitable, Callable

from aiohttp import web

from sandbox.events import Fault
from sandbox.http_listener import MAX_BODY, HttpListener, disconnect, html_page, no_response
from sandbox.models import openai_api, salute_api
from sandbox.models.openai_api import Answered
from sandbox.models.refusal import Refusal
from sandbox.state import SandboxState

CHANNEL = "models"
KEY = "sandbox-key"
MODEL = "sandbox-model"
AUTHORIZATION_KEY = b64encode(b"ada:sandbox").decode()

Answer = Callable[[web.Request], Awaitable[Answered]]
Check = Callable[[web.Request], None]


class ModelsServer(HttpListener):
    """`url` is the address of OpenAI's interface, `salute_url` that of SaluteSpeech. `tokens` are SaluteSpeech's."""

    def __init__(self, state: SandboxState, host: str = "127.0.0.1", port: int = 0) -> None:
        self._state = state
        self.tokens = salute_api.Tokens(AUTHORIZATION_KEY)
        app = web.Application(client_max_size=MAX_BODY)
        for path, name, check, answer in self._routes():
            app.router.add_post(path, self._handler(name, check, answer))
        super().__init__(app, host, port, "/v1")

    def _routes(self) -> list[tuple[str, str, Check, Answer]]:
        return [
            ("/v1/chat/completions", "completion", _check_key, openai_api.complete),
            ("/v1/audio/speech", "speech", _check_key, openai_api.speak),
            ("/v1/audio/transcriptions", "transcription", _check_key, openai_api.transcribe),
            ("/api/v2/oauth", "token", _check_nothing, self.tokens.give),
            ("/rest/v1/text:synthesize", "synthesize", self.tokens.check, salute_api.synthesize),
            ("/rest/v1/speech:recognize", "recognize", self.tokens.check, salute_api.recognize),
        ]

    @property
    def salute_url(self) -> str:
        return self.url.removesuffix("/v1") + "/rest/v1"

    @property
    def token_url(self) -> str:
        return self.url.removesuffix("/v1") + "/api/v2/oauth"

    def _handler(
        self, name: str, check: Check, answer: Answer
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            self._state.count(CHANNEL, name)
            try:
                check(request)
                answered = await answer(request)
            except Refusal as refusal:
                return _refused(refusal.status, str(refusal))
            fault = self._state.fault(CHANNEL, answered.model, name)
            return await self._respond(request, answered, fault)

        return handle

    async def _respond(self, request: web.Request, answered: Answered, fault: Fault | None) -> web.StreamResponse:
        if fault is not None and fault.name == "slow":
            self._state.count(CHANNEL, "waiting")
            try:
                await asyncio.sleep(fault.value or 0)
            finally:
                self._state.count(CHANNEL, "waiting", -1)
        elif fault is not None:
            return await _inject(request, answered, fault)
        return web.Response(body=answered.body, content_type=answered.content_type)


def _check_key(request: web.Request) -> None:
    openai_api.check_key(request, KEY)


def _check_nothing(_: web.Request) -> None:
    """Check nothing: the answer itself checks the key."""


def _refused(status: int, text: str, **headers: str) -> web.Response:
    error = {"error": {"message": text, "type": "invalid_request_error", "code": None}}
    return web.json_response(error, status=status, headers=headers)


_ERRORS = {
    "unauthorized": (401, "Incorrect API key provided."),
    "server_error": (500, "The server had an error while processing your request."),
}
_PAGES = {"bad_gateway": (502, "502 Bad Gateway"), "not_json": (200, "Technical works")}


async def _inject(request: web.Request, answered: Answered, fault: Fault) -> web.StreamResponse:
    if fault.name in _ERRORS:
        return _refused(*_ERRORS[fault.name])
    if fault.name in _PAGES:
        return html_page(*_PAGES[fault.name])
    match fault.name:
        case "throttled":
            return _refused(429, "Rate limit reached.", **{"Retry-After": str(fault.value or 0)})
        case "empty":
            return web.Response(body=b"", content_type=answered.content_type)
        case "cut":
            return await _cut(request, answered)
        case "timeout":
            return await no_response()
    return await disconnect(request)


async def _cut(request: web.Request, answered: Answered) -> web.StreamResponse:
    """Send half of the answer, then close the connection."""
    response = web.StreamResponse()
    response.content_type = answered.content_type
    response.content_length = len(answered.body)
    await response.prepare(request)
    await response.write(answered.body[: len(answered.body) // 2])
    return await disconnect(request)
