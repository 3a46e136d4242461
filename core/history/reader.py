"""Reads what is kept of deliveries, in few round trips, and says nothing of other tenants' deliveries.

A store: no rules here. The rules of what was never written stand in `core.history.projection`.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import count

from core.errors import NotFound
from core.history import projection as reading
from core.history.parcels import PAGE, Entry, Leg, Person, load_parcel, load_people, load_plan
from core.history.projection import Facts
from core.model.history import History, RecipientRecord
from core.model.history_key import HistoryKey
from core.redis.keys import KEYS
from core.redis.store import Store

# Fields of one HMGET.
_AT_ONCE = 5000


class HistoryReader:
    """Histories as they stand in Redis."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def fields(self, key: HistoryKey, names: Sequence[str]) -> dict[str, str | None]:
        """Fields of the history's hash; None where there is none."""
        values = await self._store.command("HMGET", KEYS["history"].at(key.shard, key.suffix), *names)
        return dict(zip(names, values, strict=True))

    async def facts(self, key: HistoryKey, tenant: str) -> Facts:
        """Raises NotFound HISTORY_NOT_FOUND, also for another tenant's."""
        facts = await self.fields(key, reading.FACTS) if key.shard < self._store.shards else {"tenant": None}
        return _of_tenant(facts, tenant)

    async def reserved(self, key: HistoryKey, tenant: str) -> bool:
        """Whether the key was handed out to this tenant and has no delivery yet."""
        return bool(await self._store.command("GET", KEYS["reserved"].at(key.shard, key.suffix)) == tenant)

    async def summary(self, key: HistoryKey, tenant: str) -> History:
        """The history without its recipients. Raises NotFound."""
        facts, _ = await self._snapshot(key, tenant, await self._lasting(key, tenant), ())
        return reading.assemble(key, facts, facts, (), None)

    async def page(self, key: HistoryKey, tenant: str, start: int, limit: int) -> History:
        """The history with `limit` recipients from the `start`-th, all of one moment. Raises NotFound."""
        lasting = await self._lasting(key, tenant)
        people = await self.people(key, lasting, start, limit)
        facts, stored = await self._snapshot(key, tenant, lasting, people)
        end = start + len(people)
        cursor = str(end) if people and end < int(facts["recipients"] or 0) else None
        return reading.assemble(key, facts, facts, reading.recipient_records(people, facts, stored), cursor)

    async def _lasting(self, key: HistoryKey, tenant: str) -> Facts:
        """What never changes in a history, and tells what else there is to read."""
        names = ("tenant", "plan", "recipients")
        facts = await self.fields(key, names) if key.shard < self._store.shards else {"tenant": None}
        return _of_tenant(facts, tenant)

    async def _snapshot(
        self, key: HistoryKey, tenant: str, lasting: Facts, people: Sequence[Person]
    ) -> tuple[Facts, Facts]:
        """Facts and counters, and the outcomes of these people, in one step: between two, a courier may report."""
        channels = reading.channels_of(lasting)
        named = [*reading.FACTS, *reading.counter_fields(channels)]
        wanted = reading.wanted_outcomes(people, channels)
        values = await self._store.run("read_history", key.shard, key.suffix, len(named), *named, *wanted)
        facts = dict(zip(named, values, strict=False))
        return _of_tenant(facts, tenant), dict(zip(wanted, values[len(named) :], strict=True))

    async def people(self, key: HistoryKey, facts: Facts, start: int = 0, limit: int = 1 << 30) -> list[Person]:
        """Recipients `start` to `start + limit` as kept."""
        total = int(facts["recipients"] or 0)
        end = min(total, start + limit)
        pages = range(start // PAGE, -(-end // PAGE)) if start < end else range(0)
        texts = await self.fields(key, [f"people:{page}" for page in pages]) if pages else {}
        found = [person for page in pages for person in load_people(texts[f"people:{page}"] or "[]", page)]
        return [person for person in found if start <= person.number < end]

    async def outcomes(self, key: HistoryKey, wanted: Sequence[str]) -> dict[str, str | None]:
        """Stored outcomes by field."""
        name = KEYS["outcomes"].at(key.shard, key.suffix)
        slices = [wanted[start : start + _AT_ONCE] for start in range(0, len(wanted), _AT_ONCE)]
        values = await asyncio.gather(*(self._store.command("HMGET", name, *fields) for fields in slices))
        return dict(zip(wanted, (value for part in values for value in part), strict=True))

    async def records(self, key: HistoryKey, facts: Facts, people: Sequence[Person]) -> list[RecipientRecord]:
        """What became of these people."""
        channels = reading.channels_of(facts)
        stored = await self.outcomes(key, reading.wanted_outcomes(people, channels))
        return reading.recipient_records(people, facts, stored)

    async def parcels(self, key: HistoryKey, facts: Facts) -> AsyncIterator[tuple[Leg, int, int, list[Entry]]]:
        """Every parcel as it was cut: its channel's leg, its number, its attempt group, its entries."""
        for leg in load_plan(facts["plan"] or ""):
            names = [f"parcel:{leg.channel}:{n}" for n in range(len(leg.parcels))]
            texts = await self.fields(key, names) if names else {}
            for n, name in enumerate(names):
                group, entries = load_parcel(texts[name] or "[0,[]]")
                yield leg, n, group, entries

    async def tried_again(self, key: HistoryKey, channel: str, parcel: int) -> set[str]:
        """Fields of the outcomes that a person had tried again after this parcel was cut: a later one has them."""
        (first,) = (await self.fields(key, [f"retried:{channel}"])).values()
        found: set[str] = set()
        for n in count(max(int(first), parcel + 1)) if first else ():
            (text,) = (await self.fields(key, [f"parcel:{channel}:{n}"])).values()
            if text is None:
                break
            found |= {entry.field(channel) for entry in load_parcel(text)[1]}
        return found


def _of_tenant(facts: Facts, tenant: str) -> Facts:
    if facts["tenant"] != tenant:
        raise NotFound("HISTORY_NOT_FOUND", "There is no such delivery.")
    return facts
