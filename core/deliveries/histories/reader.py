"""Reads histories from Redis in few round trips. Another tenant's delivery is not found.

No rules here: what follows from the stored fields is in `core.deliveries.histories.projection`.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import count

from core.deliveries.histories import projection
from core.deliveries.histories.encoding import PAGE, ChannelPlan, StoredRecipient, load_plan, load_recipients
from core.deliveries.histories.parcels import Entry, StoredParcel, load_parcel, parcel_task
from core.deliveries.histories.projection import HistoryFields
from core.deliveries.histories.recipient_records import recipient_records
from core.errors import NotFound
from core.model.history import History, RecipientRecord
from core.model.history_key import HistoryKey, typed_id
from core.model.question import counter_fields, load_question, member_field, reached_field, row_field
from core.redis.keys import KEYS
from core.redis.store import Store

# Fields of one HMGET.
_FIELDS_AT_ONCE = 5000


class HistoryReader:
    """One per process."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def read_fields(self, key: HistoryKey, names: Sequence[str]) -> dict[str, str | None]:
        """Return these fields of the history's hash, of whatever tenant; None for a missing one."""
        values = await self._store.command("HMGET", KEYS["history"].at(key.shard, key.suffix), *names)
        return dict(zip(names, values, strict=True))

    async def field_names(self, key: HistoryKey) -> Sequence[str]:
        """Return the names of all fields of the history's hash, of whatever tenant."""
        names: Sequence[str] = await self._store.command("HKEYS", KEYS["history"].at(key.shard, key.suffix))
        return names

    async def fields(self, key: HistoryKey, tenant: str) -> HistoryFields:
        """Return `projection.FIELDS` of a delivery. Raises NotFound HISTORY_NOT_FOUND."""
        return await self._fields_of_tenant(key, tenant, projection.FIELDS)

    async def _fields_of_tenant(self, key: HistoryKey, tenant: str, names: Sequence[str]) -> HistoryFields:
        fields = await self.read_fields(key, names) if key.shard < self._store.shards else {"tenant": None}
        return _checked(fields, tenant)

    async def is_reserved(self, key: HistoryKey, tenant: str) -> bool:
        """Return whether the key was reserved by this tenant and has no delivery yet."""
        return bool(await self._store.command("GET", KEYS["reserved"].at(key.shard, key.suffix)) == tenant)

    async def entries_of(self, key: HistoryKey, plan: ChannelPlan, number: int) -> tuple[int, Sequence[Entry]]:
        """Return the parcel of a channel that has the recipient with this number, and its entries, none without a
        contact there. The parcels are in the order of the recipients, up to those that a retry has added; with the
        strategy `first` some are empty, and then all are read.
        """
        retried = f"retried:{plan.channel}"
        added = (await self.read_fields(key, [retried]))[retried]
        first, last = 0, int(added or len(plan.parcels)) - 1
        rest = range(last + 1)
        while first <= last:
            middle = (first + last) // 2
            entries = await self._entries(key, plan.channel, middle)
            if not entries:
                break
            if entries[-1].number < number:
                first = middle + 1
            elif entries[0].number > number:
                last = middle - 1
            else:
                rest = range(middle, middle + 1)
                break
        for parcel in rest if first <= last else ():
            own = [one for one in await self._entries(key, plan.channel, parcel) if one.number == number]
            if own:
                return parcel, own
        return 0, ()

    async def _entries(self, key: HistoryKey, channel: str, parcel: int) -> Sequence[Entry]:
        name = f"parcel:{channel}:{parcel}"
        stored = (await self.read_fields(key, [name]))[name]
        return load_parcel(stored).entries if stored else ()

    async def summary(self, key: HistoryKey, tenant: str) -> History:
        """Return the history without its recipients. Raises NotFound HISTORY_NOT_FOUND."""
        fields, _ = await self._snapshot(key, tenant, await self._immutable_fields(key, tenant), ())
        return projection.assemble(key, fields, fields, (), None)

    async def page(self, key: HistoryKey, tenant: str, start: int, limit: int) -> History:
        """Return the history with `limit` recipients from the `start`-th, from one atomic read. Raises NotFound
        HISTORY_NOT_FOUND.
        """
        immutable = await self._immutable_fields(key, tenant)
        recipients = await self.recipients(key, immutable, start, limit) or await self.members(
            key, immutable, start, limit
        )
        under_way = await self._under_way(key, immutable)
        fields, outcomes = await self._snapshot(key, tenant, immutable, recipients)
        if projection.is_being_cancelled(fields) and not projection.is_being_cancelled(immutable):
            return await self.page(key, tenant, start, limit)
        end = start + len(recipients)
        cursor = str(end) if recipients and end < int(fields["recipients"] or 0) else None
        records = recipient_records(recipients, fields, outcomes, self._store.now(), under_way)
        return projection.assemble(key, fields, fields, records, cursor)

    async def _immutable_fields(self, key: HistoryKey, tenant: str) -> HistoryFields:
        """Return the fields that show which other fields exist. Of the plan only the channels are used; they never
        change."""
        return await self._fields_of_tenant(
            key,
            tenant,
            ("tenant", "plan", "recipients", "state", "finished", "answer", "answers_reminders", "answers_members"),
        )

    async def _under_way(self, key: HistoryKey, fields: HistoryFields) -> set[str]:
        """Return the outcome fields of the entries that workers still have of a cancelled delivery."""
        if not projection.is_being_cancelled(fields):
            return set()
        plans = load_plan(fields["plan"] or "")
        parcels = [(plan.channel, number) for plan in plans for number in range(len(plan.parcels))]
        tasks = [KEYS["task"].at(key.shard, parcel_task(key, *parcel)) for parcel in parcels]
        alive = await asyncio.gather(*(self._store.command("EXISTS", task) for task in tasks))
        held = {parcel for parcel, is_alive in zip(parcels, alive, strict=True) if is_alive}
        if not held:
            return set()
        latest = {  # an entry that was retried is in the later parcel
            entry.field(parcel.channel): (parcel.channel, parcel.number)
            async for parcel in self.parcels(key, fields)
            for entry in parcel.entries
        }
        return {field for field, parcel in latest.items() if parcel in held}

    async def _snapshot(
        self, key: HistoryKey, tenant: str, immutable: HistoryFields, recipients: Sequence[StoredRecipient]
    ) -> tuple[HistoryFields, HistoryFields]:
        """Return fields with counters, and the outcomes of these recipients, in one atomic read: a courier may report
        between two reads.
        """
        channels = projection.channels_of(immutable)
        answers = [
            *counter_fields(load_question(immutable["answer"])),
            *projection.answer_fields(recipients, immutable),
        ]
        names = [*projection.FIELDS, *projection.counter_fields(channels), *answers]
        outcome_names = projection.outcome_fields(recipients, projection.labels_of(immutable))
        values = await self._store.run("read_history", key.shard, key.suffix, len(names), *names, *outcome_names)
        fields = dict(zip(names, values, strict=False))
        return _checked(fields, tenant), dict(zip(outcome_names, values[len(names) :], strict=True))

    async def recipients(
        self, key: HistoryKey, fields: HistoryFields, start: int = 0, limit: int = 1 << 30
    ) -> list[StoredRecipient]:
        """Return the recipients `start` to `start + limit` as stored."""
        total = int(fields["recipients"] or 0)
        end = min(total, start + limit)
        pages = range(start // PAGE, -(-end // PAGE)) if start < end else range(0)
        texts = await self.read_fields(key, [f"people:{page}" for page in pages]) if pages else {}
        found = [one for page in pages for one in load_recipients(texts[f"people:{page}"] or "[]", page)]
        return [recipient for recipient in found if start <= recipient.number < end]

    async def members(
        self, key: HistoryKey, fields: HistoryFields, start: int = 0, limit: int = 1 << 30
    ) -> list[StoredRecipient]:
        """Return the members of group chats who have answered, and the children that guardians are asked about, who are
        no recipients themselves, with numbers from
        `start` to `start + limit`: those behind the recipients.
        """
        total, members = int(fields["recipients"] or 0), int(fields["answers_members"] or 0)
        numbers = range(max(total, start), min(total + members, start + limit))
        names = [name for number in numbers for name in (member_field(number), reached_field(number))]
        stored = await self.read_fields(key, names) if names else {}
        nothing = [0] * len(projection.channels_of(fields))
        ids = {number: stored[member_field(number)] for number in numbers}
        reached = {number for number in numbers if int(stored[reached_field(number)] or 0) > 0}
        return [
            StoredRecipient(number, typed_id(text), nothing, is_reached=number in reached)
            for number, text in ids.items()
            if text
        ]

    async def outcomes(self, key: HistoryKey, names: Sequence[str]) -> HistoryFields:
        hash_key = KEYS["outcomes"].at(key.shard, key.suffix)
        slices = [names[start : start + _FIELDS_AT_ONCE] for start in range(0, len(names), _FIELDS_AT_ONCE)]
        values = await asyncio.gather(*(self._store.command("HMGET", hash_key, *part) for part in slices))
        return dict(zip(names, (value for part in values for value in part), strict=True))

    async def records(
        self, key: HistoryKey, fields: HistoryFields, recipients: Sequence[StoredRecipient]
    ) -> list[RecipientRecord]:
        names = projection.outcome_fields(recipients, projection.labels_of(fields))
        under_way = await self._under_way(key, fields)
        answers = await self.answers(key, fields, recipients)
        outcomes = await self.outcomes(key, names)
        return recipient_records(recipients, {**fields, **answers}, outcomes, self._store.now(), under_way)

    async def answers(
        self, key: HistoryKey, fields: HistoryFields, recipients: Sequence[StoredRecipient]
    ) -> HistoryFields:
        """Return the rows of the answers of these recipients, by field."""
        names = projection.answer_fields(recipients, fields)
        slices = [names[start : start + _FIELDS_AT_ONCE] for start in range(0, len(names), _FIELDS_AT_ONCE)]
        found = await asyncio.gather(*(self.read_fields(key, part) for part in slices))
        return {name: text for part in found for name, text in part.items()}

    async def answered(self, key: HistoryKey, numbers: Iterable[int]) -> set[int]:
        """Return which of the recipients with these numbers have answered the question of the delivery."""
        names = {row_field(number): number for number in numbers}
        rows = await self.read_fields(key, list(names)) if names else {}
        return {names[name] for name, row in rows.items() if row}

    async def parcels(self, key: HistoryKey, fields: HistoryFields) -> AsyncIterator[StoredParcel]:
        """Emit every parcel of the delivery."""
        for plan in load_plan(fields["plan"] or ""):
            names = [f"parcel:{plan.channel}:{number}" for number in range(len(plan.parcels))]
            texts = await self.read_fields(key, names) if names else {}
            for number, name in enumerate(names):
                yield StoredParcel(plan.channel, number, *load_parcel(texts[name] or "[0,[]]"))

    async def parcel(self, key: HistoryKey, label: str, number: int) -> StoredParcel | None:
        """Return a parcel of a channel or of a wave of reminders; None if there is none."""
        (text,) = (await self.read_fields(key, [f"parcel:{label}:{number}"])).values()
        return StoredParcel(label, number, *load_parcel(text)) if text else None

    async def retried_entries(self, key: HistoryKey, channel: str, parcel: int) -> set[str]:
        """Return the outcome fields of the entries that were retried after this parcel was cut: a later parcel has
        them.
        """
        (first,) = (await self.read_fields(key, [f"retried:{channel}"])).values()
        found: set[str] = set()
        for number in count(max(int(first), parcel + 1)) if first else ():
            (text,) = (await self.read_fields(key, [f"parcel:{channel}:{number}"])).values()
            if text is None:
                break
            found |= {entry.field(channel) for entry in load_parcel(text)[1]}
        return found


def _checked(fields: HistoryFields, tenant: str) -> HistoryFields:
    if fields["tenant"] != tenant:
        raise NotFound("HISTORY_NOT_FOUND", "There is no such delivery.")
    return fields
