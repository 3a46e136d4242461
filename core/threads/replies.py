"""Replies that people write: where each belongs, and its way there.

    an update ─▶ Events.put ─▶ tube `replies`, lane = the person ─▶ ReplyWorker.handle ─▶ a thread ─▶ the other side

A reply belongs to the delivery that it quotes; without a quote to the newest one that its address got within a week;
else to the office of the settings. A process that is killed at any point loses and doubles nothing: the next attempt
makes the same calls under the same names.
"""

import logging
import time
from datetime import timedelta
from hashlib import blake2b

import msgspec
from msgspec import Struct

from core.deliveries.histories.encoding import PAGE, THREAD, load_recipients
from core.deliveries.histories.reader import HistoryReader
from core.deliveries.received import ReceivedMessage, ReceivedMessages
from core.directory import Directory
from core.errors import NotFound, Refused
from core.model.delivery import REPLIES_OFF, REPLIES_TO_SENDER, Sender
from core.model.history_key import HistoryKey, Id
from core.model.people import User, id_text
from core.queue import Attempt, QueueClient, Result, Worker
from core.redis.store import Store
from core.threads.relay import OFFICE, USER, Relay, Written, person_of
from core.threads.threads import Correspondent, Inbox, ReplyRoute, Threads
from core.updates.events import REPLIES_TUBE, Event, Events, decode, identity, replies_tube

log = logging.getLogger(__name__)

MOST, PERIOD = 5, timedelta(minutes=5)
"""What one person may write to all inboxes (R-27)."""

_WEEK_MS = timedelta(days=7) // timedelta(milliseconds=1)
_LEASE = timedelta(seconds=5)
_CONCURRENCY = 50


class _Delivery(Struct, frozen=True):
    """What a reply has to know of its delivery. `recipient`, `name`: of the one who replies."""

    key: HistoryKey
    replies: str
    text: str
    sender: Sender
    recipient: Id
    name: str | None


class UnquotedReplies:
    """Takes what a person writes to a bot that has no answer to it. One per tenant. `office`: as of `ReplyWorker`."""

    def __init__(self, store: Store, client: QueueClient, directory: Directory, tenant: str, office: str = "") -> None:
        self._store = store
        self._directory = directory
        self._tenant = tenant
        self._office = office
        self._received = ReceivedMessages(store)
        self._events = Events(client, tenant)

    async def take(self, event: Event) -> bool:
        """Return whether it belongs to a delivery of the last week, or there is an office; then it goes to its thread.
        Raises StoreError.
        """
        place = self._tenant, str(event["channel"]), str(event["user_id"])
        if await self._received.last(*place, since=a_week_before(self._store)) is None:
            (group,) = await self._directory.groups.lookup(self._tenant, [self._office]) if self._office else [None]
            if group is None:
                return False
        await self._events.put_reply({"source": self._tenant, "kind": "text", **event})
        return True


class ReplyWorker:
    """One per process. `office`: the group that gets what belongs to no delivery, "" for none."""

    def __init__(
        self, store: Store, client: QueueClient, directory: Directory, threads: Threads, relay: Relay, office: str = ""
    ) -> None:
        self._client = client
        self._directory = directory
        self._threads = threads
        self._relay = relay
        self._office = office
        self._reader = HistoryReader(store)
        self._received = ReceivedMessages(store)
        self._store = store

    async def open(self) -> None:
        """Create the tube. Raises StoreError."""
        await self._client.tubes.create(replies_tube())

    def worker(self) -> Worker:
        """Return a worker of the tube, to `run()` and to `stop()`. Any number of processes may have one."""
        return self._client.worker(REPLIES_TUBE, self.handle, _CONCURRENCY, lease=_LEASE)

    async def handle(self, attempt: Attempt) -> Result:
        """Place one reply and carry it to the other side. Raises StoreError."""
        tenant, event = attempt.task.tenant, decode(attempt.body)
        try:
            await self._place(tenant, event)
        except Refused as refusal:
            log.warning("%s: the reply %s was not passed on: %s", event["channel"], event["id"], refusal.code)
        return None

    async def _place(self, tenant: str, event: Event) -> None:
        written, way = _written(tenant, event), ReplyRoute(str(event["channel"]), str(event["user_id"]))
        author = await self._directory.users.by_contact(tenant, *way)
        if not (written.text or written.files) or (author and author.blocked):
            return
        quoted = await self._quoted(tenant, way, event)
        source = quoted or await self._received.last(tenant, *way, since=a_week_before(self._store))
        about = await self._delivery(tenant, source) if source else None
        if about is None:
            await self._to_office(tenant, author, way, written)
        elif about.replies.startswith(THREAD):
            await self._to_thread(tenant, about, author, way, written, is_quoted=quoted is not None)
        elif about.replies == REPLIES_OFF:
            await self._relay.refuse(tenant, person_of(author, about.recipient, about.name), way, about.key)
        else:
            is_own = about.replies == REPLIES_TO_SENDER
            inbox = Inbox(USER, id_text(about.sender.id)) if is_own else Inbox(OFFICE, about.replies)
            person = person_of(author, about.recipient, about.name)
            await self._pass_on(tenant, inbox, person, way, written, about)

    async def _quoted(self, tenant: str, way: ReplyRoute, event: Event) -> ReceivedMessage | None:
        reference = str(event.get("reply_message_id") or "")
        return await self._received.quoted(tenant, *way, reference) if reference else None

    async def _to_thread(
        self, tenant: str, about: _Delivery, author: User | None, way: ReplyRoute, written: Written, *, is_quoted: bool
    ) -> None:
        """Add a reply to the thread of its delivery: of its person, or an answer of a reader who quotes. What a reader
        writes without a quote goes to nobody: it may be meant for another person.
        """
        try:
            thread = await self._threads.find(tenant, about.replies.removeprefix(THREAD))
        except NotFound:
            await self._to_office(tenant, author, way, written)
            return
        if thread.person.id == (author.id if author else about.recipient):
            person = person_of(author, thread.person.id, thread.person.name)
            await self._pass_on(tenant, thread.inbox, person, way, written)
        elif author and is_quoted and await self._relay.reads(tenant, thread.inbox, author):
            await self._relay.to_person(thread, author, author.id, written, way.channel)
        elif author:
            await self._relay.ask_for_quote(tenant, author, way, written)

    async def _to_office(self, tenant: str, author: User | None, way: ReplyRoute, written: Written) -> None:
        """Give the office what belongs to no delivery. Without an office it stays with the bots."""
        (group,) = await self._directory.groups.lookup(tenant, [self._office]) if self._office else [None]
        if group is None:
            log.info("%s: a message belongs to no delivery, and there is no office", way.channel)
            return
        stranger = f"guest-{blake2b(f'{way.channel}:{way.address}'.encode(), digest_size=6).hexdigest()}"
        person = person_of(author, stranger, None)
        await self._pass_on(tenant, Inbox(OFFICE, id_text(group.id)), person, way, written)

    async def _pass_on(
        self,
        tenant: str,
        inbox: Inbox,
        person: Correspondent,
        way: ReplyRoute,
        written: Written,
        about: _Delivery | None = None,
    ) -> None:
        """Carry what a person has written to an inbox, unless it has written too much in the last minutes."""
        if wait := await self._wait(tenant, person, written):
            log.info("%s: a reply was not passed on: its person has written %d in five minutes", way.channel, MOST)
            await self._relay.hold_back(tenant, person, way, wait)
        else:
            key, quote = (about.key, about.text) if about else (None, "")
            await self._relay.to_inbox(tenant, inbox, person, way, written, key, quote)

    async def _wait(self, tenant: str, person: Correspondent, written: Written) -> timedelta | None:
        """Return how long a person has to wait that writes too much; a repeat of an event counts once."""
        number = int(written.event, 16) % 10**18 + 10**18
        suffix, shard = f"replies.{person.id}:{number}", self._store.shard_of(f"{tenant}:{person.id}")
        reply = await self._store.run("take_quota", shard, tenant, suffix, MOST, PERIOD // timedelta(milliseconds=1))
        return timedelta(milliseconds=int(reply[1])) if reply[0] == "quota" else None

    async def _delivery(self, tenant: str, received: ReceivedMessage) -> _Delivery | None:
        """Return the delivery of a message; None if it is no longer kept."""
        page = received.number // PAGE
        names = ("tenant", "sender", "text", "replies", f"people:{page}")
        fields = await self._reader.read_fields(received.key, names)
        people = load_recipients(fields[f"people:{page}"] or "[]", page)
        if fields["tenant"] != tenant or received.number % PAGE >= len(people):
            return None
        one = people[received.number % PAGE]
        sender = msgspec.json.decode(fields["sender"] or "{}", type=Sender)
        return _Delivery(received.key, fields["replies"] or REPLIES_OFF, fields["text"] or "", sender, one.id, one.name)


def a_week_before(store: Store) -> int:
    """Return the ms of the store's clock a week ago."""
    return int(time.time() * 1000) + store.clock_offset_ms - _WEEK_MS


def _written(tenant: str, event: Event) -> Written:
    name = blake2b(identity(tenant, event).encode(errors="surrogatepass"), digest_size=9).hexdigest()
    return Written(name, str(event.get("event_text") or "").strip(), len(event.get("attachments") or ()))
