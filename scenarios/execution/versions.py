"""The versions of a bot. A run names the version with which it began and ends on it, also in another process (C-13).

A version is stored in Redis under its name and stays there for as long as a run may need it.
"""

from collections import OrderedDict
from datetime import timedelta
from functools import cached_property

import msgspec

from core.redis.keys import KEYS
from core.redis.store import Store
from scenarios.bot import Bot
from scenarios.engine.triggers import CompiledTriggers
from scenarios.schema.questions import ASKING

LIFETIME = timedelta(days=180)
"""After it was last published; longer than any run."""

_CACHED = 20


class Version:
    """One version of a bot; `name` is that of `scenarios.check.reloading`. The triggers are compiled when they are
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
