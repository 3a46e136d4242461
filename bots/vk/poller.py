"""Polls the events of a VK community and puts them into the queue.

Guarantees: one process polls, the others are its standby and take over seconds after its death. The position is
stored after the events were put, so an event that VK still has is not lost; one that is read twice is put once.
"""

import asyncio
import logging
from contextlib import suppress
from datetime import timedelta

from bots.poller_lease import PollerLease
from core.errors import StoreError
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.keys import KEYS
from core.redis.store import Store
from core.updates.ingress import Ingress
from providers.vk.client import Client
from providers.vk.community import find_community
from providers.vk.errors import VkUnavailable
from providers.vk.long_poll import Server, find_server, poll

log = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 15.0
"""Seconds after a fault."""
_POSITION_KEPT = timedelta(days=7)


class VkPoller:
    """One per process."""

    def __init__(self, store: Store, client: Client, ingress: Ingress) -> None:
        self._store = store
        self._client = client
        self._ingress = ingress
        self._bot = ""
        self._community = 0
        self._server: Server | None = None
        self._faults = 0

    async def run(self) -> None:
        """Poll until cancelled; as a standby while another process polls. Raises TokenRefused."""
        while True:
            try:
                await self._sign_in()
                lease = PollerLease(self._store, self._bot)
                await lease.acquire()
                await self._poll_while_held(lease)
            except (VkUnavailable, StoreError) as fault:
                log.warning("polling pauses: %s", fault)
            await asyncio.sleep(min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**self._faults))
            self._faults = min(self._faults + 1, 10)

    async def _sign_in(self) -> None:
        if not self._bot:
            self._community = await find_community(self._client)
            self._bot = f"vk.{self._community}"

    async def _poll_while_held(self, lease: PollerLease) -> None:
        """Return when the lease is lost. Raises VkUnavailable, TokenRefused, StoreError."""
        self._server = None
        polling, holding = asyncio.create_task(self._poll_on()), asyncio.create_task(lease.hold())
        try:
            done, _ = await asyncio.wait({polling, holding}, return_when=asyncio.FIRST_COMPLETED)
            for ended in done:
                ended.result()
        finally:
            await cancel_and_wait(polling, holding)
            with suppress(StoreError):
                await lease.release()

    async def _poll_on(self) -> None:
        while True:
            await self._poll()

    async def _poll(self) -> None:
        server = self._server or await self._begin()
        answer = await poll(self._client, server)
        self._faults = 0
        for event in answer.events:
            await self._ingress.put(event)
        if answer.ts != server.ts:
            await self._save_position(answer.ts)
        self._server = None if answer.needs_server else Server(server.url, server.key, answer.ts)

    async def _begin(self) -> Server:
        """Return where to poll: from the stored position on, or from now."""
        server = await find_server(self._client, self._community)
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
    def _position_key(self) -> str:
        return KEYS["polled"].at(0, self._bot)
