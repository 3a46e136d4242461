"""The right to poll: of all processes of a bot, one has it at a time.

It is a key in Redis that its holder renews every second and that expires four seconds after the holder's death; the
others try to get it twice a second. If two processes poll for a moment, nothing is lost: Telegram refuses one of them
(409), VK serves both, and an update that both get is put into the queue once.
"""

import asyncio
import logging
import secrets
import time
from datetime import timedelta
from typing import Protocol

from core.redis.keys import KEYS
from core.redis.store import Store

log = logging.getLogger(__name__)

LIFETIME = timedelta(seconds=4)
_LIFETIME_MS = LIFETIME // timedelta(milliseconds=1)
RENEW_EVERY = 1.0
TRY_EVERY = 0.5


class Lease(Protocol):
    """The right of a process to get the updates of a bot. Methods raise StoreError."""

    async def acquire(self) -> None:
        """Wait until this process has the right."""

    async def hold(self) -> None:
        """Wait until it is lost."""

    async def release(self) -> None:
        """Let another process poll at once."""


class PollerLease:
    """The lease of one process on one bot, or on all of its bots: `couriers.receiving.shared_lease`."""

    def __init__(self, store: Store, bot: str) -> None:
        self._store = store
        self._key = KEYS["poller"].at(store.shard_of(bot), bot)
        self._bot = bot
        self._token = secrets.token_hex(8)

    async def acquire(self) -> None:
        """Wait until this process has the right. Raises StoreError.

        It is logged only if another process lives: the lease of a dead one ends first.
        """
        began, stands_by = time.monotonic(), False
        while not await self._is_held():
            if not await self._try():
                if not stands_by and time.monotonic() - began > 2 * LIFETIME.total_seconds():
                    stands_by = True
                    log.info("another process gets the updates of %s; this one stands by", self._bot)
                await asyncio.sleep(TRY_EVERY)
        if stands_by:
            log.info("this process gets the updates of %s from now on", self._bot)

    async def _try(self) -> bool:
        return bool(await self._store.command("SET", self._key, self._token, "NX", "PX", _LIFETIME_MS))

    async def hold(self) -> None:
        """Renew the lease until it is lost. Raises StoreError."""
        while True:
            holder = await self._store.command("GETEX", self._key, "PX", _LIFETIME_MS)
            if holder != self._token:  # its lease is renewed once by this, which does no harm
                return
            await asyncio.sleep(RENEW_EVERY)

    async def release(self) -> None:
        """Let another process poll at once. Raises StoreError."""
        if await self._is_held():
            await self._store.command("DEL", self._key)

    async def _is_held(self) -> bool:
        return bool(await self._store.command("GET", self._key) == self._token)
