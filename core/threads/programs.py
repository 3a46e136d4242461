"""The programs that a reply notifies: webhooks that want `reply`, and bots with triggers for replies."""

from core.model.clock import from_ms
from core.queue import NewTask, QueueClient, own_name
from core.redis.keys import KEYS
from core.redis.store import Store
from core.threads.incoming import Incoming, RepliedDelivery
from core.threads.threads import Added, Inbox
from core.updates.events import TUBE, encode, lane_of, person_of
from core.webhooks.event_reader import put_message
from core.webhooks.registry import Webhooks
from core.webhooks.webhook import EventType, ReplyData

SOURCE = "threads"
"""Where the events come from that replies are for a bot."""


class ReplyPrograms:
    """One per process. `webhooks`: those that want `reply`; None: there are none. Methods raise StoreError."""

    def __init__(self, store: Store, client: QueueClient, webhooks: Webhooks | None) -> None:
        self._store = store
        self._client = client
        self._webhooks = webhooks

    async def notify(self, reply: Incoming, inbox: Inbox, added: Added, about: RepliedDelivery | None) -> None:
        """Notify each program once of a reply that was added to a thread. `about`: the delivery that it replies to."""
        if self._webhooks:
            one, at = added.message, from_ms(added.message.at)
            place = added.thread, str(inbox), one.number, one.by, one.channel
            delivery, files = about.key.id if about else None, len(one.attachments)
            data = ReplyData(*place, delivery, one.files, at, files, one.is_unverified)
            name = f"{added.thread} {one.number}"
            await put_message(self._webhooks, self._client.queue, reply.tenant, EventType.REPLY, name, at, data)
        bots = KEYS["reply_bots"].at(int(added.thread.partition(".")[0]))
        if await self._store.command("SISMEMBER", bots, reply.tenant):
            await self._notify_bot(reply, inbox, added, about)

    async def _notify_bot(self, reply: Incoming, inbox: Inbox, added: Added, about: RepliedDelivery | None) -> None:
        of_delivery = {"delivery_id": about.key.id, "delivery_text": about.text} if about else {}
        event = {
            "id": f"{added.thread}.{added.message.number}",
            "source": SOURCE,
            "kind": "reply",
            "channel": reply.way.channel,
            "user_id": reply.way.address,
            "chat_id": reply.way.address,
            "event_text": reply.written.text,
            "event_date": from_ms(added.message.at).isoformat(),
            "thread_id": added.thread,
            "thread_inbox": str(inbox),
            **of_delivery,
        }
        tenant = reply.tenant
        task = NewTask(encode(event), tenant, lane=own_name(tenant, lane_of(event)), user=person_of(event))
        await self._client.queue.put_once(TUBE, task, source=SOURCE, name=own_name(tenant, event["id"]))
