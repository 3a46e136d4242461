"""A new attempt for the failed or the unknown of a delivery, in the same history (D-40).

The new attempts are a new attempt group: their random ids differ from the first ones, so the provider takes them for
new messages. That is what a person asks for who repeats an `unknown`.

Before: `core.history.deliveries`. After: `lua/delivery/retry.lua`, which queues the new parcels.
"""

from collections import defaultdict
from collections.abc import Sequence

from core.errors import Conflict, Invalid, NotFound
from core.history.channels import Channels
from core.history.parcels import Entry, cut, dump_parcel
from core.history.projection import Facts
from core.history.reader import HistoryReader
from core.model.compact_json import compact_json
from core.model.history_key import HistoryKey
from core.model.states import Status
from core.redis.store import Store

RETRIABLE = (Status.FAILED, Status.UNKNOWN)


class Retrier:
    """One per process."""

    def __init__(self, store: Store, reader: HistoryReader, channels: Channels) -> None:
        self._store = store
        self._reader = reader
        self._channels = channels

    async def retry(self, key: HistoryKey, tenant: str, statuses: Sequence[Status]) -> int:
        """How many entries were queued again. Raises NotFound, Invalid STATUS_NOT_RETRIABLE, Conflict NOT_RELEASED or
        CANCELLED.
        """
        if not statuses or any(status not in RETRIABLE for status in statuses):
            raise Invalid("STATUS_NOT_RETRIABLE", "Only failed and unknown can be tried again.", "statuses")
        while True:
            facts = await self._reader.facts(key, tenant)
            legs = await self._legs(key, facts, set(statuses))
            if not legs:
                return 0
            reply = await self._store.run(
                "retry", key.shard, key.suffix, tenant, facts["version"] or 0, compact_json(legs)
            )
            if reply[0] != "changed":
                return _queued(reply)

    async def _legs(self, key: HistoryKey, facts: Facts, statuses: set[Status]) -> list[list[object]]:
        chosen, groups = await self._chosen(key, facts, statuses)
        sizes = (await self._channels.read()).parcel_sizes
        return [
            [channel, dump_parcel(groups[channel] + 1, part), [entry.item(Status.QUEUED) for entry in part]]
            for channel, entries in chosen.items()
            for part in cut(entries, sizes[channel])
        ]

    async def _chosen(
        self, key: HistoryKey, facts: Facts, statuses: set[Status]
    ) -> tuple[dict[str, list[Entry]], dict[str, int]]:
        """Entries with one of the statuses by channel, each once, and the latest attempt group of each channel."""
        chosen: dict[str, dict[str, Entry]] = defaultdict(dict)
        groups: dict[str, int] = defaultdict(int)
        async for leg, _, group, entries in self._reader.parcels(key, facts):
            groups[leg.channel] = max(groups[leg.channel], group)
            stored = await self._reader.outcomes(key, [entry.field(leg.channel) for entry in entries])
            for entry in entries:
                if (stored[entry.field(leg.channel)] or "").split("|")[0] in statuses:
                    chosen[leg.channel][entry.field(leg.channel)] = entry
        return {channel: list(entries.values()) for channel, entries in chosen.items()}, groups


def _queued(reply: list[str]) -> int:
    match reply[0]:
        case "retried":
            return int(reply[1])
        case "missing":
            raise NotFound("HISTORY_NOT_FOUND", "There is no such delivery.")
        case "scheduled":
            raise Conflict("NOT_RELEASED", "The delivery has not been released; there is nothing to try again.")
        case _:
            raise Conflict("CANCELLED", "The delivery was cancelled.")
