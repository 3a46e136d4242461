"""What has stopped single bots while the processes that run them go on: for operators, by tenant.

A part of a bot is what a process does for it: `scenarios`, `bot telegram`, `courier telegram-bot`.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta

import msgspec
from msgspec import Struct

from core.redis.keys import KEYS
from core.redis.store import Store

_KEPT = timedelta(days=30)
"""After the last fault, if nothing removes it, for example because the processes are gone."""


class BotFault(Struct, frozen=True):
    """A part of a bot that has stopped, `bot telegram` for example, while the rest goes on. `since`: Unix ms."""

    part: str
    reason: str
    since: int


class BotFaults:
    """Notes and clears the faults of all bots. Methods raise StoreError."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def note(self, tenant: str, fault: BotFault) -> None:
        """Note that a part has stopped, in place of what was noted before."""
        key = KEYS["bot_faults"].at(0, tenant)
        await self._store.command("HSET", key, fault.part, msgspec.json.encode(fault).decode())
        await self._store.command("EXPIRE", key, _KEPT // timedelta(seconds=1))
        await self._store.command("SADD", KEYS["bots"].at(0), tenant)

    async def clear(self, tenant: str, part: str) -> None:
        """Note that a part works, or that the bot is gone."""
        await self._store.command("HDEL", KEYS["bot_faults"].at(0, tenant), part)

    async def of(self, tenant: str) -> Sequence[BotFault]:
        """Return what has stopped of a tenant's bot."""
        stored: Mapping[str, str] = await self._store.command("HGETALL", KEYS["bot_faults"].at(0, tenant))
        return [msgspec.json.decode(stored[part], type=BotFault) for part in sorted(stored)]
