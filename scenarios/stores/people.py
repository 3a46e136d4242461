"""Stores the people who use a bot: names, chats, first and last event (C-20), and their state (C-05, C-67).

    event ─▶ People.met: the record is created or refreshed, the state is read, in one command ─▶ triggers

Guarantees: a state is one of a person in a channel and ends by itself. A record is kept for 400 days after the person's
last event and has at most 20 chats. A username leads to the person who was last seen with it.

All that is known of a person is in its shard, with the person's entries in the lists by tenant and by username. So a
record and its entries change in one step, and whoever looks for people reads the lists of all shards.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from core.model.clock import from_ms, in_ms
from core.redis.keys import KEYS
from core.redis.store import Store
from core.updates import rights
from scenarios.bot.data import Data

KEPT = timedelta(days=400)
_KEPT_MS = in_ms(KEPT)

_NAMES = ("username", "first_name", "last_name")
_FIELDS = (*_NAMES, "chats", "first", "last")


@dataclass(frozen=True, slots=True)
class Person:
    """One person in one channel. A name is empty if the person has none. `chats`: ids, the newest first."""

    user: str
    username: str
    first_name: str
    last_name: str
    chats: tuple[str, ...]
    first_seen: datetime
    last_seen: datetime


class People:
    """The people of one tenant's bot."""

    def __init__(self, store: Store, tenant: str) -> None:
        self._store = store
        self._tenant = tenant

    async def met(self, event: Mapping[str, Data]) -> str:
        """Create or refresh the record of the event's person; return the person's state, "" if there is none.

        An event with a name has all of them: the others are removed. Without any, for example from an SMS, they stay;
        so they do if only an API key without the scope manage says the names.
        """
        channel, chat = str(event["channel"]), str(event.get("chat_id") or "")
        may_name = rights.permits(event, "manage")
        for user, names in _joined(event):
            await self._meet(channel, user, chat, names if may_name else {})
        names = {name: event.get(name) for name in _NAMES} if any(name in event for name in _NAMES) else {}
        return await self._meet(channel, str(event["user_id"]), chat, names if may_name else {})

    async def _meet(self, channel: str, user: str, chat: str, names: Mapping[str, Data]) -> str:
        written = [text for name, value in names.items() for text in (name, _name(value))]
        about = self._tenant, channel, user, chat
        return str(await self._store.run("meet_person", self._shard(channel, user), *about, _KEPT_MS, *written))

    async def set_state(self, channel: str, user: str, state: str, lifetime: timedelta) -> None:
        """Set the state of a person for a time; "" clears it."""
        words = self._tenant, channel, user, state, in_ms(lifetime), _KEPT_MS
        await self._store.run("set_state", self._shard(channel, user), *words)

    async def keyboard(self, channel: str, user: str) -> str:
        """Return the version of the keyboard that a person has (U-18), "" if none was sent."""
        return str(await self._store.command("HGET", self._key(channel, user), "keyboard") or "")

    async def set_keyboard(self, channel: str, user: str, version: str) -> None:
        key = self._key(channel, user)
        await self._store.command("HSET", key, "keyboard", version)
        await self._store.command("PEXPIRE", key, _KEPT_MS, "NX")  # a record of a person who was met has a lifetime

    async def all(self) -> AsyncIterator[tuple[str, str]]:
        """Yield the channel and the id of all people that the bot has met; one that comes meanwhile perhaps."""
        for shard in range(self._store.shards):
            async for channel, user in self._all_of(shard):
                yield channel, user

    async def _all_of(self, shard: int) -> AsyncIterator[tuple[str, str]]:
        key, cursor = KEYS["people"].at(shard, self._tenant), "0"
        seen: set[str] = set()
        while True:
            cursor, rows = await self._store.command("ZSCAN", key, cursor, "COUNT", 500)
            for person in rows[::2]:
                if person not in seen:
                    seen.add(person)
                    channel, _, user = person.partition(":")
                    yield channel, user
            if str(cursor) == "0":
                return

    async def find(self, channel: str, user: str) -> Person | None:
        """Return the record of a person, None if there is none."""
        username, first_name, last_name, chats, first, last = await self._store.read_hash(
            self._key(channel, user), *_FIELDS
        )
        if first is None or last is None:
            return None
        names = (username or "", first_name or "", last_name or "")
        return Person(user, *names, tuple((chats or "").split()), from_ms(first), from_ms(last))

    async def named(self, channel: str, username: str) -> str | None:
        """Return the id of the person with this @name, None if it is not known: a bot knows only those it has met."""
        name = _name(username).encode().lower().decode()  # only ASCII letters, as in the script
        if not name:
            return None
        shards = range(self._store.shards)
        found = await asyncio.gather(*(self._named_in(shard, channel, name) for shard in shards))
        return max(found, key=lambda one: one[0])[1]

    async def _named_in(self, shard: int, channel: str, name: str) -> tuple[int, str | None]:
        """Return how long the entry of a username lasts, which is longer the later the person was seen, and its id."""
        key = KEYS["username"].at(shard, self._tenant, channel, name)
        left, user = await asyncio.gather(self._store.command("PTTL", key), self._store.command("GET", key))
        return left, user

    def _shard(self, channel: str, user: str) -> int:
        return self._store.shard_of_person(self._tenant, channel, user)

    def _key(self, channel: str, user: str) -> str:
        return KEYS["person"].at(self._shard(channel, user), self._tenant, channel, user)


def _name(value: Data) -> str:
    return "" if value is None else str(value).strip().removeprefix("@")


def _joined(event: Mapping[str, Data]) -> Iterator[tuple[str, Mapping[str, Data]]]:
    """Yield people that have joined a group, apart from the event's person, with the names that the event has."""
    ids, usernames = _as_list(event.get("joined_user_ids")), _as_list(event.get("joined_usernames"))
    for user, username in zip(ids, usernames if len(usernames) == len(ids) else [None] * len(ids), strict=True):
        if str(user) != str(event["user_id"]):
            yield str(user), {"username": username} if username is not None else {}


def _as_list(value: Data) -> list[Data]:
    return list(value) if isinstance(value, list | tuple) else []
