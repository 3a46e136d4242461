"""A complete installation whose processes can be killed one by one.

    API process ─▶ server ─▶ courier processes ─▶ [CuttableLink] ─▶ sandbox in the test process

At the end of each test: every accepted delivery is final, no recipient has a message twice, the invariants hold.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import cast
from urllib.parse import urlsplit

from aiohttp import ClientSession

from core.model.delivery import Accepted, Recipient
from core.model.durability import Durability
from core.model.states import Status
from core.redis.server_checks import sign_layout
from core.redis.store import Store
from sandbox.sandbox import Sandbox
from sandbox.state import SandboxState
from tests.support.audited import dump
from tests.support.replica_set import ReplicaSet
from tests.support.servers import Server
from tests.support.stack import Stack as Core
from tests.support.waiting import until
from tests.system.crash.api_client import SETTINGS, ApiClient
from tests.system.crash.cuttable_link import CuttableLink
from tests.system.crash.process import AdaProcess
from tests.system.crash.push_services import PushServices

LEASE = 1
"""Seconds."""
_LEASES = "queue:{0}:lease"


@dataclass(frozen=True)
class Channel:
    """`deduplicates`: the provider recognizes a repeated request. `provider`: the setting with its address."""

    name: str
    first: str
    provider: str
    deduplicates: bool

    def address(self, number: int) -> str:
        """The address of recipient `number`; the sandbox has all of them."""
        name, at, domain = self.first.partition("@")
        return f"{name[:-6]}{int(name[-6:]) + number:06}{at}{domain}"


TELEGRAM = Channel("telegram", "100000", "ADA_TELEGRAM_SERVER", deduplicates=True)
VK = Channel("vk", "200000", "ADA_VK_API_URL", deduplicates=True)
SMS = Channel("sms", "+79990000000", "ADA_SMS_URL", deduplicates=False)
MAX = Channel("max", "300000", "ADA_MAX_API_URL", deduplicates=False)
TELEGRAM_BOT = Channel("telegram-bot", "100000", "ADA_BOT_API_URL", deduplicates=False)
WEB_PUSH = Channel("web-push", "400000", "ADA_WEB_PUSH_SERVICE", deduplicates=False)
EMAIL = Channel("email", "person-000000@example.org", "ADA_SMTP_URL", deduplicates=False)
CHANNELS = (TELEGRAM, VK, MAX, SMS, WEB_PUSH)


def person(number: int, *channels: Channel) -> Recipient:
    return Recipient(number, contacts={channel.name: [channel.address(number)] for channel in channels})


class Installation:
    """`close` kills all processes that still run."""

    def __init__(
        self, core: Core, sandbox: Sandbox, directory: Path, settings: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.core = core
        self.sandbox = sandbox
        self._directory = directory
        self._settings = settings
        self._session = ClientSession()
        self._processes: list[AdaProcess] = []
        self._wires: list[CuttableLink] = []
        self._push: PushServices | None = None

    @classmethod
    async def open(cls, server: Server, sandbox: Sandbox, directory: Path) -> "Installation":
        core = await Core.open(server)
        await sign_layout(core.store)  # the tests enqueue before a courier starts
        return cls(core, sandbox, directory)

    @classmethod
    async def open_behind_sentinels(cls, servers: ReplicaSet, sandbox: Sandbox, directory: Path) -> "Installation":
        """Whose processes and whose `core` go on after a promotion."""
        store = await Store.open(servers.url, durability=Durability.REPLICA)
        await sign_layout(store)
        settings = {"ADA_REDIS_URL": servers.url, "ADA_DURABILITY": "replica", "ADA_LEASE": "5s"}
        return cls(Core(store, cast(Server, servers.primary)), sandbox, directory, settings)

    async def close(self) -> None:
        for process in self._processes:
            process.kill()
        for link in self._wires:
            await link.stop()
        if self._push:
            await self._push.server.stop()
        await self._session.close()
        await self.core.close()

    @property
    def state(self) -> SandboxState:
        return self.sandbox.state

    @property
    def server(self) -> Server:
        return self.core.server

    # processes

    @property
    def running(self) -> list[AdaProcess]:
        return [process for process in self._processes if process.is_running]

    def start(self, *args: str, **settings: str) -> AdaProcess:
        """Starts a process of Ada; does not wait until it is ready."""
        own = {
            "ADA_REDIS_URL": self.server.url,
            "ADA_DATA": str(self._directory / "data"),
            "ADA_HTTP": "127.0.0.1:0",
            "ADA_LEASE": f"{LEASE}s",
        }
        log = self._directory / f"{len(self._processes)}-{args[-1]}.log"
        process = AdaProcess(args, {**own, **self.sandbox.environment, **self._settings, **settings}, log)
        self._processes.append(process)
        return process

    async def courier(self, channel: Channel, **settings: str) -> AdaProcess:
        """Starts a courier process; returns when it is ready."""
        if channel is WEB_PUSH:
            await self._push_service()
        process = self.start("courier", channel.name, **settings)
        await process.ready()
        return process

    def start_api(self, **settings: str) -> AdaProcess:
        """Starts an API process; does not wait until it is ready."""
        return self.start("serve", **SETTINGS, **settings)

    async def client_of(self, api_process: AdaProcess) -> ApiClient:
        """Waits until the API process is ready; returns a client."""
        return self.client_at((await api_process.ready())["http"])

    def client_at(self, url: str) -> ApiClient:
        return ApiClient(url, self._session)

    # links

    async def link(self, target: int, delay: Callable[[], float] = lambda: 0.0) -> CuttableLink:
        link = CuttableLink(target, delay)
        await link.start()
        self._wires.append(link)
        return link

    async def link_to(
        self, channel: Channel, delay: Callable[[], float] = lambda: 0.0
    ) -> tuple[CuttableLink, Mapping[str, str]]:
        """A link to the channel's provider, and the settings that make a courier use it. All couriers of web push are
        behind one link: the address of the service is in each subscription.
        """
        if channel is WEB_PUSH:
            return (await self._push_service()).link, {}
        address = self.sandbox.environment[channel.provider]
        port = urlsplit(address if "//" in address else f"//{address}").port
        assert port is not None
        link = await self.link(port, delay)
        return link, {channel.provider: address.replace(str(port), str(link.port))}

    async def _push_service(self) -> PushServices:
        if self._push is None:
            self._push = PushServices(await self.link(0), self._directory)
            self.sandbox.further |= await self._push.start()
        return self._push

    async def link_to_server(self) -> tuple[CuttableLink, Mapping[str, str]]:
        """A link to Valkey, and the settings that make a process use it."""
        link = await self.link(self.server.place.port)
        return link, {"ADA_REDIS_URL": self.server.url_through(link.port)}

    # deliveries

    async def deliver(self, *people: Recipient, **options: object) -> Accepted:
        if any(WEB_PUSH.name in recipient.contacts for recipient in people):
            push = await self._push_service()
            people = tuple([await push.subscribe(self.core.store, recipient) for recipient in people])
        channels = list(dict.fromkeys(channel for recipient in people for channel in recipient.contacts))
        return await self.core.deliver(*people, channels=channels, **options)

    def copies(self, channel: Channel) -> Counter[str]:
        """Address → number of messages received there."""
        if channel is WEB_PUSH:
            return self._push.copies() if self._push else Counter()
        return Counter(message.address for message in self.state.inbox(channel.name))

    async def statuses(self, accepted: Accepted) -> Counter[tuple[str, Status]]:
        """(channel, status) → number of recipients in the history."""
        history = await self.core.history(accepted.key, limit=10_000)
        return Counter(
            (channel, outcome.status)
            for recipient in history.recipients
            for channel, outcome in recipient.outcomes.items()
        )

    async def finished(self, accepted: Accepted, within: float = 60.0) -> Counter[tuple[str, Status]]:
        """Waits until the delivery is finished; returns the statuses."""
        await self.core.finished(accepted.key, within)
        return await self.statuses(accepted)

    async def another_courier_finishes(self, channel: Channel, accepted: Accepted, copies: int, status: Status) -> None:
        """Starts another courier; asserts how the delivery to one recipient ends."""
        await self.courier(channel)
        assert await self.finished(accepted) == {(channel.name, status): 1}
        assert self.copies(channel).total() == copies
        await self.audit()

    async def lease_renewed(self) -> None:
        """Waits until the lease of the one parcel under way is extended."""
        (lease_end,) = await self._leases()
        await until(lambda: self._ends_after(lease_end))

    async def end_leases(self) -> None:
        """Ends the leases of all tasks under way, as time would: those of killed processes go to the next ones."""
        for task in await self._leases_by_task():
            await self.core.store.command("ZADD", _LEASES, "XX", "1", task)

    async def _leases(self) -> list[float]:
        return list((await self._leases_by_task()).values())

    async def _leases_by_task(self) -> Mapping[str, float]:
        found = (await dump(self.server.url)).get(_LEASES)
        return found.value if found else {}

    async def _ends_after(self, lease_end: float) -> bool:
        return min(await self._leases()) > lease_end

    async def has_reported(self, accepted: Accepted, channel: Channel) -> bool:
        """Whether the channel has reported the outcome of every recipient."""
        return (await self.core.history(accepted.key)).channels[channel.name].state == "reported"

    async def audit(self) -> None:
        """Asserts that the invariants hold. No process may have a task under way."""
        await self.core.audit()

    async def is_empty(self, *but: str) -> bool:
        """Whether no task is left, but those of tubes and states such as `schedules:waiting`."""
        states = await self.core.store.command("HGETALL", "queue:{0}:states")
        return not any(int(number) for name, number in states.items() if name not in but)

    async def is_taken(self, channel: Channel) -> bool:
        """Whether a courier of the channel has a parcel under way."""
        found = await dump(self.server.url)
        tasks = [entry.value for key, entry in found.items() if ":task:" in key]
        return any((task["tube"], task["state"]) == (channel.name, "taken") for task in tasks)
