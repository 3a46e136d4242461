"""Retry the failed or unknown entries of a delivery, in the same history (D-40).

The retried entries form a new attempt group. Their random ids differ from the first ones, so the provider accepts them
as new messages: this is what a person wants when retrying an `unknown`. With the strategy `first` they go through the
channels in order again.

Called by `core.deliveries.deliveries`; `lua/delivery/functions/retry.lua` queues the new parcels.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from core.deliveries.channels import Channels
from core.deliveries.histories.parcels import Entry, cut, cut_aligned, dump_parcel, ids_of
from core.deliveries.histories.projection import HistoryFields, channels_of
from core.deliveries.histories.reader import HistoryReader
from core.errors import Conflict, Invalid, NotFound
from core.model.delivery import Contact, Strategy
from core.model.history_key import HistoryKey
from core.model.json_form import compact_json
from core.model.states import OPEN, REACHED, Status
from core.redis.store import Store

RETRIABLE = (Status.FAILED, Status.UNKNOWN)

Accept = Callable[[Sequence[Contact]], Awaitable[Sequence[bool]]]
"""Returns for each contact whether it may still be written to."""


class _KnownEntry(NamedTuple):
    entry: Entry
    status: Status


class Retrier:
    """One per process."""

    def __init__(self, store: Store, reader: HistoryReader, channels: Channels) -> None:
        self._store = store
        self._reader = reader
        self._channels = channels

    async def retry(
        self,
        key: HistoryKey,
        tenant: str,
        statuses: Sequence[Status],
        recipients: Sequence[str] = (),
        accept: Accept | None = None,
    ) -> int:
        """Queue the entries with one of these statuses again, without those that `accept` refuses; return how many.
        `recipients`: ids or addresses; none for all.

        Raises NotFound HISTORY_NOT_FOUND, Invalid STATUS_NOT_RETRIABLE, Conflict NOT_RELEASED or CANCELLED.
        """
        if not statuses or any(status not in RETRIABLE for status in statuses):
            raise Invalid("STATUS_NOT_RETRIABLE", "Only failed and unknown can be tried again.", "statuses")
        while True:
            fields = await self._reader.fields(key, tenant)
            parcels = await self._new_parcels(key, fields, set(statuses), set(recipients), accept)
            if not parcels:
                return 0
            version = fields["version"] or 0
            reply = await self._store.run("retry", key.shard, key.suffix, tenant, version, compact_json(parcels))
            if reply[0] != "changed":
                return _queued(reply)

    async def _new_parcels(
        self, key: HistoryKey, fields: HistoryFields, statuses: set[Status], recipients: set[str], accept: Accept | None
    ) -> list[list[object]]:
        """Return [channel, encoded parcel, [item, …]] for `lua/delivery/functions/retry.lua`."""
        known, groups = await self._known(key, fields)
        if recipients:
            named = ids_of(
                recipients, [(channel, one.entry) for channel, rows in known.items() for one in rows]
            ).values()
            known = {channel: [one for one in rows if str(one.entry.id) in named] for channel, rows in known.items()}
        sizes, is_personal = (await self._channels.read()).parcel_sizes, fields["personal"] is not None
        if fields["strategy"] == Strategy.FIRST:
            again = _once_more(known, statuses, is_over=fields["finished"] is not None)
            return _in_order(await _accepted(again, accept), groups, sizes, is_personal=is_personal)
        found = {channel: [one.entry for one in rows if one.status in statuses] for channel, rows in known.items()}
        chosen = await _accepted(found, accept)
        return [
            _parcel(channel, groups[channel], part, is_personal=is_personal)
            for channel, entries in chosen.items()
            for part in cut(entries, sizes[channel])
        ]

    async def _known(
        self, key: HistoryKey, fields: HistoryFields
    ) -> tuple[dict[str, list[_KnownEntry]], dict[str, int]]:
        """Return by channel the entries, each once, with their stored statuses, and the latest attempt group."""
        known: dict[str, dict[str, _KnownEntry]] = {channel: {} for channel in channels_of(fields)}
        groups: dict[str, int] = defaultdict(int)
        async for parcel in self._reader.parcels(key, fields):
            channel = parcel.channel
            groups[channel] = max(groups[channel], parcel.group)
            stored = await self._reader.outcomes(key, [entry.field(channel) for entry in parcel.entries])
            for entry in parcel.entries:
                status = Status((stored[entry.field(channel)] or Status.QUEUED).split("|")[0])
                known[channel][entry.field(channel)] = _KnownEntry(entry, status)
        return {channel: list(entries.values()) for channel, entries in known.items()}, groups


async def _accepted(chosen: Mapping[str, Sequence[Entry]], accept: Accept | None) -> Mapping[str, Sequence[Entry]]:
    if accept is None:
        return chosen
    places = [(channel, one) for channel, entries in chosen.items() for one in entries]
    are_accepted = await accept([(one.id, channel, one.address) for channel, one in places])
    accepted: dict[str, list[Entry]] = {channel: [] for channel in chosen}
    for (channel, one), is_accepted in zip(places, are_accepted, strict=True):
        if is_accepted:
            accepted[channel].append(one)
    return accepted


def _once_more(
    known: Mapping[str, Sequence[_KnownEntry]], statuses: set[Status], *, is_over: bool
) -> dict[str, list[Entry]]:
    """Return, for the strategy `first`, the entries of recipients that no channel has reached and that no channel may
    still reach. What was skipped for an earlier channel comes again behind it.
    """
    of_recipient: dict[int, set[Status]] = defaultdict(set)
    for rows in known.values():
        for entry, status in rows:
            of_recipient[entry.number].add(status)
    barred = REACHED | {Status.UNKNOWN} - statuses | (frozenset() if is_over else OPEN)
    chosen = {number for number, found in of_recipient.items() if found & statuses and not found & barred}
    wanted = {*statuses, Status.SKIPPED}
    return {
        channel: [entry for entry, status in rows if entry.number in chosen and status in wanted]
        for channel, rows in known.items()
    }


def _in_order(
    chosen: Mapping[str, Sequence[Entry]], groups: Mapping[str, int], sizes: Mapping[str, int], *, is_personal: bool
) -> list[list[object]]:
    """Return a parcel for each channel under each number, empty ones included (`histories/encoding.py`)."""
    aligned = cut_aligned(chosen, sizes[next(iter(chosen))])
    group = max(groups.values(), default=0)
    return [
        _parcel(channel, group, part, is_personal=is_personal) for channel, parts in aligned.items() for part in parts
    ]


def _parcel(channel: str, group: int, entries: Sequence[Entry], *, is_personal: bool) -> list[object]:
    rows = [entry if entry.hours else entry[:-1] for entry in entries]
    encoded = dump_parcel(group + 1, rows, is_personal=is_personal)
    return [channel, encoded, [entry.item(Status.QUEUED) for entry in entries]]


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
