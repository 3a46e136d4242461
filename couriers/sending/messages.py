"""Makes the messages of a parcel: what the channel shows of the delivery, for each entry.

Called by `couriers.sending.parcels.parcel_executor`.
"""

from collections.abc import Sequence

from core.deliveries.histories.parcels import Entry
from couriers.sending.content.content_for_channel import present
from couriers.sending.interface import Message, WritesAsText
from couriers.sending.parcels.parcel import Parcel
from couriers.sending.parcels.parcel_services import ParcelServices


class Messages:
    """Of one parcel. `presented`: what the courier gets, and what its channel does not show."""

    def __init__(self, services: ParcelServices, parcel: Parcel, tenant: str) -> None:
        self._services = services
        self._tenant = tenant
        self._parcel = parcel
        self._channel = services.courier.channel
        self._seed = f"{parcel.history_key.id}:{self._channel}:{parcel.group}"
        courier = services.courier
        content = parcel.content
        self._has_choices = content is not None and isinstance(courier, WritesAsText)
        as_text = courier.as_text(content) if content and isinstance(courier, WritesAsText) else ()
        self.presented = present(parcel.text, content, courier.shows, as_text)

    async def of(self, entries: Sequence[Entry]) -> list[Message]:
        """Return the messages of an attempt. A number that the recipients write from now on answers them; a delivery
        with only a text leaves earlier choices as they are. Raises StoreError.
        """
        if self._has_choices:
            addresses = [entry.address for entry in entries]
            await self._services.choices.remember(self._tenant, self._channel, addresses, self.presented.choices)
        return [await self._message(entry) for entry in entries]

    async def _message(self, entry: Entry) -> Message:
        report_url = await self._report_url(entry) if self._services.options.report_url else ""
        text, content, *_ = self.presented
        return Message(entry.address, text, self._seed, f"{entry.id!r}:{entry.contact}", report_url, content)

    async def _report_url(self, entry: Entry) -> str:
        base_url = self._services.options.report_url
        token = await self._services.delivery_reports.token(
            self._parcel.history_key, self._channel, self._parcel.number, entry
        )
        return f"{base_url}{'&' if '?' in base_url else '?'}token={token}"
