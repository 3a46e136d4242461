"""Notices about a question: its result to the sender when it is closed, and to who still waits that no place became
free; a free place to the person who has waited for it; each answer, as an event, to a bot with a trigger for answers.
The closing also removes the buttons.

    lua/answers/modules/answers.lua closes it ─▶ a task in the tube `answers` ─▶ QuestionNotices.finish ─▶ a call in
    the tube `bot_calls.<channel>` for each message with buttons; a delivery with the totals to the sender

Guarantees: the task is put in the step that closes the question. A process that is killed leaves it to the next one,
which puts no call and sends no result a second time.

Called by `core.updates.answer_worker`.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import count

import msgspec

from core.answers.current_people import CurrentPeople
from core.answers.values import answer_text, in_language
from core.deliveries.channels import Channels
from core.deliveries.deliveries import Deliveries
from core.deliveries.histories.encoding import load_plan
from core.deliveries.histories.parcels import StoredParcel, load_reference, split_label
from core.deliveries.histories.projection import HistoryFields, labels_of
from core.deliveries.histories.reader import HistoryReader
from core.deliveries.received import MessagePlace
from core.directory import Directory
from core.errors import NotFound
from core.model.clock import from_ms
from core.model.delivery import NewDelivery, Recipient, Repeat, Sender, Strategy
from core.model.history import History, RecipientRecord
from core.model.history_key import HistoryKey, person_key
from core.model.hours import TenantQuietHours
from core.model.question import Question, load_row, row_field
from core.model.states import REACHED
from core.queue import NewTask, QueueClient, Task, own_name
from core.redis.store import Store
from core.updates.answer_words import closing_text, no_place_text, place_text
from core.updates.bot_calls import BotCalls, ButtonChange, calls_tube
from core.updates.events import TUBE, encode, lane_of, person_of

BUTTONS_PAUSE = timedelta(milliseconds=50)
"""Between two changes of messages: the bot of a channel has other calls to make."""
SOURCE = "answers"
"""Where the events come from that answers of deliveries are for a bot."""
RESULT, PLACE_GIVEN, NO_PLACE = "result", "place", "no_place"
"""The kinds of the deliveries that have the totals, that tell who has got a place, and who has waited in vain."""


class QuestionNotices:
    """One per process."""

    def __init__(self, store: Store, client: QueueClient, quiet_hours: TenantQuietHours) -> None:
        self._client = client
        self._store = store
        self._quiet_hours = quiet_hours
        self._reader = HistoryReader(store)
        self._channels = Channels(store)
        self._deliveries = Deliveries(store, self._channels)
        self._directory = Directory(store)
        self._current = CurrentPeople(store)

    async def finish(self, key: HistoryKey, tenant: str, now: datetime) -> None:
        """Remove the buttons of a question that was closed, and send its result. Raises NotFound HISTORY_NOT_FOUND,
        StoreError.
        """
        history = await self._reader.summary(key, tenant)
        if history.answers is None or not history.answers.closed_at:  # it was opened again
            return
        opening = (await self._reader.read_fields(key, ["answers_openings"]))["answers_openings"] or "0"
        if history.question and history.question.has_options:
            await self._remove_buttons(key, history, opening, now)
        await self._send_result(history, opening, now)
        await self._notify_waiting(key, history, opening, now)

    async def _remove_buttons(self, key: HistoryKey, history: History, opening: str, now: datetime) -> None:
        tubes = {tube.name for tube in await self._client.tubes.known()}
        rows, numbers = history.content.inline if history.content else (), count()
        name = f"{key.id} {opening}"
        (text,) = (await self._reader.read_fields(key, ["answers_chats"])).values()
        chats = set(map(int, (text or "").split()))  # their messages keep the totals
        async for parcel in self._parcels(key, history.tenant):
            channel, _ = split_label(parcel.channel)
            if calls_tube(channel) in tubes:
                calls = BotCalls(self._client, history.tenant, channel)
                for address, message in (await self._sent(key, parcel, chats)).items():
                    change = ButtonChange(address, message, rows)
                    await calls.change_message(change, name, now + BUTTONS_PAUSE * next(numbers))

    async def _parcels(self, key: HistoryKey, tenant: str) -> AsyncIterator[StoredParcel]:
        """Emit the parcels of a delivery and of its reminders."""
        fields = await self._reader.fields(key, tenant)
        async for parcel in self._reader.parcels(key, fields):
            yield parcel
            for label in labels_of(fields):
                channel, wave = split_label(label)
                if wave and channel == parcel.channel:
                    again = await self._reader.parcel(key, label, parcel.number)
                    if again:
                        yield again

    async def _sent(self, key: HistoryKey, parcel: StoredParcel, without: Collection[int]) -> Mapping[str, str]:
        """Return address → the message that has the buttons: the last part of a long one. `without`: the numbers of
        recipients that are left out.
        """
        entries = [entry for entry in parcel.entries if entry.address and entry.number not in without]
        fields = {entry.field(parcel.channel): entry.address for entry in entries}
        found = {}
        for name, text in (await self._reader.outcomes(key, list(fields))).items():
            status, *_, reference = (text or "|||||").split("|", 5)
            message = load_reference(reference).reference.rpartition(",")[2]
            if status in REACHED and message:
                found[fields[name]] = message
        return found

    async def _send_result(self, history: History, opening: str, now: datetime) -> None:
        """Send the totals to the sender, if it is a person whose contacts are known, once for each `opening` of the
        question. The moment of the closing is no name: one that was lost with its primary is repeated later.
        """
        sender = msgspec.convert(history.sender, Sender)
        (user,) = await self._directory.users.lookup(history.tenant, [sender.id])
        if user is None or user.blocked or history.question is None or history.answers is None:
            return
        known = (await self._channels.current()).names
        contacts = {name: to for name, to in user.contacts.items() if name in known and user.accepts(name)}
        text = closing_text(history.text, in_language(history.question, user.locale), history.answers)
        if contacts:
            recipient = Recipient(sender.id, user.name, contacts)
            await self._send(history, recipient, text, RESULT, f"closed {history.key} {opening}", now)

    async def notify_place(self, key: HistoryKey, task: Task, number: int) -> None:
        """Tell a recipient that it has got a place, if it still has it, in the first channel that has reached it and
        in which it wants messages. One that is blocked, or wants messages in no channel, gives it to the next in line.
        Raises StoreError.
        """
        try:
            fields = await self._reader.fields(key, task.tenant)
            history = await self._reader.page(key, task.tenant, number, 1)
        except NotFound:
            return
        (record,) = history.recipients
        row = record.answer.row if record.answer else None
        if row is None or row.waiting or history.question is None:
            return
        contacts = await self._contacts(key, fields, record, number)
        wanted = await self._wanted(task.tenant, record, contacts)
        if contacts and not wanted:
            await self._store.run("free_place", key.shard, key.suffix, person_key(record.id), number)
        elif recipient := _reachable(record, wanted, row.channel):
            question = await self._as_asked(key, fields, history.question, record, number)
            text = place_text(history.text, question, row.value)
            replies = await self._replies_to(key, fields, record, number, recipient)
            await self._send(history, recipient, text, PLACE_GIVEN, f"place {task.id}", from_ms(task.claimed), replies)

    async def _notify_waiting(self, key: HistoryKey, history: History, opening: str, now: datetime) -> None:
        """Tell those who wait for a place of a question that was closed that none became free, once for each `opening`
        of the question.
        """
        question = history.question
        if question is None or not any(one.places for one in question.options):
            return
        fields = await self._reader.fields(key, history.tenant)
        people = [*await self._reader.recipients(key, fields), *await self._reader.members(key, fields)]
        rows = await self._reader.answers(key, fields, people)
        for one in people:
            row = load_row(rows[row_field(one.number)])
            if row is None or not row.waiting:
                continue
            (record,) = (await self._reader.page(key, history.tenant, one.number, 1)).recipients
            contacts = await self._contacts(key, fields, record, one.number)
            wanted = await self._wanted(history.tenant, record, contacts)
            if recipient := _reachable(record, wanted, row.channel):
                own = await self._as_asked(key, fields, question, record, one.number)
                text = no_place_text(history.text, own)
                replies = await self._replies_to(key, fields, record, one.number, recipient)
                await self._send(
                    history, recipient, text, NO_PLACE, f"no place {key} {opening} {one.number}", now, replies
                )

    async def _wanted(
        self, tenant: str, record: RecipientRecord, contacts: Mapping[str, Sequence[str]]
    ) -> Mapping[str, Sequence[str]]:
        """Return those of its addresses, by channel, at which a recipient wants messages."""
        found = [(one, to) for one, addresses in contacts.items() for to in addresses]
        ids = await self._current.ids_of(tenant, record.id)
        accepted = await self._current.accept(tenant, [(one, *place) for one in ids for place in found])
        unwanted = {place for place, is_wanted in zip(found * len(ids), accepted, strict=True) if not is_wanted}
        wanted = [place for place in found if place not in unwanted]
        return {channel: [to for other, to in wanted if other == channel] for channel, _ in wanted}

    async def notify_bot(self, key: HistoryKey, tenant: str, number: int) -> None:
        """Put the last answer of a recipient as an event of the bot, once for an answer: in the channel of the answer,
        else in the first one that has reached the person, else in any of the delivery. The words of a hidden answer
        are left out. Raises StoreError.
        """
        try:
            fields = await self._reader.fields(key, tenant)
            history = await self._reader.page(key, tenant, number, 1)
        except NotFound:
            return
        (record,) = history.recipients
        row = record.answer.row if record.answer else None
        contacts = await self._contacts(key, fields, record, number)
        best = (row.channel if row else "", *record.received_in, *contacts)
        channel = next((name for name in best if name in contacts), None)
        if row is None or history.question is None or channel is None:
            return
        event = {
            "id": f"{key.shard}.{key.ns}.{number}.{row.version}",
            "source": SOURCE,
            "kind": "answer",
            "channel": channel,
            "user_id": contacts[channel][0],
            "chat_id": contacts[channel][0],
            "event_text": answer_text(history.question, row),
            "event_date": row.answered_at.isoformat(),
            "answer_value": row.value,
            "answer_state": str(row.state),
            "answer_by": row.by,
            "delivery_id": key.id,
            "delivery_text": history.text,
        }
        task = NewTask(encode(event), tenant, lane=own_name(tenant, lane_of(event)), user=person_of(event))
        await self._client.queue.put_once(TUBE, task, source=SOURCE, name=own_name(tenant, event["id"]))

    async def _contacts(
        self, key: HistoryKey, fields: HistoryFields, record: RecipientRecord, number: int
    ) -> Mapping[str, Sequence[str]]:
        """Return the addresses of a recipient by channel, as the delivery has them, without those that it
        has no more; those of a member of a group chat are in the directory.
        """
        tenant, found = fields["tenant"] or "", dict[str, list[str]]()
        if record.is_member:
            (user,) = await self._directory.users.lookup(tenant, [record.id])
            return {name: to for name, to in user.contacts.items() if user.accepts(name)} if user else {}
        async for parcel in self._reader.parcels(key, fields):
            for entry in parcel.entries:
                if entry.number == number and entry.address and entry.address not in found.get(parcel.channel, ()):
                    found.setdefault(parcel.channel, []).append(entry.address)
        contacts = [(record.id, channel, address) for channel, addresses in found.items() for address in addresses]
        own = dict[str, list[str]]()
        lost = await self._current.have_lost(tenant, contacts, int(fields["created"] or 0))
        for (_, channel, address), is_lost in zip(contacts, lost, strict=True):
            if not is_lost:
                own.setdefault(channel, []).append(address)
        return own

    async def _as_asked(
        self, key: HistoryKey, fields: HistoryFields, question: Question, record: RecipientRecord, number: int
    ) -> Question:
        """Return the question in the language of a recipient, or of the member of a group chat."""
        if record.is_member:
            (user,) = await self._directory.users.lookup(fields["tenant"] or "", [record.id])
            return in_language(question, user.locale if user else None)
        (recipient,) = await self._reader.recipients(key, fields, number, 1)
        return in_language(question, recipient.locale)

    async def _replies_to(
        self, key: HistoryKey, fields: HistoryFields, record: RecipientRecord, number: int, recipient: Recipient
    ) -> str:
        """Return where replies go to what a recipient gets about its answer: to the message with the question."""
        if record.is_member:
            return ""
        for plan in load_plan(fields["plan"] or ""):
            if plan.channel in recipient.contacts:
                parcel, entries = await self._reader.entries_of(key, plan, number)
                if entries:
                    return MessagePlace(key, number, parcel, entries[0].contact).as_replies
        return ""

    async def _send(
        self,
        history: History,
        recipient: Recipient,
        text: str,
        kind: str,
        name: str,
        now: datetime,
        replies: str = "",
    ) -> None:
        """Send a message of the question's own, once for a name; quiet hours move it."""
        quiet_hours = self._quiet_hours.of(history.tenant)
        moved = quiet_hours.moved(now) if quiet_hours else None
        message = NewDelivery(
            tenant=history.tenant,
            sender=msgspec.convert(history.sender, Sender),
            text=text,
            recipients=[recipient],
            channels=list(recipient.contacts),
            origin="question",
            kind=kind,
            strategy=Strategy.FIRST,
            deliver_at=moved,
            moved_from=now if moved else None,
            replies=replies,
        )
        await self._deliveries.enqueue(message, Repeat(name, kind))


def _reachable(record: RecipientRecord, contacts: Mapping[str, Sequence[str]], answered_in: str) -> Recipient | None:
    """Return a recipient with its addresses in the first channel that has reached it, else in that of its answer; None
    if it has neither. `contacts`: those where it wants messages.
    """
    best = next((name for name in (*record.received_in, answered_in) if name in contacts), None)
    return Recipient(record.id, record.name, {best: contacts[best]}) if best else None
