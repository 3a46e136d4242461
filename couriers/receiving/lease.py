"""The right to get the updates of the bots of a process: of all processes of these bots, one has it at a time.

It is a key in Redis that its holder renews every second, in one call however many bots there are, and that expires four
seconds after the holder's death; the others try to get it twice a second. If two processes poll for a moment, nothing
is lost: Telegram refuses one of them (409), VK serves both, and an update that both get is put into the queue once.
"""

import asyncio
import logging
import secrets
import time
from contextlib import suppress
from datetime import timedelta

from core.errors import StoreError
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.keys import KEYS
from core.redis.store import Store

log = logging.getLogger(__name__)

LIFETIME = timedelta(seconds=4)
_LIFETIME_MS = LIFETIME // timedelta(milliseconds=1)
RENEW_EVERY = 1.0
TRY_EVERY = 0.5
_PAUSE = 1.0
"""Seconds after a fault of the store, and after the right was given up: another process tries twice meanwhile."""


class PollerLease:
    """`run` gets and renews it; the rest is for the pollers. `name`: what it is on, for several bots; by default the
    account of the only one.
    """

    def __init__(self, store: Store, name: str = "") -> None:
        self._store = store
        self._name = name
        self._is_shared = bool(name)
        self._token = secrets.token_hex(8)
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
            self._lost.clear()
            self._held.set()
            if await self._is_given_up():
                await self._release()
            else:
                log.warning("the right to poll was lost; this process or another gets it")
        except StoreError as fault:
            log.warning("polling pauses: %s", fault)
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
