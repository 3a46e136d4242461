"""Replies that people write: where each belongs, and its way there.

    an update ─▶ Events.put ─▶ tube `replies`, lane = the person ─▶ ReplyWorker.handle ─▶ a thread ─▶ the other side

A reply belongs to the delivery that it quotes; without a quote to the newest one that its address got within a week;
else to the office of the settings. Its author is asked before it is sent if it has an address in it, or may answer a
hidden question. Its files are fetched by the process of the bot; it waits for them in its lane. A process that is
killed at any point loses and doubles nothing: the next attempt makes the same calls under the same names.
"""

import logging
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import quote as percent_encoded

from core.admission.actions import ActionLog, OperatorAction
from core.admission.quotas import may_reply
from core.deliveries.histories.encoding import THREAD
from core.deliveries.received import ReceivedMessages
from core.directory import Directory
from core.directory.preferences import OptOuts
from core.errors import Forbidden, QuotaExceeded, Refused
from core.model.delivery import REPLIES_OFF, REPLIES_TO_SENDER
from core.model.people import User, id_text
from core.queue import Attempt, QueueClient, Result, Suspend, Worker
from core.redis.store import Store
from core.sentence import say
from core.threads.files import LONGEST, ThreadFiles, fetchable, typed_names
from core.threads.incoming import (
    Incoming,
    IncomingReplies,
    RepliedDelivery,
    Written,
    forwards,
    guest_id,
    reply_name,
    way_of,
    written_of,
)
from core.threads.limits import MOST, ReplyLimits
from core.threads.merging import MERGED, ThreadMerger
from core.threads.programs import ReplyPrograms
from core.threads.relay import ADDRESSES, HIDDEN, SECOND, Relay, person_of
from core.threads.threads import OFFICE, USER, Correspondent, Inbox, Thread, Threads
from core.threads.typed_addresses import HeldReplies, typed_addresses
from core.updates.bot_calls import BotCalls
from core.updates.events import (
    CONFIRMED,
    REPLIES_TUBE,
    SEND_REPLY,
    TYPED,
    Event,
    decode,
    is_for_topic,
    message_of,
    replies_tube,
    sends_reply,
)
from core.updates.ingress import GATHERED
from core.uploads import Uploads
from core.webhooks.registry import Webhooks

log = logging.getLogger(__name__)

_LEASE = timedelta(seconds=5)
_CONCURRENCY = 50
HELD = "held:"
"""Before the name of a held reply, where a message was passed on to: an edit of it replaces what is held."""
REFUSED = "refused"
"""In place of a thread: a message was not passed on, and its author knows."""
_EDITED = "was_edited"
"""The field of a held reply that an edit has replaced: its question has ended."""
_ASKED = "files"
"""The checkpoint of a reply whose files are being fetched."""


class _FilesAwaited(Exception):
    """The files of a reply are being fetched; its task is woken then."""


class ReplyWorker:
    """One per process. `office`: the group that gets what belongs to no delivery, "" for none."""

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
        self._programs = ReplyPrograms(store, client, webhooks)
        self._directory = directory
        self._threads = threads
        self._relay = relay
        self._office = office
        self._incoming = IncomingReplies(store, directory)
        self._received = ReceivedMessages(store)
        self._held = HeldReplies(store)
        self._limits = ReplyLimits(store)
        self._files = ThreadFiles(store, client, Uploads(store))
        self._forwards = forwards(store, client, "")
        self._merger = ThreadMerger(client, directory, threads)
        self._store = store

    async def open(self) -> None:
        """Create the tube. Raises StoreError."""
        await self._client.tubes.create(replies_tube())

    def worker(self) -> Worker:
        """Return a worker of the tube, to `run()` and to `stop()`. Any number of processes may have one."""
        return self._client.worker(REPLIES_TUBE, self.handle, _CONCURRENCY, lease=_LEASE)

    async def handle(self, attempt: Attempt) -> Result:
        """Place one reply and carry it to the other side. Raises StoreError."""
        if attempt.task.kind == GATHERED:
            await self._forwards.handle(attempt)
            return None
        if attempt.task.kind == MERGED:
            return await self._merger.finish(attempt)
        tenant, event = attempt.task.tenant, decode(attempt.body)
        try:
            if sends_reply(event):
                await self._send_held(tenant, event, attempt)
            elif event.get("unverified") or is_for_topic(event) or not await self._opts_out(tenant, event):
                await self._place(await self._incoming.read(tenant, event, attempt))
        except _FilesAwaited:
            return Suspend(LONGEST, checkpoint=_ASKED)
        except QuotaExceeded as full:
            log.info("%s: a message was not passed on: its thread has had too many in a minute", event["channel"])
            await self._report_refusal(tenant, event, full.retry_after)
        except Refused as refusal:
            log.warning("%s: the reply %s was not passed on: %s", event["channel"], event["id"], refusal.code)
            await self._report_refusal(tenant, event, reads=not isinstance(refusal, Forbidden))
        return None

    async def _report_refusal(
        self, tenant: str, event: Event, wait: timedelta | None = None, *, reads: bool = True
    ) -> None:
        """Tell the author of a reply that it was not passed on. `wait`: when it may be, None if not. `reads`: whether
        the author still reads the inbox.
        """
        way = way_of(event)
        user = await self._incoming.author(tenant, event)
        author = person_of(user, str(event["user_id"]), None, await self._incoming.language(tenant, event, user))
        if event.get("callback_id"):  # a message of its own has the reason
            await BotCalls(self._client, tenant, way.channel).answer_press(event)
        await self._note_refused(tenant, event)
        with suppress(Refused):  # the author cannot be written to either
            if wait:
                await self._relay.hold_back(tenant, author, way, written_of(tenant, event), wait)
            else:
                await self._relay.report_refusal(tenant, author, way, reply_name(tenant, event), reads=reads)

    async def _note_refused(self, tenant: str, event: Event) -> None:
        """Note that a message was not passed on: its author gets a notice of an edit, too."""
        written, message = written_of(tenant, event), message_of(event)
        if message and not written.corrects:
            await self._received.note_passed_on(tenant, *way_of(event), message, REFUSED, written.text)

    async def _opts_out(self, tenant: str, event: Event) -> bool:
        """Return whether an event is STOP or START. It is confirmed before anything changes: a repeat changes nothing,
        and confirms nothing twice.
        """
        way, text = way_of(event), str(event.get("event_text") or "")
        opt_outs = OptOuts(self._directory, tenant)
        if asked := await opt_outs.asked(*way, text):
            user, gets_messages = asked
            person = person_of(user, user.id, user.name, await self._incoming.language(tenant, event, user))
            await self._relay.confirm_opt_out(tenant, person, way, written_of(tenant, event).event, gets_messages)
            await opt_outs.change(user, way.channel, gets_messages)
        return asked is not None or await opt_outs.is_asked(*way, text)

    async def _send_held(self, tenant: str, press: Event, attempt: Attempt) -> None:
        """Send what its author has confirmed by a press."""
        way, name = way_of(press), str(press["callback_data"]).removeprefix(SEND_REPLY)
        held = await self._held.find(tenant, way, name)
        is_edited = bool(held and held.get(_EDITED))
        if held is not None and not is_edited:
            confirmed = [*held.get(CONFIRMED, ()), name.partition(".")[0]]
            await self._place(await self._incoming.read(tenant, {**held, CONFIRMED: confirmed}, attempt))
        if press.get("callback_id"):
            calls, author = BotCalls(self._client, tenant, way.channel), await self._incoming.author(tenant, press)
            said = "reply_edited" if is_edited else "reply_sent" if held else "reply_gone"
            text = say(said, await self._incoming.language(tenant, held or press, author))
            await calls.answer_press(press, text, alert=held is None or is_edited)
            await calls.change_buttons(press, [])

    async def _place(self, reply: Incoming) -> None:
        author = reply.author
        if author and author.blocked:
            await self._note_blocked(reply, author)
            return
        if not (reply.written.text or reply.written.files):
            if not reply.written.corrects:  # such as a message that was forwarded and has only a map
                person = person_of(author, reply.way.address, None, reply.language)
                is_single = reply.is_quoted and not reply.written.is_mailed
                name = reply.written.event if is_single else f"{person.id}.{datetime.now(UTC):%d%H}"
                await self._relay.report_empty(reply.tenant, person, reply.way, name)
                await self._note_refused(reply.tenant, reply.event)
            return
        if reply.written.corrects:
            await self._correct(reply)
            return
        about = await self._incoming.delivery(reply.tenant, reply.source) if reply.source else None
        if about is None:
            await self._to_office(reply)
        elif about.replies.startswith(THREAD):
            await self._to_thread(reply, about)
        else:
            await self._to_inbox(reply, about)

    async def _note_blocked(self, reply: Incoming, author: User) -> None:
        """Count a reply of a blocked person for the sender, and note it for administrators: one entry a day. The person
        gets no message, so no notice either.
        """
        if reply.source and reply.is_quoted:
            key = reply.source.key
            await self._store.run("count_refused_reply", key.shard, key.suffix, reply.source.number)
        what = "a message of a blocked person was not passed on"
        place = f"/v1/users/{percent_encoded(id_text(author.id), safe='')}"
        action = OperatorAction("ada", "Ada", reply.way.channel, what, place)
        await ActionLog(self._store).write(reply.tenant, action, f"blocked.{id_text(author.id)}")

    async def _to_inbox(self, reply: Incoming, about: RepliedDelivery) -> None:
        """Add a reply to the inbox that its delivery names; to the office if nobody reads that any more."""
        person = person_of(reply.author, about.recipient, about.name, reply.language)
        is_own = about.replies == REPLIES_TO_SENDER
        inbox = Inbox(USER, id_text(about.sender.id)) if is_own else Inbox(OFFICE, about.replies)
        if about.replies == REPLIES_OFF:
            await self._refuse(reply, person)
        elif await self._relay.readers.is_abandoned(reply.tenant, inbox):
            await self._to_office(reply, about, person)
        else:
            await self._pass_on(reply, inbox, person, about)

    async def _refuse(self, reply: Incoming, person: Correspondent) -> None:
        """Notify a person that its reply has no reader, and count it for the sender if it belongs to a delivery."""
        key = reply.source.key if reply.source else None
        if key and reply.source:
            await self._store.run("count_refused_reply", key.shard, key.suffix, reply.source.number)
        await self._relay.refuse(reply.tenant, person, reply.way, key)
        await self._note_refused(reply.tenant, reply.event)

    async def _to_thread(self, reply: Incoming, about: RepliedDelivery) -> None:
        """Add a reply to its thread: of its person, or an answer of a reader who quotes. What a reader writes without a
        quote goes to nobody: it may be meant for another person. Raises Forbidden INBOX_NOT_YOURS, NotFound.
        """
        author, tenant = reply.author, reply.tenant
        thread = await self._relay.readers.thread_of(tenant, about.replies.removeprefix(THREAD), author)
        if thread is None:
            await self._to_office(reply)
        elif not reply.is_in_topic and id_text(thread.person.id) == id_text(author.id if author else about.recipient):
            person = person_of(author, thread.person.id, thread.person.name, reply.language)
            if await self._relay.readers.is_abandoned(tenant, thread.inbox):
                await self._to_office(reply, None, person)
            else:
                await self._pass_on(reply, thread.inbox, person)
        elif author and reply.is_answer and await self._relay.readers.reads(tenant, thread.inbox, author):
            await self._answer(reply, thread, author)
        elif reply.is_in_topic:
            await self._relay.report_outsider(thread, reply.written.event)
        elif reply.is_answer:
            raise _no_reader()
        elif author:
            await self._relay.ask_for_quote(tenant, author, reply.way, reply.written)
            await self._note_refused(tenant, reply.event)

    async def _correct(self, reply: Incoming) -> None:
        """Pass on an edit of what was passed on before. Raises NotFound THREAD_NOT_FOUND, Forbidden INBOX_NOT_YOURS."""
        message, author = message_of(reply.event), reply.author
        thread_id = await self._received.thread_of(reply.tenant, *reply.way, message, reply.written.text)
        if not thread_id:
            return
        if thread_id == REFUSED:
            person = person_of(author, reply.way.address, None, reply.language)
            await self._relay.report_refused_edit(reply.tenant, person, reply.way, message)
            return
        if thread_id.startswith(HELD):
            await self._replace_held(reply, thread_id.removeprefix(HELD))
            return
        thread = await self._threads.find(reply.tenant, thread_id)
        if author is None or id_text(thread.person.id) == id_text(author.id):
            await self._pass_on(
                reply, thread.inbox, person_of(author, thread.person.id, thread.person.name, reply.language)
            )
        elif await self._relay.readers.reads(reply.tenant, thread.inbox, author):
            await self._answer(reply, thread, author)
        else:
            raise _no_reader()

    async def _replace_held(self, edit: Incoming, name: str) -> None:
        """Place the new words of a message that waits for its author; the button below the old ones sends nothing."""
        held = await self._held.find(edit.tenant, edit.way, name)
        if held is not None:
            new = {**held, "id": edit.event["id"], "event_text": edit.event.get("event_text"), CONFIRMED: ()}
            new.pop(_EDITED, None)  # of an attempt that has ended here
            await self._held.hold(edit.tenant, edit.way, name, {**new, _EDITED: True})
            await self._place(await self._incoming.read(edit.tenant, new, edit.attempt))

    async def _answer(self, reply: Incoming, thread: Thread, author: User) -> None:
        by = person_of(author, author.id, author.name, reply.language)
        if not await self._is_second(reply, thread, by) and not await self._is_held(reply, by):
            await self._limits.check_thread(reply.tenant, thread.id, reply.written.event)
            written = await self._with_files(reply, len(fetchable(reply.event)))
            about = thread, author, author.id, written, reply.way.channel
            added = await self._relay.to_person(*about, in_topic=reply.is_in_topic)
            await self._note_passed_on(reply, added.thread)
            if lost := added.message.files:
                await self._relay.report_lost_files(reply.tenant, by, reply.way, written.event, lost)

    async def _with_files(self, reply: Incoming, most: int) -> Written:
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

    async def _note_passed_on(self, reply: Incoming, thread: str) -> None:
        if message := message_of(reply.event):
            await self._received.note_passed_on(reply.tenant, *reply.way, message, thread, reply.written.text)

    async def _to_office(
        self, reply: Incoming, about: RepliedDelivery | None = None, person: Correspondent | None = None
    ) -> None:
        """Pass on to the office a reply whose inbox nobody reads. Without an office that somebody reads the author gets
        a notice.
        """
        person = person or person_of(reply.author, guest_id(reply.way), None, reply.language)
        office = Inbox(OFFICE, self._office)
        if not self._office or await self._relay.readers.is_abandoned(reply.tenant, office):
            log.info("%s: a message belongs to no inbox that is read, and there is no office", reply.way.channel)
            await self._refuse(reply, person)
        else:
            await self._pass_on(reply, office, person, about)

    async def _pass_on(
        self, reply: Incoming, inbox: Inbox, person: Correspondent, about: RepliedDelivery | None = None
    ) -> None:
        """Carry what a person has written to an inbox, unless it has written too much in the last minutes."""
        tenant, way, written = reply.tenant, reply.way, reply.written
        if wait := await self._limits.wait_of_person(tenant, person.id, written.event):
            log.info("%s: a reply was not passed on: its person has written %d in five minutes", way.channel, MOST)
            await self._relay.hold_back(tenant, person, way, written, wait)
            await self._note_refused(tenant, reply.event)
        elif not await self._is_held(reply, person, about):
            await self._limits.check_thread(tenant, self._threads.id_of(tenant, inbox, person.id), written.event)
            key, quote = (about.key, about.text) if about else (None, "")
            most, next_file = await self._limits.files_left(tenant, person.id, written.event, reply.event)
            written = replace(await self._with_files(reply, most), next_file=next_file)
            added = await self._relay.to_inbox(tenant, inbox, person, way, written, key, quote)
            await self._programs.notify(reply, inbox, added, about)
            await self._note_passed_on(reply, added.thread)

    async def _is_held(self, reply: Incoming, author: Correspondent, about: RepliedDelivery | None = None) -> bool:
        """Return whether a reply waits for its author, who is asked: a hidden question, or addresses in it."""
        typed = f"{reply.written.text}\n{typed_names(reply.event)}"
        found = [] if ADDRESSES in reply.confirmed else [*typed_addresses(typed), *reply.event.get(TYPED, ())]
        hides = (about is not None and about.hides_answers) or await self._incoming.may_answer_hidden(reply)
        is_hidden = hides and HIDDEN not in reply.confirmed
        why, is_held = HIDDEN if is_hidden else ADDRESSES, is_hidden or bool(found)
        if is_held and not await may_reply(self._store, reply.tenant, *reply.way):
            log.info("%s: a reply was not passed on: its author was asked too often today", reply.way.channel)
            await self._relay.refuse_unasked(reply.tenant, author, reply.way)
            await self._note_refused(reply.tenant, reply.event)
        elif is_held:
            await self._held.hold_reply(reply, why)
            await self._relay.ask_before_sending(reply.tenant, author, reply.way, reply.written, why, found)
            await self._note_held(reply, why)
        return is_held

    async def _is_second(self, reply: Incoming, thread: Thread, author: Correspondent) -> bool:
        """Return whether an answer waits for its author, because a colleague is answering or has answered meanwhile. In
        a topic all see what the others answer.
        """
        if SECOND in reply.confirmed or reply.is_in_topic or reply.written.corrects:
            return False
        colleague = await self._threads.claim_answer(thread, author.id, sends=True)
        if colleague:
            await self._held.hold_reply(reply, SECOND)
            await self._relay.ask_about_second_answer(thread, author, reply.way, reply.written, colleague)
            await self._note_held(reply, SECOND)
        return colleague is not None

    async def _note_held(self, reply: Incoming, why: str) -> None:
        """Note what an edit of a held message replaces, once its author was asked: a repeat before that asks again."""
        if not reply.written.corrects:
            await self._note_passed_on(reply, f"{HELD}{why}.{reply.written.event}")


def _no_reader() -> Forbidden:
    return Forbidden("INBOX_NOT_YOURS", "Nobody but its readers answers in an inbox.", "inbox")
