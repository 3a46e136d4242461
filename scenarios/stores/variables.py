"""The variables of people and chats (C-93), and of the bot (C-105), which `set` and `ask` change.

Those of a person are fields of its record, so they are kept and deleted with it. Guarantees: a step changes a variable
once, however often it is repeated; no change of a number or a list is lost to another run, and of several runs that
`append` an element with a limit, or set with `if_empty`, no more succeed than there is room for. A value without a
lifetime of its own is kept for 400 days after the last event or change.
"""

from collections.abc import Mapping, Sequence

import msgspec

from core.model.clock import in_ms
from core.redis.keys import KEYS
from core.redis.store import Store
from scenarios.bot import Bot
from scenarios.bot.data import Data
from scenarios.bot.model import SCOPES, STORED_SCOPES
from scenarios.schema.variables import MOST_BYTES, REMOVE, Change, defaults, is_past, scopes_of, taken, too_large
from scenarios.stores import step_results
from scenarios.stores.people import KEPT

FIELD = "var:"
"""Before the name of a variable, in the record of a person or a chat."""
PLACES = "places:"
"""Before the name of a list of the bot in which a person has places, in its record."""
_KEPT_MS = in_ms(KEPT)


class Variables:
    """The variables of one tenant's bot."""

    def __init__(self, store: Store, tenant: str) -> None:
        self._store = store
        self._tenant = tenant

    async def seen(self, bot: Bot, event: Mapping[str, Data], now: int) -> dict[str, dict[str, Data]]:
        """Return what actions see of the declared variables: scope → name → value. `now`: ms."""
        found: dict[str, dict[str, Data]] = {}
        for scope in scopes_of(bot.declared):
            stored = await self.stored(scope, event, now) if scope in STORED_SCOPES else {}
            names = defaults(bot.declared, scope)
            found[scope] = {name: stored.get(name, default) for name, default in names.items()}
        return found

    async def stored(self, scope: str, event: Mapping[str, Data], now: int) -> dict[str, Data]:
        """Return the values that are set and not over."""
        fields = await self._store.command("HGETALL", self._key(scope, event))
        return read_fields(fields, now)

    async def change(self, step: str, event: Mapping[str, Data], changes: Sequence[Change]) -> dict[str, Data]:
        """Change variables of one scope; return those that were changed with their values, None without one. A repeat
        of the step returns what the first time did. Raises Invalid VARIABLE_TOO_LARGE, Conflict VARIABLE_TAKEN.
        """
        scope, words = changes[0].scope, [word for one in changes for word in _words(one)]
        channel, owner = _owner(scope, event)
        shard = self._store.shard_of_person(self._tenant, channel, owner)
        limits = (_KEPT_MS, step_results.KEPT_MS, MOST_BYTES)
        reply = await self._store.run(
            "set_variables", shard, self._tenant, scope, channel, owner, f"{step}:{scope}", *limits, *words
        )
        if reply[0] == "full":
            raise too_large(scope, reply[1])
        if reply[0] == "taken":
            raise taken(scope, reply[1])
        names, values = reply[1::2], reply[2::2]
        return {name: msgspec.json.decode(value) if value else None for name, value in zip(names, values, strict=True)}

    async def note_places(self, step: str, event: Mapping[str, Data], name: str, expire: int) -> None:
        """Note that a person has places in a list of the bot: its own list names them. `expire`: as in `Change`."""
        key = self._key(SCOPES[0], event)
        await self._store.write("HSET", key, f"{PLACES}{name}", f"{expire} {step}")
        await self._store.command("PEXPIRE", key, _KEPT_MS, "NX")  # a record of a person who was met has a lifetime

    async def give_places_back(self, channel: str, user: str) -> None:
        """Take the places of a person that is deleted out of the lists of the bot, each once. Its record goes later."""
        event = {"channel": channel, "user_id": user}
        fields = await self._store.command("HGETALL", self._key(SCOPES[0], event))
        own = read_fields(fields, now=0)
        for field, text in fields.items():
            name, places = field.removeprefix(PLACES), own.get(field.removeprefix(PLACES))
            if field.startswith(PLACES) and isinstance(places, list):
                expire, _, step = text.partition(" ")
                if changes := [Change("bot", name, REMOVE, one, int(expire), []) for one in places]:
                    await self.change(f"{step}.deleted", {}, changes)

    def _key(self, scope: str, event: Mapping[str, Data]) -> str:
        name = "person" if scope == SCOPES[0] else "chat_variables"
        owner = _owner(scope, event)
        return KEYS[name].at(self._store.shard_of_person(self._tenant, *owner), self._tenant, *owner)


def read_fields(fields: Mapping[str, str], now: int) -> dict[str, Data]:
    """Return the variables among the fields of a record: `<until ms> <JSON>`."""
    found = {}
    for field, text in fields.items():
        until, _, value = text.partition(" ")
        if field.startswith(FIELD) and not is_past(int(until), now):
            found[field.removeprefix(FIELD)] = msgspec.json.decode(value)
    return found


def _owner(scope: str, event: Mapping[str, Data]) -> tuple[str, str]:
    """Return channel and id; those of the bot stand where no channel has a chat."""
    if scope == "bot":
        return "-", "bot"
    person = str(event["user_id"])
    return str(event["channel"]), person if scope == SCOPES[0] else str(event.get("chat_id") or person)


def _words(change: Change) -> tuple[str, str, str, int, str, int]:
    value, default = (msgspec.json.encode(one, enc_hook=str).decode() for one in (change.value, change.default))
    return change.name, change.verb, value, change.expire * 1000, default, change.times
