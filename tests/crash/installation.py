"""A whole installation in pieces that can be killed one by one.

    API process ─▶ server ─▶ courier processes ─▶ [wire] ─▶ sandbox in the test's own loop

At the end of each test: what was accepted is final, nobody has anything twice, the invariants hold.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import ClientSession

from core.model.delivery import Accepted, Recipient
from core.model.states import Status
from core.redis.server_checks import sign_layout
from sandbox.sandbox import Sandbox
from sandbox.state import World
from tests.crash.api import SETTINGS, Api
from tests.crash.cuttable_link import Wire
from tests.crash.program import Program
from tests.support.audited import dump
from tests.support.servers import Server
from tests.support.stack import Stack as Core
from tests.support.waiting import until

LEASE = 1
"""Seconds."""


@dataclass(frozen=True)
class Channel:
    """`remembers`: the provider takes a repeat for the same message. `provider`: the setting that says where it is."""

    name: str
    first: str
    provider: str
    remembers: bool

    def address(self, number: int) -> str:
        """Everybody exists."""
        return f"{self.first[:-6]}{int(self.first[-6:]) + number:06}"


TELEGRAM = Channel("telegram", "100000", "ADA_TELEGRAM_SERVER", remembers=True)
VK = Channel("vk", "200000", "ADA_VK_API_URL", remembers=True)
SMS = Channel("sms", "+79990000000", "ADA_SMS_URL", remembers=False)
CHANNELS = (TELEGRAM, VK, SMS)


def person(number: int, *channels: Channel) -> Recipient:
    return Recipient(number, contacts={channel.name: [channel.address(number)] for channel in channels})


class Installation:
    """Close it with `close`, which kills what still runs."""

    def __init__(self, core: Core, sandbox: Sandbox, directory: Path) -> None:
        self.core = core
        self.sandbox = sandbox
        self._directory = directory
        self._session = ClientSession()
        self._programs: list[Program] = []
        self._wires: list[Wire] = []

    @classmethod
    async def open(cls, server: Server, sandbox: Sandbox, directory: Path) -> "Installation":
        core = await Core.open(server)
        await sign_layout(core.store)  # what it delivers is there before a courier starts
        return cls(core, sandbox, directory)

    async def close(self) -> None:
        for program in self._programs:
            program.kill()
        for wire in self._wires:
            await wire.stop()
        await self._session.close()
        await self.core.close()

    @property
    def world(self) -> World:
        return self.sandbox.world

    @property
    def server(self) -> Server:
        return self.core.server

    # processes

    def start(self, *words: str, **settings: str) -> Program:
        """A process of the product, on its way."""
        own = {
            "ADA_REDIS_URL": self.server.url,
            "ADA_DATA": str(self._directory / "data"),
            "ADA_HTTP": "127.0.0.1:0",
            "ADA_LEASE": f"{LEASE}s",
        }
        log = self._directory / f"{len(self._programs)}-{words[-1]}.log"
        program = Program(words, {**own, **self.sandbox.environment, **settings}, log)
        self._programs.append(program)
        return program

    async def courier(self, channel: Channel, **settings: str) -> Program:
        """A courier process, ready."""
        program = self.start("courier", channel.name, **settings)
        await program.ready()
        return program

    def start_api(self, **settings: str) -> Program:
        """An API process, on its way."""
        return self.start("serve", **SETTINGS, **settings)

    async def client_of(self, served: Program) -> Api:
        """A client of an API process, once it answers."""
        return self.client_at((await served.ready())["http"])

    def client_at(self, url: str) -> Api:
        return Api(url, self._session)

    # wires

    async def wire(self, target: int) -> Wire:
        wire = Wire(target)
        await wire.start()
        self._wires.append(wire)
        return wire

    async def wire_to(self, channel: Channel) -> tuple[Wire, Mapping[str, str]]:
        """A wire to the channel's provider, and the settings of a courier that uses it."""
        address = self.sandbox.environment[channel.provider]
        port = urlsplit(address if "//" in address else f"//{address}").port
        assert port is not None
        wire = await self.wire(port)
        return wire, {channel.provider: address.replace(str(port), str(wire.port))}

    async def wire_to_server(self) -> tuple[Wire, Mapping[str, str]]:
        """A wire to Valkey, and the settings of a process that uses it."""
        wire = await self.wire(self.server.place.port)
        return wire, {"ADA_REDIS_URL": self.server.url_through(wire.port)}

    # deliveries

    async def deliver(self, *people: Recipient, **options: object) -> Accepted:
        channels = list(dict.fromkeys(channel for one in people for channel in one.contacts))
        return await self.core.deliver(*people, channels=channels, **options)

    def copies(self, channel: Channel) -> Counter[str]:
        """Address → how many messages arrived there."""
        return Counter(message.address for message in self.world.inbox(channel.name))

    async def statuses(self, accepted: Accepted) -> Counter[tuple[str, Status]]:
        """(channel, status) → how many recipients the history says it of."""
        history = await self.core.history(accepted.key, limit=10_000)
        told = [(name, outcome.status) for one in history.recipients for name, outcome in one.outcomes.items()]
        return Counter(told)

    async def finished(self, accepted: Accepted, within: float = 30.0) -> Counter[tuple[str, Status]]:
        """The statuses, once the delivery is over."""
        await self.core.finished(accepted.key, within)
        return await self.statuses(accepted)

    async def lease_renewed(self) -> None:
        """Comes back when the one parcel that is in hand is held longer than it was."""
        (held,) = await self._leases()
        await until(lambda: self._is_after(held), within=20)

    async def _leases(self) -> list[float]:
        found = await dump(self.server.url)
        return list(found["queue:{0}:lease"].value.values())

    async def _is_after(self, held: float) -> bool:
        return min(await self._leases()) > held

    async def has_reported(self, accepted: Accepted, channel: Channel) -> bool:
        """Whether the channel has brought its part of the delivery to an end."""
        return (await self.core.history(accepted.key)).channels[channel.name].state == "reported"

    async def audit(self) -> None:
        """Once nobody has anything in hand, the invariants hold."""
        await self.core.audit()

    async def is_held(self, channel: Channel) -> bool:
        """Whether a courier of the channel has a parcel in hand."""
        found = await dump(self.server.url)
        tasks = [kept.value for key, kept in found.items() if ":task:" in key]
        return any((task["tube"], task["state"]) == (channel.name, "taken") for task in tasks)
