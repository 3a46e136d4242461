"""Polls the events of a VK community and puts them into the queue.

Guarantees: one process polls, the others are its standby and take over within `LEASE` after its death. The position is
stored after the events were put, so an event that VK still has is not lost; one that is read twice is put once.
"""

import asyncio
import logging
from contextlib import suppress
from datetime import timedelta

from bots.updates import Updates
from bots.vk.long_poll import Server, VkAccount, VkUnavailable
from core.errors import StoreError
from core.redis.keys import KEYS
from core.redis.store import Store
from core.updates.vk_events import update_of

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=25)
"""Longer than one poll."""
STANDBY_PAUSE = 2.0
"""Seconds between two attempts of a standby to take over."""
FAILURE_PAUSE = 3.0
_POSITION_KEPT = timedelta(days=7)


class VkPoller:
    """One per process. `owner`: a name that no other process has."""

    def __init__(
        self, store: Store, account: VkAccount, updates: Updates, owner: str, lease: timedelta = LEASE
    ) -> None:
        self._store = store
        self._account = account
        self._updates = updates
        self._owner = owner
        self._lease_ms = lease // timedelta(milliseconds=1)
        self._community = 0
        self._server: Server | None = None

    async def run(self) -> None:
        """Poll until cancelled."""
        try:
            while True:
                await self._poll_safely()
        finally:
            await self._release()

    async def _poll_safely(self) -> None:
        try:
            await self._sign_in()
            if not await self._may_poll():
                self._server = None
                await asyncio.sleep(STANDBY_PAUSE)
                return
            await self._poll()
        except VkUnavailable as fault:
            self._server = None
            log.warning("VK cannot be polled (%s), trying again", fault)
            await asyncio.sleep(FAILURE_PAUSE)
        except StoreError as fault:
            self._server = None  # what was read and not put is read again from the stored position
            log.warning("the updates of VK were not stored: %s", fault)
            await asyncio.sleep(FAILURE_PAUSE)

    async def _sign_in(self) -> None:
        if not self._community:
            self._community = await self._account.community()
            log.info("polling VK as club%d", self._community)

    async def _may_poll(self) -> bool:
        """Take or renew the lease. Two pollers in the same moment do no harm: an event is put once."""
        taken = await self._store.command("SET", self._lease_key, self._owner, "NX", "PX", self._lease_ms)
        if taken is None and await self._store.command("GET", self._lease_key) != self._owner:
            return False
        await self._store.command("PEXPIRE", self._lease_key, self._lease_ms)
        return True

    async def _release(self) -> None:
        """Let a standby take over at once."""
        with suppress(StoreError):
            if self._community and await self._store.command("GET", self._lease_key) == self._owner:
                await self._store.command("DEL", self._lease_key)

    async def _poll(self) -> None:
        server = self._server or await self._begin()
        answer = await self._account.poll(server)
        for event in answer.events:
            if update := update_of(event):
                await self._updates.put(update)
        if answer.ts != server.ts:
            await self._save_position(answer.ts)
        self._server = None if answer.needs_server else Server(server.url, server.key, answer.ts)

    async def _begin(self) -> Server:
        """Where to poll: from the stored position on, or from now."""
        server = await self._account.server(self._community)
        position = await self._store.command("GET", self._position_key)
        if position is None:
            await self._save_position(server.ts)
        return Server(server.url, server.key, position or server.ts)

    async def _save_position(self, ts: str) -> None:
        """Store the position, or forget it if VK has lost it."""
        if ts:
            seconds = _POSITION_KEPT // timedelta(seconds=1)
            await self._store.command("SET", self._position_key, ts, "EX", seconds)
        else:
            await self._store.command("DEL", self._position_key)

    @property
    def _lease_key(self) -> str:
        return KEYS["poller"].at(0, self._bot)

    @property
    def _position_key(self) -> str:
        return KEYS["polled"].at(0, self._bot)

    @property
    def _bot(self) -> str:
        return f"vk.{self._community}"
