"""Read marks of a provider, from the courier's own connection to the histories (D-37), and what people write to the
account, to the threads (R-31).

A courier that implements `couriers.sending.interface.ReadMarkSource` names the dialog of each message it sends and
emits the marks that its provider reports. This module keeps both apart from the attempts: a fault here delays no
message.

Used by `couriers.sending.runtime` (marks) and `couriers.sending.parcel_executor` (messages sent).
"""

import asyncio
import logging
from collections.abc import Sequence
from datetime import timedelta

from core.answers import AnswerNumbers
from core.deliveries.delivery_reports import DeliveryReports, EntryName, MessageReferences, Reference
from core.deliveries.received import Choices, ReceivedMessages
from core.directory import Directory
from core.directory.preferences import OptOuts
from core.errors import Invalid, StoreError
from core.model.clock import from_ms, in_ms
from core.queue import QueueClient
from core.redis.store import Store
from core.updates.events import Event, Events, replies_tube
from couriers.sending.interface import Courier, ReadMark, ReadMarkSource, ReceivedText, Sent, TextSource

log = logging.getLogger(__name__)

_WEEK = timedelta(days=7)

_RETRY_SECONDS = 1.0


class ReadMarks:
    """One per process."""

    def __init__(self, store: Store, reports: DeliveryReports, courier: Courier) -> None:
        self._courier = courier
        self._references = MessageReferences(store, reports, courier.channel, courier.account)

    async def note(self, sent: Sequence[tuple[EntryName, Sent]]) -> None:
        """Note the messages whose dialog reports reading. If the store fails, they never become `read`."""
        references = [
            Reference(outcome.peer, outcome.number, outcome.reference, name)
            for name, outcome in sent
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


class ReceivedTexts:
    """Hands what people write to the account of a courier to the tube of replies: of those who got a message that may
    be replied to within a week, or who quote one, or write STOP. All else is private: the account may be a person's.
    One per account.
    """

    def __init__(self, store: Store, courier: Courier, tenant: str) -> None:
        self._courier = courier
        self._tenant = tenant
        self._received = ReceivedMessages(store)
        self._opt_outs = OptOuts(Directory(store), tenant)
        numbers = AnswerNumbers(store)
        self._events = Events(
            QueueClient(store), tenant, Choices(store), replies_tube(), self._received, numbers, opt_outs=self._opt_outs
        )

    async def run(self) -> None:
        """Hand them on until cancelled. Returns at once if the courier has none."""
        if not isinstance(self._courier, TextSource):
            return
        async for text in self._courier.received_texts():
            await self._hand_on(text)

    async def _hand_on(self, text: ReceivedText) -> None:
        channel = self._courier.channel
        while True:
            try:
                if await self._is_expected(channel, text):
                    await self._events.open()
                    await self._events.put(self._courier.account, _event(channel, text))
                return
            except Invalid as refusal:
                log.warning("%s: what a person wrote is ignored: %s", channel, refusal.code)
                return
            except StoreError as fault:
                log.warning("%s: what a person wrote is not passed on yet: %s", channel, fault)
                await asyncio.sleep(_RETRY_SECONDS)

    async def _is_expected(self, channel: str, text: ReceivedText) -> bool:
        place = self._tenant, channel, text.address
        since = in_ms(text.at - _WEEK - from_ms(0))
        is_reply = text.quoted and await self._received.quoted(*place, text.quoted)
        return bool(
            is_reply
            or await self._received.last(*place, since)
            or await self._opt_outs.is_asked(channel, text.address, text.text)
        )


def _event(channel: str, text: ReceivedText) -> Event:
    person = {"user_id": text.address, "is_bot": False, "chat_id": text.address, "chat_type": "private"}
    quote = {"reply_message_id": text.quoted, "is_reply": True} if text.quoted else {}
    content = {"event_text": text.text, "attachments": [{"type": "file"}] * text.files}
    about = {"id": text.id, "channel": channel, "kind": "text", "event_date": text.at.isoformat()}
    return {**about, **person, **content, **quote}
