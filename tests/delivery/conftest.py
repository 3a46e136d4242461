"""The API with all its services on a real server."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any

import pytest
from aiohttp import ClientResponse, ClientSession

from core.admission.actions import ActionLog
from core.admission.api_keys import ApiKeys
from core.admission.idempotency import Idempotency
from core.directory.importing import Importing
from core.directory.linking import Linking
from core.processes import InstallationMark
from core.redis.store import Store
from core.services import open_services
from core.sessions import Sessions, SignInCodes, SignInLinks
from core.updates.events import Events
from core.uploads import Uploads
from core.webhooks.http_client import WebhookClient
from core.webhooks.registry import Webhooks
from couriers.email import LinkCodeMailer
from couriers.inbound import events_ingress
from couriers.sending.runtime import Runtime
from delivery.app import build
from delivery.http.context import ApiServices
from delivery.http.options import Options
from delivery.http.responses.problems import SCIM_TYPE
from delivery.http.server import listening
from tests.support.outbox import Outbox
from tests.support.servers import Server
from tests.support.stack import QUICK, FakeCourier, Respond, sent
from tests.support.waiting import until

ADMIN = "ada_admin"


WITH_BOTS = ("default", "api")
"""The tenants that have a bot with scenarios."""


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """A response, read to its end. `json` is None if the body is not JSON."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    json: Any

    @property
    def code(self) -> str:
        """The code of the problem document, or of the error of SCIM; asserts that it is complete."""
        if self.headers["Content-Type"] == SCIM_TYPE:
            assert self.json["status"] == str(self.status)
            return str(self.json["detail"]).rpartition("(")[2].removesuffix(")")
        assert self.headers["Content-Type"] == "application/problem+json", self
        assert {"type", "title", "status", "detail", "code"} <= self.json.keys(), self
        assert self.json["status"] == self.status
        return str(self.json["code"])


@dataclass(slots=True)
class Api:
    """A client of an API that listens on a port of its own."""

    url: str
    session: ClientSession
    store: Store
    services: ApiServices
    close: Callable[[], Awaitable[None]]
    secret: str = ADMIN

    async def call(self, method: str, path: str, body: object = None, **more: Any) -> ApiResponse:
        """One request with the key of this client. `body` is sent as JSON, bytes unchanged."""
        headers = {"Authorization": f"Bearer {self.secret}", **more.pop("headers", {})}
        if isinstance(body, bytes):
            more["data"], headers = body, {"Content-Type": "application/json", **headers}
        elif body is not None:
            more["json"] = body
        async with self.session.request(method, self.url + path, headers=headers, **more) as response:
            return await read(response)

    def as_key(self, secret: str) -> "Api":
        """The same API with another key."""
        return replace(self, secret=secret)

    async def keys(self) -> set[str]:
        """All Redis keys except API keys and what belongs to the installation."""
        found = {key async for key in self.store.redis.scan_iter(count=1000)}
        return {
            key for key in found if not key.startswith(("access:", "accesses:", "actions:", "secret:", "channels:"))
        }


async def read(response: ClientResponse) -> ApiResponse:
    """The whole response."""
    body = await response.read()
    is_json = "json" in response.headers.get("Content-Type", "") and "ndjson" not in response.headers["Content-Type"]
    return ApiResponse(response.status, response.headers, body, json.loads(body) if is_json and body else None)


class BrokenService:
    """A service whose methods all fail."""

    shards = 1

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("the password is hunter2")


def delivery_body(**more: Any) -> dict[str, Any]:
    """The body of a valid delivery, with the fields in `more`."""
    contacts = {"telegram": "100001", "sms": "+79991112233"}
    return {"sender": {"id": 42}, "text": "Пары не будет", "recipients": [{"id": 1, "contacts": contacts}], **more}


@pytest.fixture
async def store(server: Server, shards: int) -> AsyncIterator[Store]:
    opened = await Store.open(server.url, shards, patience=2.0)
    yield opened
    await opened.close()


@pytest.fixture
def outbox() -> Outbox:
    """Where the mails of the API go."""
    return Outbox()


@pytest.fixture
async def services(store: Store, outbox: Outbox) -> AsyncIterator[ApiServices]:
    api_keys, client, code_mailer = ApiKeys(store), WebhookClient(allow_private=True), LinkCodeMailer(outbox)
    await api_keys.ensure(ADMIN)
    mark = InstallationMark(store)
    await mark.begin()
    async with open_services(store) as core:
        yield ApiServices(
            core=core,
            mark=mark,
            api_keys=api_keys,
            idempotency=Idempotency(store),
            sessions=Sessions(store, core.directory, api_keys),
            actions=ActionLog(store),
            sign_in_codes=SignInCodes(store, core.directory, code_mailer),
            sign_in_links=SignInLinks(store),
            importing=Importing(store, core.directory),
            linking=Linking(store, core.directory, code_mailer),
            webhooks=Webhooks(store, core.queue, client),
            uploads=Uploads(store),
            ingress=events_ingress(core.store, core.client, "default"),
            events=lambda tenant: Events(core.client, tenant) if tenant in WITH_BOTS else None,
        )
    await client.close()


@pytest.fixture
def options() -> Options:
    """The limits; a test class may override this fixture."""
    return Options()


@pytest.fixture
async def api(services: ApiServices, store: Store, options: Options) -> AsyncIterator[Api]:
    async with ClientSession() as session, AsyncExitStack() as server:
        host, port = await server.enter_async_context(listening(build(services, options), "127.0.0.1", 0))
        yield Api(f"http://{host}:{port}", session, store, services, server.aclose)


Couriers = Callable[..., Awaitable[FakeCourier]]


@pytest.fixture
async def courier(store: Store) -> AsyncIterator[Couriers]:
    """`await courier("telegram", answer)`: a running courier whose provider returns what `answer` returns."""
    running: list[tuple[Runtime, asyncio.Task[None]]] = []

    async def started(channel: str, answer: Respond = sent, kind: type[FakeCourier] = FakeCourier) -> FakeCourier:
        played = kind(channel, answer)
        runtime = Runtime(store, channel, QUICK)
        await runtime.add(played)
        running.append((runtime, asyncio.create_task(runtime.run())))
        await until(lambda: runtime.claims > 0)
        return played

    yield started
    for runtime, task in running:
        runtime.stop()
        await task
