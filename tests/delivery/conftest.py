"""A whole API on a real server: nothing of the services is played."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from aiohttp import ClientResponse, ClientSession, web

from core.admission.api_keys import ApiKeys
from core.admission.idempotency import Idempotency
from core.courier.runtime import Runtime
from core.history.channels import Channels
from core.history.deliveries import Deliveries
from core.history.tracker import Tracker
from core.queue.queue import Queue
from core.redis.store import Store
from delivery.app import build
from delivery.http.options import Options
from delivery.http.server import Runner
from delivery.services import Services
from tests.support.servers import Server
from tests.support.stack import QUICK, Played, sent
from tests.support.stack import Answer as PlayedAnswer
from tests.support.waiting import until

ADMIN = "ada_admin"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, read to its end. `told` is its JSON; None if it is none."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    told: Any

    @property
    def code(self) -> str:
        """The code of a refusal, which must be a whole problem document."""
        assert self.headers["Content-Type"] == "application/problem+json", self
        assert {"type", "title", "status", "detail", "code"} <= self.told.keys(), self
        assert self.told["status"] == self.status
        return str(self.told["code"])


@dataclass(slots=True)
class Api:
    """A client of an API that listens on a port of its own."""

    url: str
    session: ClientSession
    store: Store
    services: Services
    close: Callable[[], Awaitable[None]]
    secret: str = ADMIN

    async def call(self, method: str, path: str, body: object = None, **more: Any) -> Answer:
        """One call with this client's key. `body` goes as JSON, bytes as they are."""
        headers = {"Authorization": f"Bearer {self.secret}", **more.pop("headers", {})}
        if isinstance(body, bytes):
            more["data"], headers = body, {"Content-Type": "application/json", **headers}
        elif body is not None:
            more["json"] = body
        async with self.session.request(method, self.url + path, headers=headers, **more) as response:
            return await read(response)

    def as_key(self, secret: str) -> "Api":
        """The same API, asked with another key."""
        return replace(self, secret=secret)

    async def keys(self) -> set[str]:
        """What is in the store, but for API keys and the secrets of the installation."""
        found = {key async for key in self.store.redis.scan_iter(count=1000)}
        return {key for key in found if not key.startswith(("access:", "accesses:", "secret:", "channels:"))}


async def read(response: ClientResponse) -> Answer:
    """The whole answer."""
    body = await response.read()
    is_json = "json" in response.headers.get("Content-Type", "") and "ndjson" not in response.headers["Content-Type"]
    return Answer(response.status, response.headers, body, json.loads(body) if is_json and body else None)


class Broken:
    """A services that fails."""

    shards = 1

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("the password is hunter2")


def a_delivery(**more: Any) -> dict[str, Any]:
    """A delivery that is taken, with `more` fields."""
    contacts = {"telegram": "100001", "sms": "+79991112233"}
    return {"sender": {"id": 42}, "text": "Пары не будет", "recipients": [{"id": 1, "contacts": contacts}], **more}


@pytest.fixture
async def store(server: Server) -> AsyncIterator[Store]:
    opened = await Store.open(server.url, patience=2.0)
    yield opened
    await opened.close()


@pytest.fixture
async def services(store: Store) -> AsyncIterator[Services]:
    channels, tracker, access = Channels(store), Tracker(store), ApiKeys(store)
    await access.ensure(ADMIN)
    yield Services(Deliveries(store, channels), tracker, access, Idempotency(store), Queue(store), channels, store)
    await tracker.close()


@pytest.fixture
def options() -> Options:
    """What a test may override."""
    return Options()


@pytest.fixture
async def api(services: Services, store: Store, options: Options) -> AsyncIterator[Api]:
    runner = Runner(build(services, options), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    async with ClientSession() as session:
        yield Api(f"http://{host}:{port}", session, store, services, runner.cleanup)
    await runner.cleanup()


Couriers = Callable[..., Awaitable[Played]]


@pytest.fixture
async def courier(store: Store) -> AsyncIterator[Couriers]:
    """`await courier("telegram", answer)`: a courier process whose provider the test plays; it has begun to listen."""
    running: list[tuple[Runtime, asyncio.Task[None]]] = []

    async def started(channel: str, answer: PlayedAnswer = sent) -> Played:
        played = Played(channel, answer)
        runtime = Runtime(store, played, QUICK)
        running.append((runtime, asyncio.create_task(runtime.run())))
        await until(lambda: runtime.claims > 0)
        return played

    yield started
    for runtime, task in running:
        runtime.stop()
        await task
