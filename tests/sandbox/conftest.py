"""VK and SMS servers on real sockets, called through real client libraries."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Never

import pytest
from aiohttp import (
    ClientError,
    ClientHandlerType,
    ClientOSError,
    ClientRequest,
    ClientResponse,
    ClientSession,
    FormData,
    ServerDisconnectedError,
    web,
)
from vkbottle import API, ABCRequestRescheduler

from sandbox.sandbox import Sandbox
from sandbox.sms import SmsServer
from sandbox.state import SandboxState
from sandbox.vk import VkServer
from tests.sandbox.telegram_clients import telegram
from tests.support.kannel import kannel
from tests.support.serving import serving, serving_app

__all__ = ["kannel", "telegram"]


class NotJson(Exception):
    pass


class NoReschedule(ABCRequestRescheduler):
    """Raises NotJson. vkbottle's own rescheduler repeats a request without end if the response is not JSON."""

    async def reschedule(self, ctx_api: Any, method: str, data: dict[str, Any], recent_response: Any) -> Never:
        raise NotJson(recent_response)


@dataclass
class Vk:
    """The VK server with an unmodified client."""

    state: SandboxState
    server: VkServer
    api: API

    async def execute(self, code: str) -> dict[str, Any]:
        return await self.api.request("execute", {"code": code})

    async def send(self, **parameters: Any) -> Any:
        """Call messages.send; returns its `response`."""
        return (await self.api.request("messages.send", {"random_id": 1, "message": "hello", **parameters}))["response"]

    def texts(self, address: str) -> list[str]:
        return [received.text for received in self.state.inbox("vk", address)]


@pytest.fixture
def state() -> SandboxState:
    return SandboxState()


async def without_repeat(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
    """Keep aiohttp from repeating a GET whose connection is closed: with an SMS gateway that is a second SMS."""
    try:
        return await handler(request)
    except (ClientOSError, ServerDisconnectedError) as error:
        raise ClientError(str(error)) from error


@pytest.fixture
async def session() -> AsyncIterator[ClientSession]:
    async with ClientSession(middlewares=[without_repeat]) as client:
        yield client


@pytest.fixture
async def vk(state: SandboxState) -> AsyncIterator[Vk]:
    server = VkServer(state)
    await server.start()
    api = API(server.token, request_rescheduler=NoReschedule())
    api.API_URL = server.url
    yield Vk(state, server, api)
    await api.http_client.close()
    await server.stop()


@dataclass
class CallbackServer:
    """A server for dlr-url, inbound URLs and VK's callbacks; keeps the calls, and bodies of JSON, in order."""

    url: str = ""
    calls: list[dict[str, str]] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    answer: int = 200
    text: str = ""

    async def receive(self, request: web.Request) -> web.Response:
        self.calls.append({"path": request.path, **request.query})
        if request.content_type == "application/json":
            self.bodies.append(await request.json())
        return web.Response(status=self.answer, text=self.text)

    def states(self) -> list[int]:
        return [int(call["state"]) for call in self.calls]


@pytest.fixture
async def callbacks() -> AsyncIterator[CallbackServer]:
    """A started CallbackServer."""
    server = CallbackServer()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.receive)
    async with serving_app(app) as url:
        server.url = url
        yield server


@dataclass
class Sms:
    """The SMS server with a plain HTTP client."""

    state: SandboxState
    server: SmsServer
    session: ClientSession

    async def request(self, **parameters: str) -> tuple[int, str]:
        """Send a request with exactly these parameters."""
        async with self.session.get(self.server.url, params=parameters) as answer:
            return answer.status, await answer.text()

    async def send(self, to: str = "+79990000001", text: str = "hello", **more: str) -> tuple[int, str]:
        """Send with valid credentials. Underscores in names stand for dashes."""
        known = {"username": "ada", "password": "sandbox", "from": "Ada", "to": to, "text": text, "charset": "utf-8"}
        return await self.request(**known, **{name.replace("_", "-"): value for name, value in more.items()})

    def texts(self, number: str) -> list[str]:
        return [received.text for received in self.state.inbox("sms", number)]


@pytest.fixture
async def sms(state: SandboxState, session: ClientSession) -> AsyncIterator[Sms]:
    server = SmsServer(state, report_delay=0)
    await server.start()
    yield Sms(state, server, session)
    await server.stop()


class WebClient:
    """An HTTP client of the sandbox's own API."""

    def __init__(self, sandbox: Sandbox, session: ClientSession) -> None:
        self.sandbox, self.state, self._session = sandbox, sandbox.state, session

    async def call(self, method: str, path: str, body: Any = None, **query: str) -> tuple[int, Any]:
        address = self.sandbox.page_url + path
        async with self._session.request(method, address, json=body, params=query) as answer:
            return answer.status, (await answer.json(content_type=None)) if answer.status != 204 else None

    async def get(self, path: str, **query: str) -> Any:
        status, body = await self.call("GET", path, **query)
        assert status == 200
        return body

    async def form(self, path: str, **fields: Any) -> tuple[int, Any]:
        """Post a form, as `curl -F` does; an upload is (name, media type, content)."""
        form = FormData()
        for name, value in fields.items():
            if isinstance(value, tuple):
                form.add_field(name, value[2], filename=value[0], content_type=value[1])
            else:
                form.add_field(name, str(value))
        async with self._session.post(self.sandbox.page_url + path, data=form) as answer:
            return answer.status, await answer.json(content_type=None)

    async def raw(self, method: str, path: str, data: bytes, **headers: str) -> tuple[int, str, Any]:
        async with self._session.request(method, self.sandbox.page_url + path, data=data, headers=headers) as answer:
            return answer.status, answer.content_type, await answer.json(content_type=None)


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One directory for all sandboxes of a worker, so the RSA key is generated once."""
    return tmp_path_factory.mktemp("sandbox")


@pytest.fixture
async def sandbox(directory: Path) -> AsyncIterator[Sandbox]:
    async with serving(Sandbox(directory)) as whole:
        yield whole


@pytest.fixture
def web_client(sandbox: Sandbox, session: ClientSession) -> WebClient:
    return WebClient(sandbox, session)
