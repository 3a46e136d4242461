"""Carries the messages of threads to the other side, as deliveries of kind `reply`.

What goes out is built anew: a name of the directory, the words, the stored files, and how many stayed behind. A
relayed message names its thread, so a reply to it comes back to the thread.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from core.deliveries.channels import Channels
from core.directory import Directory
from core.model.content import Button, Content, Feature
from core.model.delivery import NOTICES, NewDelivery, Recipient, Repeat, Sender, Strategy
from core.model.history_key import HistoryKey, Id
from core.model.people import User, id_text
from core.orders import Caller, Order, Sending, SendingPolicy
from core.sentence import language_of, language_of_text, say
from core.threads.incoming import Written
from core.threads.readers import InboxReaders, ReplyContacts
from core.threads.threads import (
    OFFICE,
    STAFF,
    Added,
    Colleague,
    Correspondent,
    Inbox,
    ReplyRoute,
    Thread,
    ThreadMessage,
    Threads,
)
from core.updates.events import SEND_REPLY

_SENDER, _NOTICES = Sender("replies"), Sender(NOTICES)
_MOST_CHARACTERS = 4000
"""Of a message with its first line; the words of a longer one go out by themselves."""
_QUOTE = 60
ADDRESSES, HIDDEN, SECOND = "addresses", "hidden", "second"
"""Why a message waits for its author: addresses in it, a hidden question, or a colleague who answers, too."""


class Relay:
    """One per process. `policy`: when the readers of inboxes get what was written, and which office answers in a group
    chat. `readers`: who they are. Methods raise StoreError.
    """

    def __init__(
        self,
        threads: Threads,
        sending: Sending,
        directory: Directory,
        channels: Channels,
        policy: SendingPolicy | None = None,
    ) -> None:
        policy = policy or SendingPolicy()
        self._hours, self._office_chat = policy.office_hours, policy.office_chat
        self._threads = threads
        self._sending = sending
        self._directory = directory
        self._channels = channels
        self._contacts = ReplyContacts(directory, channels)
        self.readers = InboxReaders(threads, directory)

    async def to_inbox(
        self,
        tenant: str,
        inbox: Inbox,
        person: Correspondent,
        way: ReplyRoute,
        written: Written,
        about: HistoryKey | None,
        quote: str,
    ) -> Added:
        """Add what a person has written to its thread with an inbox, send it to the topic of the person in the chat of
        the office, or else to the readers of the inbox that have a bot or a mailbox, unless they have muted the person,
        and notify the person once of its reader. `about`: the delivery that it replies to; `quote`: the text of that.
        """
        message = ThreadMessage(
            *(0, "person", 0, person.id, written.text, way.channel, written.files, "", written.corrects),
            *(written.attachments, written.is_unverified, written.small_pictures),
        )
        delivery = about.id if about else ""
        added = await self._threads.add_of_person(tenant, inbox, person, way, delivery, written.event, message)
        opening = self._hours.of(tenant).next_opening(datetime.now(UTC))
        topic = self._topic(added.thread, tenant, inbox, person)
        found = [topic] if topic and await self._contacts.of(topic) else await self.readers.of(tenant, inbox)
        others = [one for one in found if id_text(one.id) != id_text(person.id)]
        reached = [(one, contacts) for one in others if (contacts := await self._contacts.of_reader(tenant, one))]
        for reader, contacts in reached if not added.is_muted else ():
            await self._send_to_reader(tenant, reader, contacts, added, person, written, quote, opening)
        if others and not reached:
            result = "reply_noted"
        elif opening:
            result = ""
            await self._report_closed(tenant, inbox, person, way, added, opening)
        else:
            result = "reply_passed"
        await self._confirm(tenant, inbox, person, way, written, added, result)
        return added

    async def to_person(
        self, thread: Thread, author: User | None, by: Id, written: Written, channel: str, *, in_topic: bool = False
    ) -> Added:
        """Send an answer to the person of a thread, over the way its last message came, and add it to the thread. `by`:
        who answers, `author` if the directory knows it. The topic of the person shows the answer; `in_topic`: it was
        written there. Raises Conflict THREAD_UNREACHABLE if the person has no contact for replies any more; what
        `Sending.send` raises.
        """
        way = await self._contacts.way_to(thread)
        written = await self._as_shown(written, [way.channel])
        name = await self._name_of_staff(thread, author)
        locale = thread.person.locale
        head = say("reply_correction" if written.corrects else "reply_answer", locale, name=name)
        accepted = await self._send(
            *(thread.tenant, thread.id, thread.person.id, {way.channel: [way.address]}),
            *(_texts(head, written, locale), f"answer.{thread.id}.{written.event}", written),
        )
        about = 0, STAFF, 0, by, written.text, channel, written.files, accepted.id, written.corrects
        message = ThreadMessage(*about, written.attachments, small_pictures=written.small_pictures)
        added = await self._threads.add_of_staff(thread, written.event, message)
        if not in_topic:
            await self._show_in_topic(thread, name, written)
        return added

    async def report_outsider(self, thread: Thread, event: str) -> None:
        """Say in the topic of a person that a message was not passed on: its author does not read the office."""
        topic = self._topic(thread.id, thread.tenant, thread.inbox, thread.person)
        if topic:
            text, repeat = [say("reply_outsider", topic.locale)], f"outsider.{event}"
            await self._send(thread.tenant, thread.id, topic.id, topic.contacts, text, repeat)

    async def _show_in_topic(self, thread: Thread, name: str, written: Written) -> None:
        topic = self._topic(thread.id, thread.tenant, thread.inbox, thread.person)
        if topic and (contacts := await self._contacts.of(topic)):
            written = await self._as_shown(written, list(contacts))
            texts = _texts(say("reply_answer", topic.locale, name=name), written, topic.locale)
            await self._send(
                *(thread.tenant, thread.id, topic.id, contacts, texts, f"shown.{thread.id}.{written.event}", written)
            )

    def _topic(self, thread: str, tenant: str, inbox: Inbox, person: Correspondent) -> User | None:
        """Return the topic of a person in the chat of an office, as who reads there; None for another inbox. The
        courier makes a topic for each thread, and has the name from the address.
        """
        one = self._office_chat
        if one is None or inbox.kind != OFFICE or (one.tenant, one.office) != (tenant, inbox.id):
            return None
        name = person.name or say("reply_somebody", None)
        return User(f"topic-{thread}", name, contacts={one.channel: [f"{one.chat}#{thread}#{name}"]})

    async def report_lost_files(self, tenant: str, author: Correspondent, way: ReplyRoute, event: str, n: int) -> None:
        """Tell the author of an answer how many of its files were not passed on."""
        text = [say("reply_lost_files", author.locale, files=n)]
        await self._notify(tenant, "", author.id, way, text, f"lost.{event}")

    async def report_refusal(
        self, tenant: str, author: Correspondent, way: ReplyRoute, event: str, *, reads: bool
    ) -> None:
        """Tell an author that its message was not passed on: the other side cannot be written to, or the author `reads`
        the inbox no longer.
        """
        text = [say("reply_unreachable" if reads else "reply_not_reader", author.locale)]
        await self._notify(tenant, "", author.id, way, text, f"unreachable.{event}")

    async def report_empty(self, tenant: str, author: Correspondent, way: ReplyRoute, name: str) -> None:
        """Tell an author that its message has nothing that can be passed on, once under a name."""
        text = [say("reply_empty", author.locale)]
        await self._notify(tenant, "", author.id, way, text, f"empty.{name}")

    async def report_refused_edit(self, tenant: str, author: Correspondent, way: ReplyRoute, message: str) -> None:
        """Tell an author, once for each message, that an edit changes nothing: the message was not passed on."""
        text, repeat = [say("reply_unedited", author.locale)], f"unedited.{author.id}.{way.channel}.{message}"
        await self._notify(tenant, "", author.id, way, text, repeat)

    async def refuse(self, tenant: str, person: Correspondent, way: ReplyRoute, about: HistoryKey | None) -> None:
        """Tell a person that nobody reads replies to a delivery: once for each; of what belongs to none once a day."""
        text = [say("reply_off" if about else "reply_unread", person.locale)]
        repeat = f"off.{about.id if about else f'{datetime.now(UTC):%d}'}.{person.id}"
        await self._notify(tenant, "", person.id, way, text, repeat)

    async def hold_back(
        self, tenant: str, person: Correspondent, way: ReplyRoute, written: Written, wait: timedelta
    ) -> None:
        """Tell a person that its words were not passed on, and when the next may be: once in a wait, by mail once in a
        day.
        """
        minutes = -(-wait // timedelta(minutes=1))
        text, ends = [say("reply_limited", person.locale, minutes=minutes)], datetime.now(UTC) + wait
        repeat = f"limited.{person.id}.{ends:{'%d' if written.is_mailed else '%d%H%M'}}"
        await self._notify(tenant, "", person.id, way, text, repeat)

    async def ask_for_quote(self, tenant: str, reader: User, way: ReplyRoute, written: Written) -> None:
        """Notify a reader that its message is not passed on, because it quotes no message or may be forged; by mail at
        most once a day.
        """
        why = "forged" if written.is_unverified else "unquoted"
        language = language_of(reader.locale, language_of_text(written.text))
        text, day = [say(f"reply_{why}", language)], f"{id_text(reader.id)}.{datetime.now(UTC):%d}"
        repeat = f"{why}.{day if written.is_mailed else written.event}"
        await self._notify(tenant, "", reader.id, way, text, repeat)

    async def ask_before_sending(
        self, tenant: str, author: Correspondent, way: ReplyRoute, written: Written, why: str, found: Sequence[str]
    ) -> None:
        """Ask whether the other side may see these addresses, or what may answer a hidden question."""
        text = [say(f"reply_{why}", author.locale, found=", ".join(found))]
        await self._ask_whether_to_send(tenant, author, way, written, text, why)

    async def ask_about_second_answer(
        self, thread: Thread, author: Correspondent, way: ReplyRoute, written: Written, colleague: Colleague
    ) -> None:
        """Ask a reader of an office whose colleague is answering, or has answered meanwhile; the button sends the
        message.
        """
        name, first = await self.readers.name_of(thread.tenant, colleague.id), ""
        if colleague.has_answered:
            newest = (await self._threads.find(thread.tenant, thread.id)).newest
            first = _shortened(newest.text) if newest else ""
        why = "reply_second" if colleague.has_answered else "reply_answering"
        text = [say(why, author.locale, name=name, text=first)]
        await self._ask_whether_to_send(thread.tenant, author, way, written, text, SECOND)

    async def _ask_whether_to_send(
        self, tenant: str, author: Correspondent, way: ReplyRoute, written: Written, text: Sequence[str], why: str
    ) -> None:
        repeat, contacts = f"{why}.{written.event}", {way.channel: [way.address]}
        button = Button(say("reply_send", author.locale), f"{SEND_REPLY}{repeat}")
        await self._send(tenant, "", author.id, contacts, text, repeat, content=Content(inline=[[button]]))

    async def refuse_unasked(self, tenant: str, author: Correspondent, way: ReplyRoute) -> None:
        """Notify an author, once a day, that a message was not passed on: there were too many questions today."""
        text, repeat = [say("reply_unasked", author.locale)], f"unasked.{author.id}.{datetime.now(UTC):%d}"
        await self._notify(tenant, "", author.id, way, text, repeat)

    async def confirm_opt_out(
        self, tenant: str, person: Correspondent, way: ReplyRoute, event: str, gets_messages: bool
    ) -> None:
        """Tell a person that it gets messages in a channel again, or no more."""
        text = [say("opt_out_started" if gets_messages else "opt_out_stopped", person.locale)]
        await self._send(tenant, "", person.id, {way.channel: [way.address]}, text, f"opt-out.{event}")

    async def _send_to_reader(
        self,
        tenant: str,
        reader: User,
        contacts: Mapping[str, Sequence[str]],
        added: Added,
        person: Correspondent,
        written: Written,
        quote: str,
        opening: datetime | None,
    ) -> None:
        locale = language_of(reader.locale, language_of_text(written.text))
        written = await self._as_shown(written, list(contacts))
        name = person.name or say("reply_somebody", locale)
        kind = "reply_correction" if written.corrects else "reply_about" if quote else "reply_message"
        head = say(kind, locale, name=name, quote=_shortened(quote))
        texts = _texts(head, written, locale)
        if added.message.number == 1:
            hint = say("reply_topic_hint" if reader.role is None else "reply_hint", locale, name=name)
            texts = [*texts[:-1], f"{texts[-1]}\n\n{hint}"]
        repeat = f"relay.{added.thread}.{written.event}.{id_text(reader.id)}"
        await self._send(tenant, added.thread, reader.id, contacts, texts, repeat, written, at=opening)

    async def _report_closed(
        self, tenant: str, inbox: Inbox, person: Correspondent, way: ReplyRoute, added: Added, opening: datetime
    ) -> None:
        """Notify a person, once a day, that its reader gets its words when the office hours begin."""
        name = await self.readers.title_of(tenant, inbox, person.locale)
        day = f"{opening:%d.%m}" if language_of(person.locale) == "ru" else f"{opening.day} {opening:%B}"
        text = [say("reply_closed", person.locale, name=name, at=f"{day}, {opening:%H:%M}")]
        repeat = f"closed.{added.thread}.{datetime.now(opening.tzinfo):%d}"
        await self._notify(tenant, added.thread, person.id, way, text, repeat)

    async def _confirm(
        self,
        tenant: str,
        inbox: Inbox,
        person: Correspondent,
        way: ReplyRoute,
        written: Written,
        added: Added,
        result: str,
    ) -> None:
        """Notify a person once of the `result`, "" for none, and of the files that were not passed on."""
        said = []
        if added.message.number == 1 and result:
            name = await self.readers.title_of(tenant, inbox, person.locale)
            said.append(say(result, person.locale, name=name))
        if written.files:
            said.append(say("reply_lost_files", person.locale, files=written.files))
        if written.next_file:
            said.append(say("reply_next_file", person.locale, hours=-(-written.next_file // timedelta(hours=1))))
        if said:
            is_daily = written.is_mailed and added.message.number > 1
            repeat = f"passed.{added.thread}.{f'{datetime.now(UTC):%d}' if is_daily else written.event}"
            await self._notify(tenant, added.thread, person.id, way, ["\n".join(said)], repeat)

    async def _notify(
        self, tenant: str, thread: str, recipient: Id, way: ReplyRoute, texts: Sequence[str], repeat: str
    ) -> None:
        """Send a notice about what somebody has written there; none to who wants no messages in this channel."""
        user = await self._directory.users.by_contact(tenant, *way)
        if user is None or way.channel not in user.opt_out:
            await self._send(tenant, thread, recipient, {way.channel: [way.address]}, texts, repeat)

    async def _send(
        self,
        tenant: str,
        thread: str,
        recipient: Id,
        contacts: Mapping[str, Sequence[str]],
        texts: Sequence[str],
        repeat: str,
        written: Written | None = None,
        content: Content | None = None,
        at: datetime | None = None,
    ) -> HistoryKey:
        """Send texts one after the other, each once, the last one with the files; return the delivery of the last one.
        `at`: when they go out, None for now.
        `written`: the words and files in them, which a repeat has, too; a name before them may have changed meanwhile.
        None for a notice: it replies to what its recipient has just written, so quiet hours do not move it.
        Raises what `Sending.send` raises.
        """
        is_notice, keys, digest = written is None, list[HistoryKey](), written.digest if written else ""
        caller = Caller(tenant, is_admin=True, may_be_urgent=is_notice)
        files = [one.attachment for one in written.attachments] if written else []
        with_files = Content(attachments=files) if files else content
        for number, text in enumerate(texts, 1):
            delivery = NewDelivery(
                tenant=tenant,
                sender=_SENDER if written else _NOTICES,
                text=text,
                recipients=(),
                channels=list(contacts),
                origin="replies",
                lane=f"{thread}.{recipient}" if thread else None,
                kind="reply",
                strategy=Strategy.FIRST,
                thread=thread,
                content=with_files if number == len(texts) else None,
                deliver_at=at,
            )
            order = Order(delivery, [Recipient(recipient, contacts=contacts)], urgent=is_notice)
            accepted = await self._sending.send(order, caller, Repeat(f"{repeat}.{number - 1}", digest))
            keys.append(accepted.key)
        return keys[-1]

    async def _as_shown(self, written: Written, channels: Sequence[str]) -> Written:
        """Return what somebody has written without the files that the first of these channels cannot show."""
        displays = {one.name: one.display for one in await self._channels.views() if written.attachments}
        display = displays.get(channels[0])
        shown = [one for one in written.attachments if display and Feature(one.type) in display.shows]
        lost = len(written.attachments) - len(shown)
        return replace(written, attachments=shown, files=written.files + lost) if lost else written

    async def _name_of_staff(self, thread: Thread, author: User | None) -> str:
        """Return the name before an answer; a program answers in the name of the inbox."""
        title = await self.readers.title_of(thread.tenant, thread.inbox, thread.person.locale)
        if author is None or not author.name:
            return title
        return f"{author.name} ({title})" if thread.inbox.kind == OFFICE else author.name


def person_of(user: User | None, fallback: Id, name: str | None, language: str) -> Correspondent:
    """Return the person of a thread: of the directory, or a recipient of a delivery that it does not know. `language`:
    in which Ada speaks to it.
    """
    if user is None:
        return Correspondent(fallback, name, language)
    return Correspondent(user.id, user.name, language)


def _texts(head: str, written: Written, locale: str | None) -> list[str]:
    """Return the texts that go out: one, or two if the words are too long for a line before them."""
    tail = [say("reply_unverified", locale)] if written.is_unverified else []
    tail += [say("reply_files_left", locale, files=written.files)] if written.files else []
    tail += [say("reply_small_pictures", locale, pictures=written.small_pictures)] if written.small_pictures else []
    if len(written.text) > _MOST_CHARACTERS:
        return ["\n".join([head, *tail]), written.text]
    return ["\n".join([head, written.text, *tail] if written.text else [head, *tail])]


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _QUOTE else f"{line[: _QUOTE - 1]}…"
