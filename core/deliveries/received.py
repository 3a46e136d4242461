"""The messages that an address has received and may reply to: which delivery and recipient each belongs to.

Only deliveries with `replies` are noted, so all others cost nothing. The newest `MOST` messages of an address stand in
a list; older ones are found by their id. All lead to their delivery for 90 days longer than histories are kept. What
was sent to a topic of a group chat is noted under the topic, in which people write. A process that is killed between
sending and noting leaves its messages unknown here: a reply that quotes one is placed as one that quotes nothing.

`couriers.sending` notes what was sent, `core.updates.events` recognises replies, `core.threads` places them.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from hashlib import blake2b
from typing import NamedTuple

from core.model.clock import to_ms
from core.model.history_key import HistoryKey
from core.model.json_form import compact_json
from core.redis.keys import KEYS
from core.redis.store import Store

MOST = 100
_NOTED_MS = timedelta(days=3) // timedelta(milliseconds=1)
"""Longer than providers let people edit a message."""
_MOST_NOTED = 1000
"""More than one person passes on in that time within the limits."""


class ReceivedMessage(NamedTuple):
    """`reference`: the provider's id of the message, "" if it has none. `number`: of the recipient in the delivery.
    `at`: Unix ms, 0 if it was found by its id.
    """

    reference: str
    key: HistoryKey
    number: int
    at: int = 0


class ReceivedMessages:
    """One per process. Methods raise StoreError."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def note(self, tenant: str, channel: str, received: Sequence[tuple[str, ReceivedMessage]]) -> None:
        """Note messages that were sent. `received`: the address of each, and the message."""
        by_shard = defaultdict[int, list[Sequence[str]]](list)
        for address, one in received:
            parts = [f"{part} {one.key.id} {one.number}" for part in one.reference.split(",")]
            place = _topic_in(address, one.reference) or address
            by_shard[self._store.shard_of_person(tenant, channel, place)].append([tenant, channel, place, *parts])
        for shard, rows in by_shard.items():
            await self._store.run("note_received", shard, MOST, compact_json(rows))

    async def quoted(self, tenant: str, channel: str, address: str, reference: str) -> ReceivedMessage | None:
        """Return the message with this id that an address has received."""
        shard = self._store.shard_of_person(tenant, channel, address)
        found = str(await self._store.run("find_received", shard, tenant, channel, address, reference))
        return _read(f"{reference} {found}", 0) if found else None

    async def forget(self, tenant: str, channel: str, address: str) -> None:
        """Delete which messages an address has received, and which of its own were passed on."""
        shard = self._store.shard_of_person(tenant, channel, address)
        await self._store.run("forget_received", shard, tenant, channel, address)
        await self._store.command("DEL", KEYS["passed_on"].at(shard, tenant, channel, address))

    async def reference_in(self, tenant: str, channel: str, address: str, key: HistoryKey, number: int) -> str:
        """Return the id of the newest message of a delivery to a recipient at an address; "" if none is known."""
        found = await self._newest(tenant, channel, address)
        return next((one.reference for one in found if (one.key, one.number) == (key, number)), "")

    async def last_in_topic(self, tenant: str, channel: str, chat: str, topic: str) -> ReceivedMessage | None:
        """Return the newest message that was sent to a topic of a group chat."""
        found = await self._newest(tenant, channel, f"{chat}/{topic}")
        return found[0] if found else None

    async def last(self, tenant: str, channel: str, address: str, since: int) -> ReceivedMessage | None:
        """Return the newest message that an address has received since an ms."""
        found = await self._newest(tenant, channel, address)
        return found[0] if found and found[0].at >= since else None

    async def note_passed_on(
        self, tenant: str, channel: str, address: str, message: str, thread: str, text: str
    ) -> None:
        """Note to which thread a message of an address was passed on, and its text, for edits of it."""
        key = self._key_of_own(tenant, channel, address)
        await note_newest(self._store, key, f"{message} {thread} {_digest(text)}")

    async def thread_of(self, tenant: str, channel: str, address: str, message: str, text: str) -> str:
        """Return the thread to which a message was passed on; "" if it was not, or with this very text."""
        found = await newest(self._store, self._key_of_own(tenant, channel, address), message)
        thread, _, digest = (found or "").partition(" ")
        return thread if digest != _digest(text) else ""

    def _key_of_own(self, tenant: str, channel: str, address: str) -> str:
        return KEYS["passed_on"].at(self._store.shard_of_person(tenant, channel, address), tenant, channel, address)

    async def _newest(self, tenant: str, channel: str, address: str) -> list[ReceivedMessage]:
        key = KEYS["received"].at(self._store.shard_of_person(tenant, channel, address), tenant, channel, address)
        rows = await self._store.command("ZRANGE", key, 0, -1, "REV", "WITHSCORES")
        return [_read(text, int(at)) for text, at in rows]


async def note_newest(store: Store, key: str, row: str) -> None:
    """Note a row that begins with a name for three days, in a list of the newest rows of one address."""
    now = to_ms(store.now())
    await store.command("ZADD", key, now, row)
    await store.command("ZREMRANGEBYSCORE", key, "-inf", now - _NOTED_MS)
    await store.command("ZREMRANGEBYRANK", key, 0, -_MOST_NOTED - 1)
    await store.command("PEXPIRE", key, _NOTED_MS)


async def newest(store: Store, key: str, name: str) -> str | None:
    """Return the rest of the newest row with a name; None if it is not noted."""
    rows: list[str] = await store.command("ZRANGE", key, 0, -1, "REV")
    return next((row.removeprefix(f"{name} ") for row in rows if row.startswith(f"{name} ")), None)


def _topic_in(address: str, reference: str) -> str:
    """Return the topic in which a message with this id is; "" if its address is no topic."""
    chat, marked, _ = address.partition("#")
    topic, divided, _ = reference.partition("/")
    return f"{chat}/{topic}" if marked and divided and chat.startswith("-") else ""


def _digest(text: str) -> str:
    return blake2b(text.encode(errors="replace"), digest_size=12).hexdigest()


def _read(text: str, at: int) -> ReceivedMessage:
    reference, key, number = text.rsplit(" ", 2)
    return ReceivedMessage(reference, HistoryKey.parse(key), int(number), at)
