"""Sends the replies of a bot, and the results of deliveries, as deliveries of kind `reply`, through the courier of the
person's channel.

Guarantees: a reply is sent once, however often its event is processed, and a result once. They count towards no quota.
A reply is not moved out of quiet hours, because the person is writing at this moment; a result is. One address gets at
most `MOST_REPLIES` a day, so an answering machine at the other end is not answered without end.
"""

import logging
from datetime import timedelta
from hashlib import blake2b

from msgspec import Struct

from bots.dialog_event import DialogEvent
from bots.replies import Reply
from core.admission.reply_limit import MOST_REPLIES, count_reply
from core.model.delivery import NewDelivery, Recipient, Repeat, Sender
from core.orders import Caller, Order, Sending
from core.orders.following import StatusTask
from core.redis.store import Store

log = logging.getLogger(__name__)

KIND = "reply"

_EXPIRES = timedelta(hours=1)
_RESULT_EXPIRES = timedelta(days=2)
"""Quiet hours may be in between."""
_PRIORITY = 1
_SENDER = Sender("bot")


class _Message(Struct, frozen=True):
    """One message to one address. `expires`: after how long it is of no use."""

    channel: str
    address: str
    text: str
    expires: timedelta
    urgent: bool


class DeliveredReplies:
    """Of one tenant; `send` is for `bots.dialogs.Answering`."""

    def __init__(self, store: Store, sending: Sending, tenant: str) -> None:
        self._store = store
        self._sending = sending
        self._tenant = tenant

    async def send(self, event: DialogEvent, reply: Reply) -> None:
        """Send one reply. Raises StoreError and `core.errors.Refused`."""
        if reply.text:
            message = _Message(event.channel, event.address, reply.text, _EXPIRES, urgent=True)
            await self._send(message, _repeat(event, reply))

    async def send_result(self, followed: StatusTask, reply: Reply) -> bool:
        """Send the result of a delivery, of which only the first is sent; a `StatusHandler` calls it.
        Returns False: the result cannot be changed. Raises StoreError and `core.errors.Refused`.
        """
        message = _Message(followed.channel, followed.address, reply.text, _RESULT_EXPIRES, urgent=False)
        await self._send(message, Repeat(f"result.{followed.key}", "result"))
        return False

    async def _send(self, message: _Message, repeat: Repeat) -> None:
        if await self._may_reply(message.channel, message.address):
            caller = Caller(self._tenant, is_admin=True, may_be_urgent=True)
            await self._sending.send(self._order(message), caller, repeat)

    def _order(self, message: _Message) -> Order:
        delivery = NewDelivery(
            tenant=self._tenant,
            sender=_SENDER,
            text=message.text,
            recipients=(),
            channels=[message.channel],
            origin=message.channel,
            expires_at=self._sending.clock() + message.expires,
            priority=_PRIORITY,
            kind=KIND,
        )
        recipient = Recipient(message.address, contacts={message.channel: [message.address]})
        return Order(delivery, [recipient], urgent=message.urgent)

    async def _may_reply(self, channel: str, address: str) -> bool:
        """Count a reply. A second try counts again, which only makes the limit stricter."""
        count = await count_reply(self._store, self._tenant, channel, address)
        if count == MOST_REPLIES + 1:
            log.warning("a person in %s got %d replies in a day, and no more", channel, MOST_REPLIES)
        return count <= MOST_REPLIES


def _repeat(event: DialogEvent, reply: Reply) -> Repeat:
    """Return the key of a reply to an event. A conversation has no two equal replies to one event."""
    text = blake2b(reply.text.encode(errors="replace"), digest_size=16).hexdigest()
    return Repeat(f"reply.{event.channel}.{event.id}.{text[:8]}", text)
