"""Sends the replies of a bot as deliveries of kind `reply`, through the courier of the person's channel.

Guarantees: a reply is sent once, however often its update is processed. It counts towards no quota and is not moved out
of quiet hours, because the person is writing at this moment. One address gets at most `MOST_REPLIES` a day, so an
answering machine at the other end is not answered without end.
"""

import logging
from datetime import UTC, datetime, timedelta
from hashlib import blake2b

from bots.replies import Reply
from bots.updates import Update
from core.model.delivery import NewDelivery, Recipient, Repeat, Sender
from core.redis.keys import KEYS
from core.redis.store import Store
from core.sending import Caller, Order, Sending

log = logging.getLogger(__name__)

KIND = "reply"
MOST_REPLIES = 40
"""To one address in a day."""

_DAY = timedelta(days=1)
_EXPIRES = timedelta(hours=1)
_PRIORITY = 1
_SENDER = Sender("bot")


class DeliveredReplies:
    """Of one tenant; `send` is for `bots.dialogs.Answering`."""

    def __init__(self, store: Store, sending: Sending, tenant: str) -> None:
        self._store = store
        self._sending = sending
        self._tenant = tenant

    async def send(self, update: Update, reply: Reply) -> None:
        """Send one reply. Raises StoreError and `core.errors.Refused`."""
        if reply.text and await self._may_reply(update):
            caller = Caller(self._tenant, is_admin=True, may_be_urgent=True)
            await self._sending.send(self._order(update, reply), caller, _repeat(update, reply))

    def _order(self, update: Update, reply: Reply) -> Order:
        delivery = NewDelivery(
            tenant=self._tenant,
            sender=_SENDER,
            text=reply.text,
            recipients=(),
            channels=[update.channel],
            origin=update.channel,
            expires_at=datetime.now(UTC) + _EXPIRES,
            priority=_PRIORITY,
            kind=KIND,
        )
        recipient = Recipient(update.address, contacts={update.channel: [update.address]})
        return Order(delivery, [recipient], urgent=True)

    async def _may_reply(self, update: Update) -> bool:
        """Count a reply. One that is tried again counts again, which only makes the limit stricter."""
        key = KEYS["replies"].at(0, self._tenant, update.channel, update.address)
        await self._store.command("SET", key, 0, "EX", _DAY // timedelta(seconds=1), "NX")
        count = int(await self._store.command("INCR", key))
        if count == MOST_REPLIES + 1:
            log.warning("a person in %s got %d replies in a day, and no more", update.channel, MOST_REPLIES)
        return count <= MOST_REPLIES


def _repeat(update: Update, reply: Reply) -> Repeat:
    """Which reply to which update it is: a conversation has no two equal replies to one update."""
    text = blake2b(reply.text.encode(errors="replace"), digest_size=16).hexdigest()
    return Repeat(f"reply.{update.channel}.{update.id}.{text[:8]}", text)
