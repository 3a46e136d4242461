"""Polls a provider from a stored position on, and puts its events into the queue.

Guarantees: one process polls, the others are its standby and take over seconds after its death. The position is
stored after the events were put, so an event that the provider still has is not lost; an event that is read twice is
put once. The provider says where to go on, also if that is before the stored position. One that keeps the position
itself is asked from the beginning, and takes an update as got when the next poll asks for what follows it.

The right to poll is a key in Redis that its holder renews every second, in one call however many bots there are, and
that expires four seconds after the holder's death; the others try to get it twice a second. If two processes poll for a
moment, nothing is lost: Telegram refuses one of them (409), VK serves both, and an update that both get is put into the
queue once.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, Protocol

from msgspec import Struct

from core.errors import StoreError
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.keys import KEYS
from core.redis.store import Store

log = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 15.0
"""Seconds after a fault."""
_POSITION_KEPT = timedelta(days=7)

LIFETIME = timedelta(seconds=4)
_LIFETIME_MS = LIFETIME // timedelta(milliseconds=1)
RENEW_EVERY = 1.0
TRY_EVERY = 0.5
_PAUSE = 1.0
"""Seconds after a fault of the store, and after the right was given up: another process tries twice meanwhile."""


class PollerLease:
    """The right to get the updates of the bots of a process: of all processes of these bots, one has it at a time.

    `run` gets and renews it; the rest is for the pollers. `name`: what it is on, for several bots; by default the
    account of the only one.
    """

    def __init__(self, store: Store, name: str = "") -> None:
        self._store = store
        self._name = name
        self._is_shared = bool(name)
        self._token = secrets.token_hex(8)
        self._fault = ""
        self._is_wanted = asyncio.Event()
        self._held, self._lost, self._given_up = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def want(self, account: str) -> None:
        """Get the right from now on: there is a bot."""
        self._name = self._name or account
        self._is_wanted.set()

    async def acquire(self) -> None:
        """Wait until this process has the right."""
        await self._held.wait()

    async def wait_until_lost(self) -> None:
        """Wait until this process has lost the right."""
        await self._lost.wait()

    def give_up(self) -> None:
        """Let another process poll, unless other bots of this one need the right."""
        if not self._is_shared:
            self._given_up.set()

    async def run(self) -> None:
        """Get the right when it is wanted, and renew it until cancelled; then another process can get it."""
        await self._is_wanted.wait()
        try:
            while True:
                await self._get_and_hold()
                await asyncio.sleep(_PAUSE)
        finally:
            with suppress(StoreError, TimeoutError):
                async with asyncio.timeout(1):
                    await self._release()

    async def _get_and_hold(self) -> None:
        self._given_up.clear()
        try:
            await self._get()
            self._fault = ""
            self._lost.clear()
            self._held.set()
            if await self._is_given_up():
                await self._release()
            else:
                log.warning("the right to poll was lost; this process or another gets it")
        except StoreError as fault:
            if str(fault) != self._fault:  # once, not every second while a disk is full
                log.warning("polling pauses: %s", fault)
            self._fault = str(fault)
        finally:
            self._held.clear()
            self._lost.set()

    async def _get(self) -> None:
        """Wait until this process has the right. Raises StoreError.

        It is logged only if another process lives: the lease of a dead one ends first.
        """
        began, stands_by = time.monotonic(), False
        while not await self._is_ours():
            if not await self._try():
                if not stands_by and time.monotonic() - began > 2 * LIFETIME.total_seconds():
                    stands_by = True
                    log.info("another process gets the updates of %s; this one stands by", self._name)
                await asyncio.sleep(TRY_EVERY)
        if stands_by:
            log.info("this process gets the updates of %s from now on", self._name)

    async def _try(self) -> bool:
        return bool(await self._store.command("SET", self._key, self._token, "NX", "PX", _LIFETIME_MS))

    async def _is_given_up(self) -> bool:
        """Renew the right until it is given up or lost; return which. Raises StoreError."""
        renewing, giving_up = asyncio.create_task(self._renew()), asyncio.create_task(self._given_up.wait())
        try:
            await asyncio.wait({renewing, giving_up}, return_when=asyncio.FIRST_COMPLETED)
            if renewing.done():
                renewing.result()
            return not renewing.done()
        finally:
            await cancel_and_wait(renewing, giving_up)

    async def _renew(self) -> None:
        while True:
            holder = await self._store.command("GETEX", self._key, "PX", _LIFETIME_MS)
            if holder != self._token:  # its lease is renewed once by this, which does no harm
                return
            await asyncio.sleep(RENEW_EVERY)

    async def _release(self) -> None:
        if await self._is_ours():
            await self._store.command("DEL", self._key)

    async def _is_ours(self) -> bool:
        return bool(await self._store.command("GET", self._key) == self._token)

    @property
    def _key(self) -> str:
        return KEYS["poller"].at(self._store.shard_of(self._name), self._name)


IdOf = Callable[[Mapping[str, Any]], Any]
"""Returns the id of an update."""


class Page(Struct, frozen=True):
    """The answer to one poll. `position`: where the next poll begins, "" if the provider has lost it."""

    events: Sequence[Mapping[str, Any]]
    position: str


class Source(Protocol):
    """A provider that is polled. `faults`: what its methods raise if the provider cannot be reached now; what else they
    raise ends the poller.
    """

    faults: tuple[type[Exception], ...]

    async def sign_in(self) -> str:
        """Return the name of the account, as it is part of a key."""
        ...

    async def poll(self, position: str) -> Page:
        """Wait for the next events. `position`: "" if none is stored."""
        ...


class Sink(Protocol):
    """Takes what a provider gives: `core.updates.ingress.Ingress`, or what reads mails."""

    async def put(self, raw: Any) -> bool:
        """Take an event, once. Returns False if it is none. Raises StoreError: then it comes again."""
        ...


class Poller:
    """One per process and account. `keeps_position`, `id_of`: see `couriers.receiving.receiver`. `position_kept`: how
    long the position is stored after it has changed.
    """

    def __init__(
        self,
        store: Store,
        source: Source,
        ingress: Sink,
        lease: PollerLease,
        *,
        position_kept: timedelta = _POSITION_KEPT,
        keeps_position: bool = False,
        id_of: IdOf | None = None,
    ) -> None:
        self._store = store
        self._lease = lease
        self._position_kept = position_kept
        self._keeps_position = keeps_position
        self._id_of = id_of
        self._source = source
        self._ingress = ingress
        self._faults: tuple[type[Exception], ...] = (*source.faults, StoreError)
        self._account = ""
        self._name = f"polling {id(self)}"
        self._failures = 0

    async def run(self) -> None:
        """Poll until cancelled; as a standby while another process polls. Raises what is no fault of the source."""
        try:
            await self._run()
        finally:
            self._store.faults.pop(self._name, None)

    async def _run(self) -> None:
        while True:
            try:
                self._account = self._account or await self._source.sign_in()
                self._lease.want(self._account)
                await self._lease.acquire()
                await self._poll_while_held()
            except self._faults as fault:
                log.warning("polling pauses: %s", fault)
                self._store.faults[self._name] = f"polling pauses: {fault}"
            await asyncio.sleep(min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**self._failures))
            self._failures = min(self._failures + 1, 10)

    async def _poll_while_held(self) -> None:
        """Return when the lease is lost. Raises what the source raises, and StoreError."""
        polling, holding = asyncio.create_task(self._poll_on()), asyncio.create_task(self._lease.wait_until_lost())
        try:
            done, _ = await asyncio.wait({polling, holding}, return_when=asyncio.FIRST_COMPLETED)
            for ended in done:
                ended.result()
        finally:
            await cancel_and_wait(polling, holding)
            self._lease.give_up()

    async def _poll_on(self) -> None:
        position = await self._stored_position()
        while True:
            page = await self._source.poll(position)
            self._failures = 0
            self._store.faults.pop(self._name, None)
            for event in page.events:
                await self._put(event)
            if is_lower(page.position, position):
                text = "%s counts its events anew, or has lost them: polling goes on at %s, not at %s"
                log.warning(text, self._account, page.position, position)
            if page.position != position:
                await self._save(page.position)
            position = page.position

    async def _put(self, event: Mapping[str, Any]) -> None:
        if not await self._ingress.put(event) and self._id_of:
            log.info("update %s is ignored: it is no message or press that this bot answers", self._id_of(event))

    async def _stored_position(self) -> str:
        return "" if self._keeps_position else await self._store.command("GET", self._position_key) or ""

    async def _save(self, position: str) -> None:
        """Store the position, or forget it if the provider has lost it."""
        if self._keeps_position:
            return
        if position:
            seconds = self._position_kept // timedelta(seconds=1)
            await self._store.command("SET", self._position_key, position, "EX", seconds)
        else:
            await self._store.command("DEL", self._position_key)

    @property
    def _position_key(self) -> str:
        return KEYS["polled"].at(self._store.shard_of(self._account), self._account)


def is_lower(position: str, other: str) -> bool:
    """Return whether both positions are numbers, and the first is before the other."""
    return position.isdecimal() and other.isdecimal() and int(position) < int(other)
