"""The versions of a bot. A run names the version with which it began and ends on it, also in another process; the last
good version is in force also after a restart (C-13).

A version is stored in Redis under its name and stays there for as long as a run may need it. A process stores each good
version, and its name under the bot's folder. A process that starts while the folder has mistakes takes the version from
there. A folder at another place is another bot.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from datetime import timedelta
from functools import cached_property
from hashlib import blake2b

import msgspec
from msgspec import Struct

from core.errors import StoreError
from core.redis.keys import KEYS
from core.redis.store import Store
from scenarios.bot import Bot
from scenarios.engine.triggers import CompiledTriggers, has_teacher_beside
from scenarios.execution.active_bot import ActiveBot
from scenarios.loader import Problem
from scenarios.schema.questions import ASKING

LIFETIME = timedelta(days=180)
"""After it was last published; longer than any run."""

_CACHED = 20


class Version:
    """One version of a bot; `name` is that of `scenarios.execution.active_bot`. The triggers are compiled when they are
    first used.
    """

    def __init__(self, name: str, bot: Bot) -> None:
        self.name = name
        self.bot = bot

    @cached_property
    def triggers(self) -> CompiledTriggers:
        return CompiledTriggers(self.bot)

    @cached_property
    def names_directory(self) -> bool:
        """Return whether the bot names a person of the directory, or speaks its language: then it is looked up for each
        event."""
        return bool(self.bot.translations) or "directory_" in repr((self.bot.settings, *self.bot.scenarios.values()))

    @cached_property
    def asks(self) -> bool:
        """Return whether the bot asks questions: then a text may answer one in another chat of its author."""
        return any(action.type in ASKING for one in self.bot.scenarios.values() for action in one.actions)


class Versions:
    """One per process and bot."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: OrderedDict[str, Version] = OrderedDict()

    async def current(self, name: str, bot: Bot) -> Version:
        """Return the version under this name, which is stored when it is first used."""
        known = self._known.get(name)
        return self._remembered(known) if known else await self.publish(name, bot)

    async def publish(self, name: str, bot: Bot) -> Version:
        """Store a version, so that every process can go on with its runs."""
        content = msgspec.json.encode(bot).decode()
        await self._store.command("SET", _key(name), content, "EX", int(LIFETIME.total_seconds()))
        return self._remembered(Version(name, bot))

    async def get(self, name: str) -> Version | None:
        """Return the version with this name; None if it is not there any more."""
        if name in self._known:
            return self._remembered(self._known[name])
        content = await self._store.command("GET", _key(name))
        if content is None:
            return None
        return self._remembered(Version(name, msgspec.json.decode(content, type=Bot)))

    def _remembered(self, version: Version) -> Version:
        version = self._known.setdefault(version.name, version)
        self._known.move_to_end(version.name)
        if len(self._known) > _CACHED:
            self._known.popitem(last=False)
        return version


def _key(name: str) -> str:
    return KEYS["version"].at(0, name)


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
