"""Cancels a delivery, whole or for chosen recipients, or all unfinished deliveries that share one property.

The result names exactly the recipients that had been sent to before (D-42). Where an attempt is under way, the courier
sees the cancellation in the reply to its next `extend`, and `cancel` waits for the outcome it reports.

Called by `core.deliveries.deliveries`; calls `lua/delivery/functions/cancel.lua` and `cancel_scheduled.lua`.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from typing import Any

from core.deliveries.histories.encoding import StoredRecipient
from core.deliveries.histories.parcels import Entry, ids_of, parcel_task
from core.deliveries.histories.projection import HistoryFields
from core.deliveries.histories.reader import HistoryReader
from core.errors import Invalid, NotFound, StoreError
from core.model.contacts.addresses import canonical
from core.model.delivery import DEFAULT_KIND, DeliveryCancelled
from core.model.history import RecipientRecord
from core.model.history_key import HistoryKey, Id
from core.model.json_form import compact_json
from core.model.people import User, id_text
from core.model.states import OPEN, REACHED, Reason, Status
from core.redis.keys import KEYS
from core.redis.store import Store

# How long to wait for outcomes of attempts under way. A courier reports four times a second while it works.
_OUTCOME_TIMEOUT = 3.0
_POLL_INTERVAL = 0.05
# Deliveries that are read at once.
_PAGE = 500
# Scheduled deliveries of one function call, which keeps the server busy for a few milliseconds.
_CANCELS = 50
_SELECTORS = ("sender", "user", "lane", "kind_prefix", "tag")
_SELECTED_BY = ("tenant", "created", "state", "sender", "recipients", "lane", "kind", "tags")


class Canceller:
    """One per process."""

    def __init__(self, store: Store, reader: HistoryReader) -> None:
        self._store = store
        self._reader = reader

    async def cancel(self, key: HistoryKey, tenant: str, recipients: Sequence[str] = ()) -> DeliveryCancelled:
        """Cancel for these recipients, or for all. A delivery that has ended stays as it is; the result has who was
        sent to. Raises NotFound HISTORY_NOT_FOUND, RECIPIENT_NOT_FOUND.
        """
        fields = await self._reader.fields(key, tenant)
        stored = await self._reader.recipients(key, fields)
        named = await self._named(key, fields, stored, recipients)
        chosen = [one for one in stored if not recipients or str(one.id) in named]
        before = await self._reader.records(key, fields, chosen)
        entries = await self._entries(key, fields, lambda _, one: str(one.id) in named) if named else []
        whole = 0 if recipients else 1
        reply = await self._run(key, tenant, whole, compact_json(entries))
        if reply[0] == "missing":
            raise NotFound("HISTORY_NOT_FOUND", "There is no such delivery.")
        if reply[0] == "over":
            return DeliveryCancelled(0, _already_sent(before), _in_flight(before))
        if reply[1:]:
            await self._wait_for_attempts(key, fields)
        after = await self._reader.records(key, await self._reader.fields(key, tenant), chosen)
        return _result(before, after)

    async def _named(
        self, key: HistoryKey, fields: HistoryFields, stored: Sequence[StoredRecipient], recipients: Sequence[str]
    ) -> set[str]:
        """Return the ids of the recipients that are named by id, or by an address to which the delivery goes. Raises
        NotFound RECIPIENT_NOT_FOUND.
        """
        ids = {str(one.id) for one in stored}
        if ids.issuperset(recipients):
            return set(recipients)
        entries = [
            (parcel.channel, one) async for parcel in self._reader.parcels(key, fields) for one in parcel.entries
        ]
        found = {one: one for one in recipients if one in ids} | ids_of(recipients, entries)
        if not set(found).issuperset(recipients):
            raise NotFound("RECIPIENT_NOT_FOUND", "Not every recipient named is one of this delivery.", "recipient")
        return set(found.values())

    async def _run(self, key: HistoryKey, tenant: str, whole: int, entries: str) -> list[str]:
        """Run `lua/delivery/functions/cancel.lua`, as often as it has more to do than one call may."""
        reply = ["more"]
        while reply[0] == "more":
            reply = await self._store.run("cancel", key.shard, key.suffix, tenant, whole, entries)
        return reply

    async def _entries(
        self,
        key: HistoryKey,
        fields: HistoryFields,
        is_chosen: Callable[[str, Entry], bool],
        status: Status = Status.CANCELLED,
        reason: str = "",
    ) -> list[list[object]]:
        """Return [channel, parcel, item] of each chosen entry. `is_chosen`: of a channel and an entry in it."""
        return [
            [parcel.channel, parcel.number, entry.item(status, reason)]
            async for parcel in self._reader.parcels(key, fields)
            for entry in parcel.entries
            if is_chosen(parcel.channel, entry)
        ]

    async def _wait_for_attempts(self, key: HistoryKey, fields: HistoryFields) -> None:
        """Return when no cancelled attempt is under way any more, or after the timeout. Couriers run in other
        processes, so this polls.
        """
        deadline = asyncio.get_running_loop().time() + _OUTCOME_TIMEOUT
        while True:
            if not await self._attempts_under_way(key, fields) or asyncio.get_running_loop().time() > deadline:
                return
            await asyncio.sleep(_POLL_INTERVAL)

    async def _attempts_under_way(self, key: HistoryKey, fields: HistoryFields) -> bool:
        """Return whether a courier still has a parcel with cancelled entries."""
        parcels = self._reader.parcels(key, fields)
        ids = [parcel_task(key, parcel.channel, parcel.number) async for parcel in parcels]
        names = [KEYS["progress"].at(key.shard, task_id) for task_id in ids]
        flags = await asyncio.gather(*(self._store.read_hash(name, "cancel", "skip") for name in names))
        flagged = [task_id for task_id, found in zip(ids, flags, strict=True) if any(found)]
        if not flagged:
            return False
        return any(await self._store.command("HMGET", KEYS["taken"].at(key.shard), *flagged))

    async def cancel_by(self, tenant: str, selector: str, value: str) -> int:
        """Cancel the unfinished deliveries with this value; return how many this call cancelled. Raises Invalid
        UNKNOWN_FIELD, StoreError.

        Deliveries are cancelled a page at a time. A call that is cut off leaves the rest as it is: a repeat cancels
        the rest, and counts only that.
        """
        if selector not in _SELECTORS:
            raise Invalid("UNKNOWN_FIELD", f"Deliveries are cancelled by one of {', '.join(_SELECTORS)}.", selector)
        cancelled = 0
        for shard in range(self._store.shards):
            async for page in self._unfinished(shard, tenant):
                chosen = await self._matching(page, selector, value)
                cancelled += await self._cancel_page(shard, tenant, chosen)
        return cancelled

    async def leave_out(
        self, tenant: str, person: User, channels: Collection[str] | None, before: int, child: str = ""
    ) -> int:
        """Skip what was ordered before (Unix ms) and has not been sent to a person over these channels, as `opted_out`,
        or over all (None), as `person_blocked`; return in how many deliveries. What was ordered to an address of the
        person, without its id, is skipped, too. `child`: only what it gets as a guardian of this child. Raises
        StoreError.
        """
        named = id_text(person.id)
        own = {(channel, canonical(channel, to)) for channel, some in person.contacts.items() for to in some}

        def is_unwanted(channel: str, entry: Entry) -> bool:
            is_meant = str(entry.id) == named or (channel, canonical(channel, entry.address)) in own
            return is_meant and (channels is None or channel in channels)

        reason = Reason.PERSON_BLOCKED if channels is None else Reason.OPTED_OUT
        return await self._end_unsent(tenant, before, is_unwanted, Status.SKIPPED, reason, (named, child))

    async def leave_out_contacts(self, tenant: str, contacts: Mapping[str, Collection[str]], before: int) -> int:
        """Cancel, as `contact_removed`, what was ordered before (Unix ms) and has not been sent to these contacts, each
        a `channel:address`, by person; return in how many deliveries. Raises StoreError.
        """

        def is_removed(channel: str, entry: Entry) -> bool:
            return f"{channel}:{entry.address}" in contacts.get(str(entry.id), ())

        return await self._end_unsent(tenant, before, is_removed, Status.CANCELLED, Reason.CONTACT_REMOVED)

    async def _end_unsent(
        self,
        tenant: str,
        before: int,
        is_chosen: Callable[[str, Entry], bool],
        status: Status,
        reason: Reason,
        guardian: tuple[str, str] = ("", ""),
    ) -> int:
        """`guardian`: a person, and the child without which a delivery is left as it is; "" for any delivery."""

        async def end(key: HistoryKey) -> bool:
            fields = await self._reader.fields(key, tenant)
            entries = await self._entries(key, fields, is_chosen, status, reason)
            if not entries or (guardian[1] and not await self._is_guardian(key, fields, *guardian)):
                return False
            await self._run(key, tenant, 0, compact_json(entries))
            return True

        found = 0
        for shard in range(self._store.shards):
            async for page in self._unfinished(shard, tenant):
                earlier = [key for key, fields in page if int(fields["created"] or 0) <= before]
                found += sum(await asyncio.gather(*map(end, earlier)))
        return found

    async def _is_guardian(self, key: HistoryKey, fields: HistoryFields, person: str, child: str) -> bool:
        """Return whether a person gets a delivery about a child."""
        recipients = await self._reader.recipients(key, fields)
        own = [one for one in recipients if str(one.id) == person]
        return any(str(about.id) == child for one in own for about in one.children)

    async def _cancel_page(self, shard: int, tenant: str, keys: Sequence[HistoryKey]) -> int:
        """Cancel these deliveries of one shard; return how many were cancelled."""
        suffixes = [key.suffix for key in keys]
        calls = [suffixes[start : start + _CANCELS] for start in range(0, len(suffixes), _CANCELS)]
        replies = await self._run_each("cancel_scheduled", [(shard, (tenant, *call)) for call in calls])
        released = [suffix for _, *rest in replies for suffix in rest]
        states = await self._run_each("cancel", [(shard, (suffix, tenant, 1, "[]")) for suffix in released])
        for suffix, (state, *_) in zip(released, states, strict=True):
            if state == "more":
                await self._run(HistoryKey.of(shard, suffix), tenant, 1, "[]")
        return sum(int(done) for done, *_ in replies) + len([state for state, *_ in states if state != "over"])

    async def _run_each(self, name: str, calls: Sequence[tuple[int, Sequence[str | int]]]) -> list[list[Any]]:
        """Return the replies, once all calls have ended. Raises the first StoreError of them."""
        replies = await self._store.run_each(name, calls)
        if faults := [reply for reply in replies if isinstance(reply, StoreError)]:
            raise faults[0]
        return replies

    async def _unfinished(self, shard: int, tenant: str) -> AsyncIterator[list[tuple[HistoryKey, HistoryFields]]]:
        """Yield pages. All keys are read before the first page is yielded, because cancelling removes deliveries from
        the index.
        """
        keys = await self._unfinished_keys(shard, tenant)
        for start in range(0, len(keys), _PAGE):
            page = keys[start : start + _PAGE]
            found = await asyncio.gather(*(self._reader.read_fields(key, _SELECTED_BY) for key in page))
            yield [(key, fields) for key, fields in zip(page, found, strict=True) if fields["tenant"] == tenant]

    async def _unfinished_keys(self, shard: int, tenant: str) -> list[HistoryKey]:
        """Return the unfinished deliveries. A scan misses none of them when others end meanwhile, as ranks would."""
        index, cursor, found = KEYS["live"].at(shard, tenant), "0", dict[str, None]()
        while True:
            cursor, flat = await self._store.command("ZSCAN", index, cursor, "COUNT", _PAGE)
            found |= dict.fromkeys(flat[::2])  # one may come twice
            if str(cursor) == "0":
                return [HistoryKey.of(shard, suffix) for suffix in found]

    async def _matching(
        self, page: Sequence[tuple[HistoryKey, HistoryFields]], selector: str, value: str
    ) -> list[HistoryKey]:
        if selector != "user":
            return [key for key, fields in page if _matches(fields, selector, value)]
        return await self._of_people(page, {value})

    async def _of_people(self, page: Sequence[tuple[HistoryKey, HistoryFields]], people: set[str]) -> list[HistoryKey]:
        recipients = await asyncio.gather(*(self._reader.recipients(key, fields) for key, fields in page))
        return [
            key
            for (key, _), stored in zip(page, recipients, strict=True)
            if any(str(recipient.id) in people for recipient in stored)
        ]


def _matches(fields: HistoryFields, selector: str, value: str) -> bool:
    match selector:
        case "sender":
            return str(json.loads(fields["sender"] or "{}").get("id")) == value
        case "lane":
            return fields["lane"] == value
        case "kind_prefix":
            return (fields["kind"] or DEFAULT_KIND).startswith(value)
        case _:
            return value in json.loads(fields["tags"] or "[]")


def _already_sent(records: Sequence[RecipientRecord]) -> list[Id]:
    return [record.id for record in records if any(outcome.status in REACHED for outcome in record.outcomes.values())]


def _result(before: Sequence[RecipientRecord], after: Sequence[RecipientRecord]) -> DeliveryCancelled:
    already_sent, in_flight = _already_sent(after), _in_flight(after)
    excluded = {*already_sent, *in_flight}
    cancelled = sum(new.id not in excluded and _was_cancelled(old, new) for old, new in zip(before, after, strict=True))
    return DeliveryCancelled(cancelled, already_sent, in_flight)


def _in_flight(records: Sequence[RecipientRecord]) -> list[Id]:
    """Return the recipients that may have been sent to, while nothing shows that they were."""
    sent = set(_already_sent(records))
    return [record.id for record in records if record.id not in sent and _may_have_been_sent(record)]


def _may_have_been_sent(record: RecipientRecord) -> bool:
    return any(outcome.status in OPEN or outcome.status is Status.UNKNOWN for outcome in record.outcomes.values())


def _was_cancelled(old: RecipientRecord, new: RecipientRecord) -> bool:
    return any(
        outcome.status is Status.CANCELLED and old.outcomes[channel].status in OPEN
        for channel, outcome in new.outcomes.items()
    )
