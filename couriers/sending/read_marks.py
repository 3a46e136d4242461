"""Read marks of a provider, from the courier's own connection to the histories (D-37).

A courier that implements `couriers.sending.interface.ReadMarkSource` names the dialog of each message it sends and
emits the marks that its provider reports. This module keeps both apart from the attempts: a fault here delays no
message.

Used by `couriers.sending.runtime` (marks) and `couriers.sending.parcels.parcel_executor` (messages sent).
"""

import asyncio
import logging
from collections.abc import Sequence

from core.deliveries.delivery_reports import DeliveryReports, EntryName
from core.deliveries.histories.parcels import Entry
from core.deliveries.references import MessageReferences, Reference
from core.errors import StoreError
from core.redis.store import Store
from couriers.sending.interface import Courier, ReadMark, ReadMarkSource, Sent
from couriers.sending.parcels.parcel import Parcel

log = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0


class ReadMarks:
    """One per process."""

    def __init__(self, store: Store, reports: DeliveryReports, courier: Courier) -> None:
        self._courier = courier
        self._references = MessageReferences(store, reports, courier.channel, courier.account)

    async def note(self, parcel: Parcel, sent: Sequence[tuple[Entry, Sent]]) -> None:
        """Note the messages whose dialog reports reading. If the store fails, they never become `read`."""
        references = [
            Reference(outcome.peer, outcome.number, outcome.reference, _name(parcel, entry))
            for entry, outcome in sent
            if outcome.peer and outcome.number
        ]
        try:
            await self._references.note(references)
        except StoreError as fault:
            log.warning("%s: %d messages not noted for read marks: %s", self._courier.channel, len(references), fault)

    async def run(self) -> None:
        """Record the marks until cancelled. Returns at once if the courier has none."""
        if not isinstance(self._courier, ReadMarkSource):
            return
        while True:
            try:
                async for mark in self._courier.read_marks():
                    await self._record(mark)
                return
            except Exception:  # whatever a courier raises here, its messages go on
                log.exception("%s: read marks failed", self._courier.channel)
                await asyncio.sleep(_RETRY_SECONDS)

    async def _record(self, mark: ReadMark) -> None:
        while True:
            try:
                return await self._references.mark_read(mark.peer, mark.number)
            except StoreError as fault:
                log.warning("%s: read mark not recorded yet: %s", self._courier.channel, fault)
                await asyncio.sleep(_RETRY_SECONDS)


def _name(parcel: Parcel, entry: Entry) -> EntryName:
    key = parcel.history_key
    return EntryName(key.shard, key.suffix, parcel.label, parcel.number, *entry[:4])
