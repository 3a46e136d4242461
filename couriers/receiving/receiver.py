"""The bots of one channel in one process: each gets the updates of its own account.

    Receivers ─┬─ one lease, the parts that answer or make calls, one that gathers the parts of events
               └─ for each bot a Receiver: its poll, a request that waits at the provider

Guarantees: an idle bot costs no command of the store. A bot whose token is refused, or that fails in another way,
stops alone, if `on_fault` does not raise. Bots come and go while the process runs. With a webhook nothing is polled:
the service posts updates to the HTTP API, which puts them into the queue.
"""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from importlib import import_module
from typing import Any, ClassVar, Protocol

from core.errors import SetupError
from core.model.content import Attachment
from core.queue import Worker
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.store import Store
from core.threads.files import Fetch, ReceivedFile, fetchable, type_of
from core.updates.bot_calls import Make
from core.updates.events import Event
from core.updates.ingress import Ingress
from couriers.channel import Receiving
from couriers.receiving.poller import IdOf, Poller, PollerLease, Source
from couriers.sending.files import FileNotLoaded, MessageFiles

log = logging.getLogger(__name__)

_GRACE = timedelta(seconds=5)
_CATCHING_UP = 10.0
"""Seconds after which parts of events are gathered even if a bot has not got all that waited for it."""


@dataclass(frozen=True)
class Receiver:
    """An account of a channel, as the process of its bot uses it.

    `source`: is polled, None if updates are posted to the HTTP API. `keep_subscription`: runs until cancelled, so
    that they are. `make`: makes the calls of `core.updates.bot_calls`, None if there are none. `fetch`: fetches the
    files of a message, None if that is not possible. `refused`: what these raise if the account is refused.

    `begin`: checks the account at the start of a process that has no other, and returns its name; raises SetupError.
    `keeps_position`: the provider knows where the next poll begins, so it is not stored. `id_of`: the id of an
    update, for the log of one that is no event; None if the provider sends such ones all the time. `caught_up`: is set
    when all updates that waited were got, None if that does not matter.
    """

    client: Any
    refused: type[Exception]
    close: Callable[[], Awaitable[None]]
    source: Source | None = None
    keep_subscription: Callable[[], Coroutine[Any, Any, None]] | None = None
    make: Make | None = None
    fetch: Fetch | None = None
    begin: Callable[[], Awaitable[str]] | None = None
    keeps_position: bool = False
    id_of: IdOf | None = None
    caught_up: asyncio.Event | None = None


def open_receiver(receiving: Receiving, settings: Any, *, polls: bool = False) -> Receiver:
    """Open the account of a channel; with `polls` it is polled, whatever the settings say. Raises SetupError."""
    receiver: Receiver = import_module(receiving.receiver).open_receiver(settings, polls=polls)
    return receiver


_SECRET = re.compile(r"[A-Za-z0-9_-]{1,256}")


@dataclass(frozen=True)
class WebhookReceiver:
    """`url`: the HTTP API as the service reaches it, without a path. `secret`: what the service proves itself with."""

    path: ClassVar[str]
    url_setting: ClassVar[str]
    secret_setting: ClassVar[str]
    shortest_secret: ClassVar[int] = 1

    url: str
    secret: str = field(repr=False)

    def __post_init__(self) -> None:
        """Check the URL and the secret. Raises SetupError."""
        if not self.url.startswith("https://") and not self.url.startswith("http://"):
            raise SetupError(f"{self.url_setting} is not a URL: it must begin with https://")
        if not _SECRET.fullmatch(self.secret) or len(self.secret) < self.shortest_secret:
            wanted = f"{self.shortest_secret} to 256 letters, digits, _ and -"
            raise SetupError(f"{self.secret_setting} must have {wanted} for a webhook")

    @property
    def address(self) -> str:
        """The address to which the service posts."""
        return self.url.rstrip("/") + self.path


async def download_linked(
    files: MessageFiles, event: Event, most: int, urls: Sequence[str]
) -> AsyncIterator[ReceivedFile]:
    """Emit the first files of an event that can be downloaded and are not too large. `urls`: of its files, "" for one
    without an address.
    """
    for one, url in zip(fetchable(event)[:most], urls, strict=False):
        if url:
            try:
                loaded = await files.load(Attachment(type_of(one), url=url))
            except FileNotLoaded:
                continue
            yield ReceivedFile(type_of(one), str(one.get("file_name") or ""), loaded.data)


class AccountRefused(Exception):
    """The provider refuses the account; only an operator can help. The text is the remedy."""


class Part(Protocol):
    """Something that runs in the same process, such as a worker."""

    async def run(self) -> None: ...

    def stop(self, grace: timedelta | None = None) -> None: ...


@dataclass
class _Running:
    receiver: Receiver
    tasks: Sequence["asyncio.Task[None]"] = field(repr=False)


class Receivers:
    """To `run()` and to `stop()`. `on_fault`: reports that the bot of a tenant has stopped, and why; what it raises
    ends the process. `lease`: the name of the one for all bots, "" if there is only one bot.
    """

    def __init__(
        self,
        store: Store,
        on_fault: Callable[[str, Exception], Awaitable[None]],
        lease: str = "",
    ) -> None:
        self._store = store
        self._lease = PollerLease(store, lease)
        self._on_fault = on_fault
        self._running: dict[str, _Running] = {}
        self._makers: dict[str, Make] = {}
        self._fetchers: dict[str, Fetch] = {}
        self._stopping = asyncio.Event()
        self._fault: Exception | None = None

    @property
    def makers(self) -> Mapping[str, Make]:
        """Return what makes the calls of each tenant's bot. It changes as bots come and go."""
        return self._makers

    @property
    def fetchers(self) -> Mapping[str, Fetch]:
        """Return what fetches the files of each tenant's bot. It changes as bots come and go."""
        return self._fetchers

    def add(self, tenant: str, receiver: Receiver, ingress: Ingress) -> None:
        """Get the updates of a tenant's bot from now on."""
        if receiver.make:
            self._makers[tenant] = receiver.make
        if receiver.fetch:
            self._fetchers[tenant] = receiver.fetch
        parts = [receiver.keep_subscription()] if receiver.keep_subscription else []
        if receiver.source:
            position, id_of = receiver.keeps_position, receiver.id_of
            poller = Poller(self._store, receiver.source, ingress, self._lease, keeps_position=position, id_of=id_of)
            parts.append(poller.run())
        tasks = [asyncio.create_task(self._keep(tenant, receiver, part), name=f"updates of {tenant}") for part in parts]
        self._running[tenant] = _Running(receiver, tasks)

    async def remove(self, tenant: str) -> None:
        """Get them no longer."""
        self._makers.pop(tenant, None)
        self._fetchers.pop(tenant, None)
        if running := self._running.pop(tenant, None):
            await cancel_and_wait(*running.tasks)
            await running.receiver.close()

    async def run(
        self, parts: Sequence[Part], on_ready: Callable[[], None], gatherer: Callable[[], Worker] | None = None
    ) -> None:
        """Work until `stop()`, with the parts beside. `gatherer`: makes the worker of the parts of events. Raises what
        `on_fault` and the parts raise.
        """
        working = [asyncio.create_task(part.run()) for part in parts]
        others = [self._gather(gatherer)] if gatherer else []
        beside = [asyncio.create_task(one) for one in (self._lease.run(), self._stopping.wait(), *others)]
        try:
            on_ready()
            done, _ = await asyncio.wait({*beside, *working}, return_when=asyncio.FIRST_COMPLETED)
            await cancel_and_wait(*(task for one in self._running.values() for task in one.tasks), *beside)
            for part in parts:
                part.stop(_GRACE)
            await asyncio.gather(*working)
            for ended in done:
                ended.result()
            if self._fault:
                raise self._fault
        finally:
            await cancel_and_wait(*beside, *working)
            await self.close()

    def stop(self) -> None:
        """End `run`: what is in progress is finished, what is in the queue stays there."""
        self._stopping.set()

    async def close(self) -> None:
        """Close what the bots have opened."""
        for tenant in tuple(self._running):
            await self.remove(tenant)

    async def _keep(self, tenant: str, receiver: Receiver, part: Coroutine[Any, Any, None]) -> None:
        try:
            try:
                await part
            except receiver.refused as refusal:
                await self._on_fault(tenant, AccountRefused(str(refusal)))
            except Exception as fault:  # whatever it is, it stops this bot alone
                log.debug("the bot of %s", tenant, exc_info=fault)
                await self._on_fault(tenant, fault)
        except Exception as fault:  # noqa: BLE001 - `run` raises it
            self._fault = fault
            self.stop()

    async def _gather(self, gatherer: Callable[[], Worker]) -> None:
        """Gather parts while this process gets the updates, and has got those that waited during a restart."""
        while True:
            await self._lease.acquire()
            await self._catch_up()
            worker = gatherer()
            working = asyncio.create_task(worker.run())
            try:
                await self._lease.wait_until_lost()
                for event in self._caught_up():
                    event.clear()
                worker.stop(_GRACE)
                await working
            finally:
                await cancel_and_wait(working)

    async def _catch_up(self) -> None:
        try:
            async with asyncio.timeout(_CATCHING_UP):
                await asyncio.gather(*(event.wait() for event in self._caught_up()))
        except TimeoutError:
            log.warning("a bot has not got all its updates yet; albums of the last second may be divided")

    def _caught_up(self) -> Sequence[asyncio.Event]:
        return [one.receiver.caught_up for one in self._running.values() if one.receiver.caught_up]
