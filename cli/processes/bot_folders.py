"""Starts the bots of ADA_SCENARIOS in a process, and follows their folders: a new one is started, one that is gone is
stopped, one whose .env has changed is started anew.

Guarantee: a bot that cannot start stops no other. The reason is logged once, and noted for the doctor and the console.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from cli.settings.bot_folders import BotFolder, MayReceive, read_bots
from cli.settings.secrets import receiver
from cli.settings.settings import Configuration
from core.errors import SetupError, StoreError, StoreRefuses
from core.processes.register import BotFault, BotFaults
from core.redis.store import Store

log = logging.getLogger(__name__)

EVERY = 1.0
"""Seconds between two readings of the folders."""
_SETTLED = 0.3
"""Seconds after which a folder that is being copied is read again, before its bot is started."""

Start = Callable[[BotFolder], Awaitable[None]]
Stop = Callable[[str], Awaitable[None]]
Read = Callable[[Configuration, MayReceive], dict[str, BotFolder]]


class BotFolders:
    """The bots that a process runs. `process`: as `cli.settings.secrets` names it. `start`: starts a bot, and raises
    SetupError if it cannot run until its settings change. `stop`: stops that of a tenant. `read`: which bots there are.
    """

    def __init__(
        self,
        configuration: Configuration,
        store: Store,
        process: str,
        start: Start,
        stop: Stop,
        read: Read = read_bots,
    ) -> None:
        self._configuration = configuration
        self._may_receive = receiver(process)
        self._process = process
        self._faults = BotFaults(store)
        self._start = start
        self._read_bots = read
        self._reasons: dict[str, str] = {}
        self._stop = stop
        self._store = store
        self._seen: dict[str, BotFolder] = {}

    async def keep(self) -> None:
        """Follow the folders until cancelled."""
        if any(bot.is_only for bot in self._seen.values()):
            await asyncio.Event().wait()
        while True:
            await asyncio.sleep(EVERY)
            try:
                await self.check()
            except (StoreError, OSError) as fault:
                log.warning("the folders of the bots are looked at again: %s", fault)

    async def check(self) -> None:
        """Start and stop what has changed. Raises StoreError, OSError; SetupError if the only bot cannot start."""
        found = await self._read()
        if found != self._seen and self._seen:
            await asyncio.sleep(_SETTLED)
            found = await self._read()
        for tenant in [one for one, bot in self._seen.items() if found.get(one) != bot]:
            log.info("the bot of %s %s", tenant, "has new settings" if tenant in found else "is gone")
            await self._stop(tenant)
            del self._seen[tenant]
            if tenant not in found:
                await self.clear(tenant)
        for tenant, bot in found.items():
            if tenant not in self._seen:
                await self._begin(bot)
                self._seen[tenant] = bot

    async def _read(self) -> dict[str, BotFolder]:
        return await asyncio.to_thread(self._read_bots, self._configuration, self._may_receive)

    async def _begin(self, bot: BotFolder) -> None:
        try:
            if bot.fault:
                raise SetupError(bot.fault)
            await self._start(bot)
        except SetupError as error:
            if bot.is_only:
                raise
            await self.note(bot.tenant, str(error))
        else:
            await self.clear(bot.tenant)

    async def clear(self, tenant: str) -> None:
        """Report that the bot of a tenant works; on a server that refuses writes it starts all the same. Raises
        StoreError.
        """
        self._reasons.pop(tenant, None)
        try:
            await self._faults.clear(tenant, self._process)
        except StoreRefuses as fault:
            log.warning("that the bot of %s works is not noted: %s", tenant, fault)

    async def note(self, tenant: str, reason: str) -> None:
        """Report that the bot of a tenant has stopped. Raises StoreError."""
        if self._reasons.get(tenant) != reason:
            log.error("the bot of %s has stopped, the others go on: %s", tenant, reason)
        self._reasons[tenant] = reason
        now = self._store.now_ms()
        await self._faults.note(tenant, BotFault(self._process, reason, now))
