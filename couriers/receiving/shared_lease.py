"""The right to get the updates of all bots of a process: one lease, renewed in one call, however many bots there are.

Each bot has it while the process has it. `accounts` uses it in place of a `PollerLease` for each bot.
"""

import asyncio
import logging
from contextlib import suppress

from core.errors import StoreError
from core.redis.store import Store
from couriers.receiving.poller_lease import PollerLease

log = logging.getLogger(__name__)

_PAUSE = 1.0
"""Seconds after a fault of the store."""


class SharedLease:
    """`run` gets and renews it; the rest is for each bot."""

    def __init__(self, store: Store, name: str) -> None:
        self._lease = PollerLease(store, name)
        self._held, self._lost = asyncio.Event(), asyncio.Event()
        self._is_wanted = asyncio.Event()

    def want(self) -> None:
        """Get the lease from now on: there is a bot."""
        self._is_wanted.set()

    async def run(self) -> None:
        """Get the lease when it is wanted, and renew it until cancelled; then another process can get it."""
        await self._is_wanted.wait()
        try:
            while True:
                await self._get_and_hold()
        finally:
            with suppress(StoreError, TimeoutError):
                async with asyncio.timeout(1):
                    await self._lease.release()

    async def _get_and_hold(self) -> None:
        try:
            await self._lease.acquire()
            self._lost.clear()
            self._held.set()
            await self._lease.hold()
            log.warning("the right to poll was lost; this process or another gets it")
        except StoreError as fault:
            log.warning("polling pauses: %s", fault)
            await asyncio.sleep(_PAUSE)
        finally:
            self._held.clear()
            self._lost.set()

    async def acquire(self) -> None:
        """Wait until this process has the right."""
        await self._held.wait()

    async def hold(self) -> None:
        """Wait until it is lost."""
        await self._lost.wait()

    async def release(self) -> None:
        """Do nothing: the other bots of the process keep the right."""
