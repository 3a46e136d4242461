"""VK and SMS servers on real sockets, asked through the real client libraries."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Never

import pytest
from aiohttp import ClientSession, web
from vkbottle import API, ABCRequestRescheduler

from sandbox.sandbox import Sandbox
from sandbox.sms import SmsServer
from sandbox.state import World
from sandbox.vk import VkServer
from tests.sandbox.telegram_clients import place, server_key
from tests.support.kannel import kannel

__all__ = ["kannel", "place", "server_key"]


class NotJson(Exception):
    pass


class Refusing(ABCRequestRescheduler):
    """vkbottle's own repeats for ever what is no JSON; a test wants to see it."""

    async def reschedule(self, ctx_api: Any, method: str, data: dict[str, Any], recent_response: Any) -> Never:
        raise NotJson(recent_response)


@dataclass
class Vk:
    """The VK server with an unmodified client."""

    world: World
    server: VkServer
    api: API

    async def execute(self, code: str) -> dict[str, Any]:
        return await self.api.request("execute", {"code": code})

    async def send(self, **parameters: Any) -> Any:
        """Call messages.send; returns its `response`."""
        return (await self.api.request("messages.send", {"random_id": 1, "message": "hello", **parameters}))["response"]

    def texts(self, person: str) -> list[str]:
        return [received.text for received in self.world.inbox("vk", person)]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
async def session() -> AsyncIterator[ClientSession]:
    async with ClientSession() as client:
        # aiohttp asks a GET a second time when the connection is cut: with an SMS gateway that is a second SMS.
        client._retry_connection = False
        yield client


@pytest.fixture
async def vk(world: World) -> AsyncIterator[Vk]:
    server = VkServer(world)
    await server.start()
    api = API(server.token, request_rescheduler=Refusing())
    api.API_URL = server.url
    yield Vk(world, server, api)
    await api.http_client.close()
    await server.stop()


@dataclass
class Listening:
    """Whoever waits for reports: remembers every call in its order."""

    url: str = ""
    calls: list[dict[str, str]] = field(default_factory=list)
    answer: int = 200

    async def note(self, request: web.Request) -> web.Response:
        self.calls.append({"path": request.path, **request.query})
        return web.Response(status=self.answer)

    def states(self) -> list[int]:
        return [int(call["state"]) for call in self.calls]


@pytest.fixture
async def listening() -> AsyncIterator[Listening]:
    """A server for dlr-url and inbound addresses."""
    ear = Listening()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", ear.note)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    ear.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield ear
    await runner.cleanup()


@dataclass
class Sms:
    """The SMS server with a client that asks as Kannel's documentation says."""

    world: World
    server: SmsServer
    session: ClientSession

    async def ask(self, **parameters: str) -> tuple[int, str]:
        """Send without any parameter of our own."""
        async with self.session.get(self.server.url, params=parameters) as answer:
            return answer.status, await answer.text()

    async def send(self, to: str = "+79990000001", text: str = "hello", **more: str) -> tuple[int, str]:
        """Send with good credentials; underscores in names stand for dashes."""
        known = {"username": "ada", "password": "sandbox", "from": "Ada", "to": to, "text": text, "charset": "utf-8"}
        return await self.ask(**known, **{name.replace("_", "-"): value for name, value in more.items()})

    def texts(self, number: str) -> list[str]:
        return [received.text for received in self.world.inbox("sms", number)]


@pytest.fixture
async def sms(world: World, session: ClientSession) -> AsyncIterator[Sms]:
    server = SmsServer(world, report_delay=0)
    await server.start()
    yield Sms(world, server, session)
    await server.stop()


class Visitor:
    """Somebody with a browser, or curl."""

    def __init__(self, sandbox: Sandbox, session: ClientSession) -> None:
        self.sandbox, self.world, self._session = sandbox, sandbox.world, session

    async def ask(self, method: str, path: str, body: Any = None, **query: str) -> tuple[int, Any]:
        address = self.sandbox.page_url + path
        async with self._session.request(method, address, json=body, params=query) as answer:
            return answer.status, (await answer.json(content_type=None)) if answer.status != 204 else None

    async def get(self, path: str, **query: str) -> Any:
        status, body = await self.ask("GET", path, **query)
        assert status == 200
        return body

    async def raw(self, method: str, path: str, data: bytes, **headers: str) -> tuple[int, str, Any]:
        async with self._session.request(method, self.sandbox.page_url + path, data=data, headers=headers) as answer:
            return answer.status, answer.content_type, await answer.json(content_type=None)


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One directory for all sandboxes of a worker: the RSA key in it is made once."""
    return tmp_path_factory.mktemp("sandbox")


@pytest.fixture
async def sandbox(directory: Path) -> AsyncIterator[Sandbox]:
    whole = Sandbox(directory)
    await whole.start()
    yield whole
    await whole.stop()


@pytest.fixture
def visitor(sandbox: Sandbox, session: ClientSession) -> Visitor:
    return Visitor(sandbox, session)
