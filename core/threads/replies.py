"""Replies that people write: where each belongs, and its way there.

    an update ─▶ Events.put ─▶ tube `replies`, lane = the person ─▶ ReplyWorker.handle ─▶ a thread ─▶ the other side

A reply belongs to the delivery that it quotes; without a quote to the newest one that its address got within a week;
else to the office of the settings. If it has an address in it, its author is asked before it is sent. Its files are
fetched by the process of the bot; it waits for them in its lane. A process that is killed at any point loses and
doubles nothing: the next attempt makes the same calls under the same names.
"""

import logging
import time
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from hashlib import blake2b

import msgspec
from msgspec import Struct

from core.admission.reply_limit import may_reply
from core.deliveries.histories.encoding import PAGE, THREAD, load_recipients
from core.deliveries.histories.reader import HistoryReader
from core.deliveries.received import ReceivedMessage, ReceivedMessages
from core.directory import Directory
from core.errors import NotFound, Refused
from core.model.clock import from_ms, in_ms
from core.model.delivery import REPLIES_OFF, REPLIES_TO_SENDER, Sender
from core.model.history_key import HistoryKey, Id
from core.model.people import DEFAULT_LOCALE, User, id_text
from core.queue import Attempt, NewTask, QueueClient, Result, Suspend, Worker, own_name
from core.redis.keys import KEYS
from core.redis.store import Store
from core.sentence import say
from core.threads.files import LONGEST, ThreadFiles, fetchable, typed_names
from core.threads.relay import OFFICE, USER, Relay, Written, person_of
from core.threads.threads import Added, Correspondent, Inbox, ReplyRoute, Thread, Threads
from core.threads.typed_addresses import HeldReplies, typed_addresses
from core.updates.bot_calls import BotCalls
from core.updates.events import (
    MAIL,
    REPLIES_TUBE,
    SEND_REPLY,
    TUBE,
    Event,
    Events,
    decode,
    encode,
    identity,
    lane_of,
    replies_tube,
    sends_reply,
)
from core.updates.events import person_of as event_person
from core.updates.reachability import OptOuts
from core.uploads import Uploads
from core.webhooks.event_reader import put_message
from core.webhooks.messages import ReplyData
from core.webhooks.registry import Webhooks
from core.webhooks.webhook import EventType

log = logging.getLogger(__name__)

MOST, PERIOD = 5, timedelta(minutes=5)
"""Limit of the messages of one person to all inboxes (R-27)."""
MOST_FILES, FILES_PERIOD = 10, timedelta(days=1)
"""The files that one person may send to them."""

SOURCE = "threads"
"""Where the events come from that replies are for a bot."""
_WEEK_MS = timedelta(days=7) // timedelta(milliseconds=1)
_LEASE = timedelta(seconds=5)
_CONCURRENCY = 50
_ASKED = "files"
"""The checkpoint of a reply whose files are being fetched."""


class _FilesAwaited(Exception):
    """The files of a reply are being fetched; its task is woken then."""


class _Delivery(Struct, frozen=True):
    """Facts of its delivery that a reply needs. `recipient`, `name`: of the author of the reply."""

    key: HistoryKey
    replies: str
    text: str
    sender: Sender
    recipient: Id
    name: str | None


class _Incoming(Struct, frozen=True):
    """A message that arrived over `way`. `author`: None if the directory does not know it. `source`: the message
    that it quotes, else the last one of the week. `is_confirmed`: addresses in it may be sent. `attempt`: of its task.
    """

    tenant: str
    event: Event
    written: Written
    way: ReplyRoute
    author: User | None
    source: ReceivedMessage | None
    is_quoted: bool
    is_confirmed: bool
    attempt: Attempt

    @property
    def is_answer(self) -> bool:
        """Return whether a reader may have it sent to the person of the thread that it quotes."""
        return self.is_quoted and not self.written.is_unverified


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
    """One per process. `office`: the group that gets what belongs to no delivery, "" for none. `webhooks`: those that
    want `reply`."""

    def __init__(
        self,
        store: Store,
        client: QueueClient,
        directory: Directory,
        threads: Threads,
        relay: Relay,
        office: str = "",
        webhooks: Webhooks | None = None,
    ) -> None:
        self._client = client
        self._webhooks = webhooks
        self._directory = directory
        self._threads = threads
        self._relay = relay
        self._office = office
        self._reader = HistoryReader(store)
        self._received = ReceivedMessages(store)
        self._held = HeldReplies(store)
        self._files = ThreadFiles(store, client, Uploads(store))
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
            if sends_reply(event):
                await self._send_held(tenant, event, attempt)
            elif event.get("unverified") or not await self._opts_out(tenant, event):
                await self._place(await self._read(tenant, event, attempt))
        except _FilesAwaited:
            return Suspend(LONGEST, checkpoint=_ASKED)
        except Refused as refusal:
            log.warning("%s: the reply %s was not passed on: %s", event["channel"], event["id"], refusal.code)
            await self._report_refusal(tenant, event)
        return None

    async def _report_refusal(self, tenant: str, event: Event) -> None:
        """Tell the author of a reply that it was not passed on."""
        way = _way(event)
        author = person_of(await self._author(tenant, way), str(event["user_id"]), None)
        with suppress(Refused):  # the author cannot be written to either
            await self._relay.report_refusal(tenant, author, way, reply_name(tenant, event))

    async def _opts_out(self, tenant: str, event: Event) -> bool:
        """Return whether an event is STOP or START. It is confirmed before anything changes: a repeat changes nothing,
        and confirms nothing twice.
        """
        way, text = _way(event), str(event.get("event_text") or "")
        opt_outs = OptOuts(self._directory, tenant)
        if asked := await opt_outs.asked(*way, text):
            user, gets_messages = asked
            await self._relay.confirm_opt_out(tenant, user, way, _written(tenant, event).event, gets_messages)
            await opt_outs.change(user, way.channel, gets_messages)
        return asked is not None or await opt_outs.is_asked(*way, text)

    async def _send_held(self, tenant: str, press: Event, attempt: Attempt) -> None:
        """Send what its author has confirmed by a press."""
        way, name = _way(press), str(press["callback_data"]).removeprefix(SEND_REPLY)
        held = await self._held.find(tenant, way, name)
        if held is not None:
            await self._place(await self._read(tenant, held, attempt, is_confirmed=True))
        if press.get("callback_id"):
            calls, author = BotCalls(self._client, tenant, way.channel), await self._author(tenant, way)
            text = say("reply_sent" if held else "reply_gone", author.locale if author else DEFAULT_LOCALE)
            await calls.answer_press(press, text, alert=held is None)
            await calls.change_buttons(press, [])

    async def _read(self, tenant: str, event: Event, attempt: Attempt, *, is_confirmed: bool = False) -> _Incoming:
        way, reference = _way(event), str(event.get("reply_message_id") or "")
        quoted = await self._received.quoted(tenant, *way, reference) if reference else None
        source = quoted or await self._received.last(tenant, *way, since=a_week_before(self._store))
        author = await self._author(tenant, way)
        about = _written(tenant, event), way, author, source, quoted is not None, is_confirmed
        return _Incoming(tenant, event, *about, attempt)

    async def _author(self, tenant: str, way: ReplyRoute) -> User | None:
        return await self._directory.users.by_contact(tenant, *way)

    async def _place(self, reply: _Incoming) -> None:
        author = reply.author
        if not (reply.written.text or reply.written.files) or (author and author.blocked):
            return
        if reply.written.corrects:
            await self._correct(reply)
            return
        about = await self._delivery(reply.tenant, reply.source) if reply.source else None
        if about is None:
            await self._to_office(reply)
        elif about.replies.startswith(THREAD):
            await self._to_thread(reply, about)
        elif about.replies == REPLIES_OFF:
            await self._count_refused(reply, about)
            person = person_of(author, about.recipient, about.name)
            await self._relay.refuse(reply.tenant, person, reply.way, about.key)
        else:
            is_own = about.replies == REPLIES_TO_SENDER
            inbox = Inbox(USER, id_text(about.sender.id)) if is_own else Inbox(OFFICE, about.replies)
            await self._pass_on(reply, inbox, person_of(author, about.recipient, about.name), about)

    async def _count_refused(self, reply: _Incoming, about: _Delivery) -> None:
        """Count who replies though nobody reads it, for the sender."""
        if reply.source:
            await self._store.run("count_refused_reply", about.key.shard, about.key.suffix, reply.source.number)

    async def _to_thread(self, reply: _Incoming, about: _Delivery) -> None:
        """Add a reply to the thread of its delivery: of its person, or an answer of a reader who quotes. What a reader
        writes without a quote goes to nobody: it may be meant for another person.
        """
        author, tenant = reply.author, reply.tenant
        try:
            thread = await self._threads.find(tenant, about.replies.removeprefix(THREAD))
        except NotFound:
            await self._to_office(reply)
            return
        if thread.person.id == (author.id if author else about.recipient):
            await self._pass_on(reply, thread.inbox, person_of(author, thread.person.id, thread.person.name))
        elif author and reply.is_answer and await self._relay.reads(tenant, thread.inbox, author):
            await self._answer(reply, thread, author)
        elif author:
            await self._relay.ask_for_quote(tenant, author, reply.way, reply.written)

    async def _correct(self, reply: _Incoming) -> None:
        """Pass on an edit of what was passed on before. Raises NotFound THREAD_NOT_FOUND."""
        message, author = str(reply.event.get("message_id") or ""), reply.author
        thread_id = await self._received.thread_of(reply.tenant, *reply.way, message, reply.written.text)
        if not thread_id:
            return
        thread = await self._threads.find(reply.tenant, thread_id)
        if author is None or thread.person.id == author.id:
            await self._pass_on(reply, thread.inbox, person_of(author, thread.person.id, thread.person.name))
        elif await self._relay.reads(reply.tenant, thread.inbox, author):
            await self._answer(reply, thread, author)

    async def _answer(self, reply: _Incoming, thread: Thread, author: User) -> None:
        by = person_of(author, author.id, author.name)
        if not await self._is_held(reply, by):
            written = await self._with_files(reply, len(fetchable(reply.event)))
            added = await self._relay.to_person(thread, author, author.id, written, reply.way.channel)
            await self._note_passed_on(reply, added.thread)
            if lost := added.message.files:
                await self._relay.report_lost_files(reply.tenant, by, reply.way, written.event, lost)

    async def _with_files(self, reply: _Incoming, most: int) -> Written:
        """Return what was written with its first files, as far as they could be fetched. Raises _FilesAwaited."""
        written, event = reply.written, reply.event
        if not (most := min(most, len(fetchable(event)))) or written.corrects:
            return written
        found, task = await self._files.fetched(reply.tenant, event, written.event), reply.attempt.task.task_id
        is_asked = found is not None or reply.attempt.checkpoint == _ASKED
        if not is_asked and await self._files.fetch(reply.tenant, event, most, written.event, task):
            raise _FilesAwaited
        found = (found or [])[:most]
        return replace(written, files=written.files - len(found), attachments=found)

    async def _files_left(self, reply: _Incoming, person: Correspondent) -> tuple[int, timedelta | None]:
        """Return how many files of a reply its person may send now, and when the next one if these are not all; a
        repeat of an event counts once.
        """
        quota, event = f"files.{person.id}", reply.written.event
        for n in range(len(fetchable(reply.event))):
            if wait := await self._wait(reply.tenant, quota, f"{event}{n}", MOST_FILES, FILES_PERIOD):
                return n, wait
        return MOST_FILES, None

    async def _note_passed_on(self, reply: _Incoming, thread: str) -> None:
        if message := str(reply.event.get("message_id") or ""):
            await self._received.note_passed_on(reply.tenant, *reply.way, message, thread, reply.written.text)

    async def _to_office(self, reply: _Incoming) -> None:
        """Give the office what belongs to no delivery. Without an office it stays with the bots."""
        way = reply.way
        (group,) = await self._directory.groups.lookup(reply.tenant, [self._office]) if self._office else [None]
        if group is None:
            log.info("%s: a message belongs to no delivery, and there is no office", way.channel)
            return
        stranger = f"guest-{blake2b(f'{way.channel}:{way.address}'.encode(), digest_size=6).hexdigest()}"
        await self._pass_on(reply, Inbox(OFFICE, id_text(group.id)), person_of(reply.author, stranger, None))

    async def _pass_on(
        self, reply: _Incoming, inbox: Inbox, person: Correspondent, about: _Delivery | None = None
    ) -> None:
        """Carry what a person has written to an inbox, unless it has written too much in the last minutes."""
        tenant, way, written = reply.tenant, reply.way, reply.written
        if wait := await self._wait(tenant, f"replies.{person.id}", written.event, MOST, PERIOD):
            log.info("%s: a reply was not passed on: its person has written %d in five minutes", way.channel, MOST)
            await self._relay.hold_back(tenant, person, way, written, wait)
        elif not await self._is_held(reply, person):
            key, quote = (about.key, about.text) if about else (None, "")
            most, next_file = await self._files_left(reply, person)
            written = replace(await self._with_files(reply, most), next_file=next_file)
            added = await self._relay.to_inbox(tenant, inbox, person, way, written, key, quote)
            await self._notify_webhooks(tenant, inbox, added, key)
            await self._notify_bot(reply, inbox, added, about)
            await self._note_passed_on(reply, added.thread)

    async def _notify_webhooks(self, tenant: str, inbox: Inbox, added: Added, about: HistoryKey | None) -> None:
        if self._webhooks is None:
            return
        one, at = added.message, from_ms(added.message.at)
        place = added.thread, str(inbox), one.number, one.by, one.channel
        data = ReplyData(*place, about.id if about else None, one.files, at, len(one.attachments), one.is_unverified)
        name = f"{added.thread} {one.number}"
        await put_message(self._webhooks, self._client.queue, tenant, EventType.REPLY, name, at, data)

    async def _notify_bot(self, reply: _Incoming, inbox: Inbox, added: Added, about: _Delivery | None) -> None:
        """Put a reply as an event of a bot with triggers for replies, once for a reply."""
        tenant, key = reply.tenant, KEYS["reply_bots"].at(int(added.thread.partition(".")[0]))
        if not await self._store.command("SISMEMBER", key, tenant):
            return
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
        task = NewTask(encode(event), tenant, lane=own_name(tenant, lane_of(event)), user=event_person(event))
        await self._client.queue.put_once(TUBE, task, source=SOURCE, name=own_name(tenant, event["id"]))

    async def _is_held(self, reply: _Incoming, author: Correspondent) -> bool:
        """Return whether a reply waits for its author, who has typed an address and is asked about it."""
        typed = f"{reply.written.text}\n{typed_names(reply.event)}"
        found = [] if reply.is_confirmed else typed_addresses(typed)
        if found and not await may_reply(self._store, reply.tenant, *reply.way):
            log.info("%s: a reply with an address was not passed on: there were too many today", reply.way.channel)
            await self._relay.refuse_addresses(reply.tenant, author, reply.way)
        elif found:
            source = {"reply_message_id": reply.source.reference} if reply.source else {}
            await self._held.hold(reply.tenant, reply.way, reply.written.event, {**reply.event, **source})
            await self._relay.ask_about_addresses(reply.tenant, author, reply.way, reply.written, found)
        return bool(found)

    async def _wait(self, tenant: str, quota: str, event: str, most: int, period: timedelta) -> timedelta | None:
        """Return how long a person has to wait that has used up a quota; a repeat of an event counts once."""
        number = int(event, 16) % 10**18 + 10**18
        suffix, shard = f"{quota}:{number}", self._store.shard_of(f"{tenant}:{quota.partition('.')[2]}")
        reply = await self._store.run("take_quota", shard, tenant, suffix, most, in_ms(period))
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


def _way(event: Event) -> ReplyRoute:
    return ReplyRoute(str(event["channel"]), str(event["user_id"]))


def reply_name(tenant: str, event: Event) -> str:
    """Return the name of the reply that an event is."""
    return blake2b(identity(tenant, event).encode(errors="surrogatepass"), digest_size=9).hexdigest()


def _written(tenant: str, event: Event) -> Written:
    is_edit, text = event.get("kind") == "edited", str(event.get("event_text") or "").strip()
    files = 0 if is_edit else len(event.get("attachments") or ())
    is_unverified, is_mailed = bool(event.get("unverified")), event.get("source") == MAIL
    name = reply_name(tenant, event)
    return Written(name, text, files, is_edit, is_unverified=is_unverified, is_mailed=is_mailed)
