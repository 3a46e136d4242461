"""References: which entry of which delivery a message in a provider's dialog belongs to.

A provider of chats reports reading by dialog: "read up to message n". The index keeps the newest messages of each
dialog until they are read, for a month at most. A read mark that comes before its message is noted is not lost.
A provider of SMS may report by the id of the message alone: then each message is a dialog of its own.

`couriers.sending.read_marks` notes what was sent and passes the marks on; `core.deliveries.delivery_reports` records
them.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from core.deliveries.delivery_reports import DeliveryReports, EntryName
from core.errors import NotFound
from core.model.json_form import compact_json
from core.model.states import Status
from core.redis.keys import KEYS
from core.redis.store import Store

_TTL = timedelta(days=30)
_PAGE = 500


class Reference(NamedTuple):
    """One message. `peer`: the provider's id of the dialog. `number`: of the message in it; later ones are higher.
    `text`: the reference that its outcome has.
    """

    peer: str
    number: int
    text: str
    entry: EntryName


class MessageReferences:
    """Of one account of one channel; one per process."""

    def __init__(self, store: Store, reports: DeliveryReports, channel: str, account: str) -> None:
        self._store = store
        self._reports = reports
        self._scope = channel, account

    async def note(self, references: Sequence[Reference]) -> None:
        """Note messages that were sent. Those that were read meanwhile are recorded as read. Raises StoreError; then
        call it again.
        """
        by_shard = defaultdict[int, list[Reference]](list)
        for one in references:
            by_shard[self._shard(one.peer)].append(one)
        for shard, of_shard in by_shard.items():
            for start in range(0, len(of_shard), _PAGE):
                await self._note_page(shard, of_shard[start : start + _PAGE])

    async def _note_page(self, shard: int, references: Sequence[Reference]) -> None:
        ttl_ms = _TTL // timedelta(milliseconds=1)
        rows = [[one.peer, one.number, _member(one)] for one in references]
        for member in await self._store.run("note_references", shard, *self._scope, ttl_ms, compact_json(rows)):
            await self._record(member)

    async def mark_read(self, peer: str, number: int) -> None:
        """Record the messages of this dialog up to `number` as read. Raises StoreError; then call it again."""
        members = await self._store.run("mark_read", self._shard(peer), *self._scope, peer, number)
        for member in members:
            await self._record(member)
        if members:
            await self._store.command("ZREM", self._key(peer), *members)

    async def report(self, reference: str, status: Status) -> bool:
        """Record what a provider reports of a message that was noted under its reference; return whether a history
        changed. Raises NotFound REFERENCE_UNKNOWN, StoreError.
        """
        members = await self._store.command("ZRANGE", self._key(reference), 0, -1)
        if not members:
            raise NotFound("REFERENCE_UNKNOWN", "No message is known by this id.")
        return any([await self._record(member, status) for member in members])

    def _shard(self, peer: str) -> int:
        return self._store.shard_of(f"{self._scope[0]}:{peer}")

    def _key(self, peer: str) -> str:
        return KEYS["references"].at(self._shard(peer), *self._scope, peer)

    async def _record(self, member: str, status: Status = Status.READ) -> bool:
        text, name = _read_member(member)
        try:
            return await self._reports.record_entry(name, status, text)
        except NotFound:
            return False  # the delivery is no longer kept


def _member(reference: Reference) -> str:
    return compact_json([reference.text, *reference.entry])


def _read_member(member: str) -> tuple[str, EntryName]:
    text, *name = json.loads(member)
    return text, EntryName(*name)
