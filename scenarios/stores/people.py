"""Stores the people who use a bot: names, chats, first and last event (C-20), and their state (C-05, C-67).

    event ─▶ People.met: the record is created or refreshed, the state is read, in one command ─▶ triggers

Guarantees: a state is one of a person in a channel and ends by itself. A record is kept for 400 days after the person's
last event and has at most 20 chats. A username leads to the person who was last seen with it.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from core.model.clock import from_ms, in_ms
from core.redis.keys import KEYS
from core.redis.store import Store
from core.updates import rights

SHARD = 0
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

    async def met(self, event: Mapping[str, Any]) -> str:
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

    async def _meet(self, channel: str, user: str, chat: str, names: Mapping[str, Any]) -> str:
        written = [text for name, value in names.items() for text in (name, _name(value))]
        state: str = await self._store.run("meet_person", SHARD, self._tenant, channel, user, chat, _KEPT_MS, *written)
        return state

    async def set_state(self, channel: str, user: str, state: str, lifetime: timedelta) -> None:
        """Set the state of a person for a time; "" clears it."""
        await self._store.run("set_state", SHARD, self._tenant, channel, user, state, in_ms(lifetime), _KEPT_MS)

    async def keyboard(self, channel: str, user: str) -> str:
        """Return the version of the keyboard that a person has (U-18), "" if none was sent."""
        key = KEYS["person"].at(SHARD, self._tenant, channel, user)
        return str(await self._store.command("HGET", key, "keyboard") or "")

    async def set_keyboard(self, channel: str, user: str, version: str) -> None:
        key = KEYS["person"].at(SHARD, self._tenant, channel, user)
        await self._store.command("HSET", key, "keyboard", version)
        await self._store.command("PEXPIRE", key, _KEPT_MS, "NX")  # a record of a person who was met has a lifetime

    async def all(self) -> AsyncIterator[tuple[str, str]]:
        """Yield the channel and the id of all people that the bot has met; one that comes meanwhile perhaps."""
        key, cursor = KEYS["people"].at(SHARD, self._tenant), "0"
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
        key = KEYS["person"].at(SHARD, self._tenant, channel, user)
        username, first_name, last_name, chats, first, last = await self._store.read_hash(key, *_FIELDS)
        if first is None or last is None:
            return None
        names = (username or "", first_name or "", last_name or "")
        return Person(user, *names, tuple((chats or "").split()), from_ms(first), from_ms(last))

    async def named(self, channel: str, username: str) -> str | None:
        """Return the id of the person with this @name, None if it is not known: a bot knows only those it has met."""
        name = _name(username).encode().lower().decode()  # only ASCII letters, as in the script
        if not name:
            return None
        found: str | None = await self._store.command("GET", KEYS["username"].at(SHARD, self._tenant, channel, name))
        return found


def _name(value: Any) -> str:
    return "" if value is None else str(value).strip().removeprefix("@")


def _joined(event: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield people that have joined a group, apart from the event's person, with the names that the event has."""
    ids, usernames = _as_list(event.get("joined_user_ids")), _as_list(event.get("joined_usernames"))
    for user, username in zip(ids, usernames if len(usernames) == len(ids) else [None] * len(ids), strict=True):
        if str(user) != str(event["user_id"]):
            yield str(user), {"username": username} if username is not None else {}


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []
