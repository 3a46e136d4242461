"""Retry the failed or unknown entries of a delivery, in the same history (D-40).

The retried entries form a new attempt group. Their random ids differ from the first ones, so the provider accepts them
as new messages: this is what a person wants when retrying an `unknown`.

Called by `core.history.deliveries`; `lua/delivery/retry.lua` queues the new parcels.
"""

from collections import defaultdict
from collections.abc import Sequence

from core.errors import Conflict, Invalid, NotFound
from core.history.channels import Channels
from core.history.parcels import Entry, cut, dump_parcel
from core.history.projection import HistoryFields
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
        """Queue the entries with one of these statuses again; return how many. Raises NotFound HISTORY_NOT_FOUND,
        Invalid STATUS_NOT_RETRIABLE, Conflict NOT_RELEASED or CANCELLED.
        """
        if not statuses or any(status not in RETRIABLE for status in statuses):
            raise Invalid("STATUS_NOT_RETRIABLE", "Only failed and unknown can be tried again.", "statuses")
        while True:
            fields = await self._reader.fields(key, tenant)
            parcels = await self._new_parcels(key, fields, set(statuses))
            if not parcels:
                return 0
            version = fields["version"] or 0
            reply = await self._store.run("retry", key.shard, key.suffix, tenant, version, compact_json(parcels))
            if reply[0] != "changed":
                return _queued(reply)

    async def _new_parcels(self, key: HistoryKey, fields: HistoryFields, statuses: set[Status]) -> list[list[object]]:
        """[channel, encoded parcel, [item, …]] for `lua/delivery/retry.lua`."""
        chosen, groups = await self._chosen(key, fields, statuses)
        sizes = (await self._channels.read()).parcel_sizes
        return [
            [channel, dump_parcel(groups[channel] + 1, part), [entry.item(Status.QUEUED) for entry in part]]
            for channel, entries in chosen.items()
            for part in cut(entries, sizes[channel])
        ]

    async def _chosen(
        self, key: HistoryKey, fields: HistoryFields, statuses: set[Status]
    ) -> tuple[dict[str, list[Entry]], dict[str, int]]:
        """By channel: the entries with one of the statuses, each once, and the latest attempt group."""
        chosen: dict[str, dict[str, Entry]] = defaultdict(dict)
        groups: dict[str, int] = defaultdict(int)
        async for parcel in self._reader.parcels(key, fields):
            channel = parcel.channel
            groups[channel] = max(groups[channel], parcel.group)
            stored = await self._reader.outcomes(key, [entry.field(channel) for entry in parcel.entries])
            for entry in parcel.entries:
                if (stored[entry.field(channel)] or "").split("|")[0] in statuses:
                    chosen[channel][entry.field(channel)] = entry
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
