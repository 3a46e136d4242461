"""The last version of a bot without mistakes, also after a restart (C-13).

A process stores each good version, and its name under the bot's folder. A process that starts while the folder has
mistakes takes the version from there. A folder at another place is another bot.
"""

import asyncio
import logging
from collections.abc import Sequence
from hashlib import blake2b

import msgspec
from msgspec import Struct

from core.errors import StoreError
from core.redis.keys import KEYS
from core.redis.store import Store
from scenarios.check.reloading import ActiveBot
from scenarios.engine.beside import has_teacher_beside
from scenarios.execution.versions import LIFETIME, Versions
from scenarios.loader import Problem

log = logging.getLogger(__name__)

SHOWN_PROBLEMS = 200
_NOTED = {"answer": "answer_bots", "reply": "reply_bots"}
"""Section of the triggers → the key with the tenants that have such triggers."""
_RETRY = 1.0


class ActiveVersion(Struct, frozen=True):
    """The facts of the bot in force that people are shown. `loaded_at`: since when (s). `is_good`: whether this version
    has no mistakes. `problems`: the first of the files as they are now; `problem_count`: all. `beside`: the version of
    the dialog of teachers that answers beside it, "" for none.
    """

    version: str
    loaded_at: float
    folder: str
    is_good: bool
    problems: Sequence[Problem]
    problem_count: int
    beside: str = ""

    @classmethod
    def of(cls, bot: ActiveBot, beside: ActiveBot | None = None) -> "ActiveVersion":
        shown = bot.problems[:SHOWN_PROBLEMS]
        teacher = beside.version if beside and has_teacher_beside(bot.folder, bot.bot) else ""
        return cls(bot.version, bot.loaded_at, str(bot.folder), bot.is_good, shown, len(bot.problems), teacher)


class LastGood:
    """One per process. `beside`: the dialog of teachers, which has no mistakes."""

    def __init__(
        self, store: Store, versions: Versions, tenant: str, bot: ActiveBot, beside: ActiveBot | None = None
    ) -> None:
        self._store = store
        self._versions = versions
        self._tenant = tenant
        self._bot = bot
        self._beside = beside
        folder = blake2b(str(bot.folder).encode(errors="surrogateescape"), digest_size=8).hexdigest()
        self._key = KEYS["goodversion"].at(0, tenant, folder)
        self._shown_at = KEYS["active_bot"].at(0, tenant)
        self._changed = asyncio.Event()
        bot.on_change(self._changed.set)

    async def restore(self) -> None:
        """Put the last good version in force if the folder has mistakes; otherwise store that of the folder. Raises
        StoreError.
        """
        if not self._bot.is_good and (name := await self._store.command("GET", self._key)):
            await self._take(name)
        await self.store()

    async def store(self) -> None:
        """Store the version in force, what people are shown of it, and that it is good if it is. Raises StoreError."""
        for bot in filter(None, (self._bot, self._beside)):
            await self._versions.publish(bot.version, bot.bot)
        shown = msgspec.json.encode(ActiveVersion.of(self._bot, self._beside)).decode()
        await self._store.command("SET", self._shown_at, shown, "EX", int(LIFETIME.total_seconds()))
        await self._store.command("SADD", KEYS["bots"].at(0), self._tenant)
        await self._note_triggers()
        if self._bot.is_good:
            await self._store.command("SET", self._key, self._bot.version, "EX", int(LIFETIME.total_seconds()))

    async def forget(self) -> None:
        """Note that the tenant has no bot any more; runs keep their versions. Raises StoreError."""
        await self._store.command("DEL", self._shown_at)
        await self._store.command("SREM", KEYS["bots"].at(0), self._tenant)
        for shard in range(self._store.shards):
            for key in _NOTED.values():
                await self._store.command("SREM", KEYS[key].at(shard), self._tenant)

    async def _note_triggers(self) -> None:
        """Note in each shard whether the bot has triggers for answers to questions of deliveries, and for replies."""
        files = self._bot.bot.triggers, self._bot.bot.group_triggers
        for section, key in _NOTED.items():
            verb = "SADD" if any(any(file.section(section).values()) for file in files) else "SREM"
            for shard in range(self._store.shards):
                await self._store.command(verb, KEYS[key].at(shard), self._tenant)

    async def keep(self) -> None:
        """Store each version that comes into force, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self.store()
            except StoreError as fault:
                log.warning("the version %s is not stored, again in %.0f s: %s", self._bot.version, _RETRY, fault)
                await asyncio.sleep(_RETRY)
                self._changed.set()

    async def _take(self, name: str) -> None:
        try:
            version = await self._versions.get(name)
        except msgspec.DecodeError as error:  # stored by another version of Ada
            log.warning("the last good version %s of %s cannot be read: %s", name, self._bot.folder, error)
            return
        if version is not None:
            self._bot.use(version.name, version.bot)
