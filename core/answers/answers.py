"""Answers to the questions of deliveries: pressed or entered on behalf, and read.

Called by `core.updates.answer_worker` and by `delivery/`.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from msgspec.structs import replace as with_fields

from core.answers.buttons import AnswerTokens, Rows, answered_rows
from core.answers.current_people import CurrentPeople, is_barred_by
from core.answers.values import in_language, read_value
from core.deliveries.histories.encoding import PAGE, StoredRecipient, load_content, load_plan, load_recipients
from core.deliveries.histories.parcels import Entry
from core.deliveries.histories.projection import HistoryFields, channels_of
from core.deliveries.histories.reader import HistoryReader
from core.directory import Directory
from core.directory.departed import DepartedPeople
from core.errors import Conflict, Forbidden, Invalid, NotFound, Refused
from core.model.clock import from_ms, in_ms, to_ms
from core.model.contacts.addresses import canonical, is_group
from core.model.content import Content, ParseMode
from core.model.history_key import HistoryKey, person_key
from core.model.json_form import compact_json
from core.model.people import id_text
from core.model.question import (
    AnswerKind,
    AnswerRow,
    AskedChild,
    GivenAnswer,
    Question,
    Voice,
    asked_for,
    load_question,
    load_row,
    question_of,
    row_field,
)
from core.model.states import Reason, Status
from core.model.text.personal import PersonalTemplate, load_texts, values_in
from core.model.text.text_marks import plain_text
from core.redis.keys import KEYS
from core.redis.store import Store
from core.uploads import Uploads

PRESS, ON_BEHALF, NUMBER, TEXT, MAIL = "press", "on_behalf", "number", "text", "mail"
_RETENTION_MS = in_ms(timedelta(days=30))
"""Of answers, on a server without settings."""


class PressedAnswer(NamedTuple):
    """`buttons`: how the message shows the answer; None for that of a group chat, which shows the totals later."""

    given: GivenAnswer
    buttons: Rows | None


class AskedRecipient(NamedTuple):
    """A recipient of a delivery that asks. `channels`: of the delivery. `fields`: some of its history."""

    key: HistoryKey
    tenant: str
    question: Question
    recipient: StoredRecipient
    channels: Sequence[str]
    content: Content | None
    fields: HistoryFields

    def entry(self, channel: str, contact: int) -> Entry:
        """Return its entry without the address. Raises NotFound QUESTION_NOT_FOUND for another channel."""
        if channel not in self.channels:
            raise no_question()
        contacts = self.recipient.contacts[self.channels.index(channel)]
        return Entry(self.recipient.id, self.recipient.number, contact, contacts, "")

    @property
    def text(self) -> str:
        """The text that this recipient has got, without marks."""
        text, named = self.fields["text"] or "", self.fields["personal"]
        if named is not None:
            template = PersonalTemplate(text, self.content, load_texts(self.fields["texts"]))
            text = template.text(values_in(json.loads(named), self.recipient.values))
        return plain_text(text, self.content.parse_mode if self.content else ParseMode.PLAIN)

    def child(self, value: str) -> AskedChild | None:
        """Return the child that an answer is about; None if the recipient answers for itself."""
        number = value.partition(":")[0]
        return next((one for one in self.recipient.asked_children if str(one.number) == number), None)

    def is_closed(self, at: float) -> bool:
        """Return whether the question is closed at a moment, in ms."""
        ends = int(self.fields["answers_closed"] or 0), int(self.fields["answers_until"] or 0)
        return any(0 < end <= at for end in ends)


class AnsweredMessage(NamedTuple):
    """The message by which somebody has answered: evidence that it has arrived."""

    channel: str
    parcel: int
    contact: int


_FIELDS = (
    "tenant",
    "created",
    "recipients",
    "answers_members",
    "answers_children",
    "answer",
    "content",
    "plan",
    "text",
    "texts",
    "personal",
    "answers_until",
    "answers_closed",
)


class Answers:
    """Counts answers. Methods raise StoreError."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reader = HistoryReader(store)
        self._tokens = AnswerTokens(store)
        self._users = Directory(store).users
        self._departed = DepartedPeople(store)
        self._current = CurrentPeople(store)

    async def press(
        self, tenant: str, channel: str, address: str, token: str, event: str, chat: str = ""
    ) -> PressedAnswer:
        """Count the press of a button by an account; a repeat of the event returns its first result. `event`: names it,
        without spaces. `chat`: in which it was pressed; in a group chat the answer is that of the member. Raises
        Forbidden ANSWER_TOKEN_WRONG, ANSWER_NOT_YOURS, ANSWER_STRANGER, ANSWER_PERSON_DELETED, NotFound
        QUESTION_NOT_FOUND.
        """
        is_in_chat = chat != address and is_group(channel, chat)
        pressed = await self._tokens.read(tenant, channel, chat if is_in_chat else address, token)
        asked = await self.find(pressed.shard, pressed.code, pressed.number)
        question = asked.question
        if asked.tenant != tenant or pressed.option >= len(question.options):
            raise no_question()
        arrival = AnsweredMessage(channel, pressed.parcel, pressed.contact)
        value = question.options[pressed.option].key
        if is_in_chat:
            recipient = await self._member(asked, channel, address)
            member = asked._replace(recipient=recipient, question=in_language(question, recipient.locale))
            return PressedAnswer(await self.record(member, event, value, PRESS, arrival=arrival, chat=asked), None)
        given = await self.record(asked, event, value, PRESS, arrival=arrival)
        tokens = await self._tokens.of_options(tenant, channel, address, pressed, len(question.options))
        chosen = await self.chosen(asked) if asked.recipient.asked_children else [given.row.value]
        return PressedAnswer(given, answered_rows(asked.content, question, tokens, chosen))

    async def language_of_button(self, tenant: str, token: str) -> str:
        """Return the language of the question to which a button belongs, also for a press by another account; "" if the
        question is no longer stored, or the button belongs to none.
        """
        with suppress(Refused):
            pressed = await self._tokens.read_place(token)
            asked = await self.find(pressed.shard, pressed.code, pressed.number)
            return asked.question.locale if asked.tenant == tenant else ""
        return ""

    async def chosen(self, asked: AskedRecipient) -> Sequence[str]:
        """Return the keys of the options that a recipient has chosen for the children about whom it is asked."""
        return chosen_keys(await self.said_for_children(asked))

    async def said_for_children(self, asked: AskedRecipient) -> Sequence[tuple[AskedChild, Voice | None]]:
        """Return the last answer of a guardian for each child of the question; nothing for a recipient that answers
        for itself.
        """
        children, who = asked.recipient.asked_children, id_text(asked.recipient.id)
        if not children:
            return []
        stored = await self._reader.read_fields(asked.key, [row_field(one.number) for one in children])
        rows = [(one, load_row(stored[row_field(one.number)])) for one in children]
        return [
            (one, next((said for said in (row.voices if row else ()) if said.who == who), None)) for one, row in rows
        ]

    async def enter(
        self,
        key: HistoryKey,
        tenant: str,
        recipient: str,
        value: str,
        who: str,
        event: str,
        *,
        sees_hidden: bool = False,
    ) -> GivenAnswer:
        """Count an answer that `who` enters on behalf of a recipient, which may still change it. `sees_hidden`: it may
        see a hidden answer, and so replace one. Raises NotFound HISTORY_NOT_FOUND, QUESTION_NOT_FOUND,
        RECIPIENT_NOT_FOUND, Conflict ANSWERS_ANONYMOUS, ANSWER_OF_CHILDREN, Forbidden ANSWERS_HIDDEN,
        ANSWER_PERSON_DELETED, and as `entered`.
        """
        fields = await self._reader.fields(key, tenant)
        question = load_question(fields["answer"])
        if question is None:
            raise no_question()
        if question.is_anonymous:
            raise Conflict("ANSWERS_ANONYMOUS", "An anonymous question is answered only by its people.")
        found = await self._recipient(key, fields, recipient)
        if found.asked_children and not found.is_own_child:
            raise Conflict("ANSWER_OF_CHILDREN", "A guardian answers for its children: name the child.", "recipient")
        if await self._is_deleted(key, fields, found):
            raise _person_deleted()
        if question.is_hidden and not sees_hidden and await self._row(key, fields, found):
            detail = (
                "This person has answered. Only an administrator changes it, with a reason in the header Ada-Reason."
            )
            raise Forbidden("ANSWERS_HIDDEN", detail, "recipient")
        value, text = await self.entered(question, tenant, value)
        found = replace(found, children=())
        asked = AskedRecipient(key, tenant, question, found, channels_of(fields), None, fields)
        return await self.record(asked, event, value, ON_BEHALF, text=text, who=who)

    async def entered(self, question: Question, tenant: str, value: str) -> tuple[str, str]:
        """Return the value and the words of an answer that is not pressed: the key of an option, a text, a number, a
        date, or the id of an uploaded file, which is kept. Raises Invalid OPTION_UNKNOWN, ANSWER_MALFORMED,
        FILE_UNKNOWN.
        """
        if question.kind is AnswerKind.FILE:
            (file,) = await Uploads(self._store).keep(tenant, [value], await self._file_ends(question))
            if file is None:
                raise Invalid("FILE_UNKNOWN", "There is no such file: upload it with POST /v1/files.", "value")
            return file.id, file.name
        if question.has_options and question.option(value) is None:
            raise Invalid("OPTION_UNKNOWN", f"The question has no option {value!r}.", "value", value)
        return (value, "") if question.has_options else written_value(question, value)

    async def _file_ends(self, question: Question) -> datetime:
        """Return when the retention of a file ends with which somebody answers now: that of answers, from the closing
        on if its time is set.
        """
        settings = KEYS["settings"].at(0)
        histories, answers = await self._store.command("HMGET", settings, "retention_ms", "answers_ms")
        kept, now = int(answers or histories or _RETENTION_MS), to_ms(datetime.now(UTC))
        return from_ms(max(now, question.until or 0) + kept)

    async def file(self, key: HistoryKey, tenant: str, recipient: str) -> tuple[str, str]:
        """Return the id and the name of the file that a recipient has answered with. Raises NotFound HISTORY_NOT_FOUND,
        RECIPIENT_NOT_FOUND, ANSWER_WITHOUT_FILE.
        """
        fields = await self._reader.fields(key, tenant)
        found = await self._recipient(key, fields, recipient)
        row, question = await self._row(key, fields, found), load_question(fields["answer"])
        if row is None or question is None or question.kind is not AnswerKind.FILE:
            raise NotFound("ANSWER_WITHOUT_FILE", f"The recipient {recipient!r} has sent no file.")
        return row.value, row.text

    async def rows(self, key: HistoryKey, tenant: str) -> Mapping[str, AnswerRow]:
        """Return the answers of all recipients, by id, also those of a hidden question. Raises NotFound
        HISTORY_NOT_FOUND.
        """
        fields = await self._reader.fields(key, tenant)
        people = await self._people(key, fields)
        stored = await self._reader.answers(key, fields, people)
        found = {str(one.id): load_row(stored.get(row_field(one.number))) for one in people}  # not of a guardian
        return {name: row for name, row in found.items() if row is not None}

    async def _recipient(self, key: HistoryKey, fields: HistoryFields, recipient: str) -> StoredRecipient:
        found = next((one for one in await self._people(key, fields) if str(one.id) == recipient), None)
        if found is None:
            raise NotFound("RECIPIENT_NOT_FOUND", f"The delivery has no recipient {recipient!r}.")
        return found

    async def _row(self, key: HistoryKey, fields: HistoryFields, recipient: StoredRecipient) -> AnswerRow | None:
        return load_row((await self._reader.answers(key, fields, [recipient]))[row_field(recipient.number)])

    async def _is_deleted(self, key: HistoryKey, fields: HistoryFields, recipient: StoredRecipient) -> bool:
        """Return whether the data of a recipient were deleted, and with them its addresses. Members of group chats and
        children have none here, and are people of the directory.
        """
        if recipient.number >= int(fields["recipients"] or 0):
            (user,) = await self._users.lookup(fields["tenant"] or "", [recipient.id])
            return user is None
        for plan, contacts in zip(load_plan(fields["plan"] or ""), recipient.contacts, strict=True):
            if contacts:
                _, entries = await self._reader.entries_of(key, plan, recipient.number)
                return any(not entry.address for entry in entries)
        return False

    async def _people(self, key: HistoryKey, fields: HistoryFields) -> Sequence[StoredRecipient]:
        """Return the recipients, and the members of group chats who have answered."""
        return [*await self._reader.recipients(key, fields), *await self._reader.members(key, fields)]

    async def _member(self, asked: AskedRecipient, channel: str, address: str) -> StoredRecipient:
        """Return the recipient for which an answer of this account in a group chat counts: the person with the account
        if it is a recipient of the delivery, else a member of the chat, whose number is -1 until it has answered.
        Raises Forbidden ANSWER_STRANGER if the account is of no person, or of a blocked one.
        """
        user = await self._users.by_contact(asked.tenant, channel, address)
        if user is None or user.blocked:
            raise Forbidden("ANSWER_STRANGER", "The directory has no person with this account.")
        people = await self._people(asked.key, asked.fields)
        known = next((one for one in people if str(one.id) == str(user.id)), None)
        return known or StoredRecipient(-1, user.id, [0] * len(asked.channels), locale=user.locale or "")

    async def record(
        self,
        asked: AskedRecipient,
        event: str,
        value: str,
        by: str,
        *,
        text: str = "",
        who: str = "",
        arrival: AnsweredMessage | None = None,
        chat: AskedRecipient | None = None,
    ) -> GivenAnswer:
        """Count an answer that came in any way: the one place. A repeat of the event returns its first result. `chat`:
        the recipient that is the group chat in which it came.
        Raises Forbidden ANSWER_PERSON_DELETED, also for a child, ANSWER_NOT_YOURS if the address is another person's by
        now, or the guardian is blocked for the child or its guardian no more, NotFound QUESTION_NOT_FOUND.
        """
        if arrival and not chat and await self.has_lost(asked, arrival):
            raise Forbidden("ANSWER_NOT_YOURS", "The address belongs to another person by now.")
        recipient, (channel, parcel, contact) = asked.recipient, arrival or AnsweredMessage("", 0, 0)
        item = (chat or asked).entry(channel, contact).item(Status.READ, Reason.ANSWERED) if arrival else []
        name, number, place = person_key(recipient.id), recipient.number, chat.recipient.number if chat else -1
        child = asked.child(value)
        if child:
            await self._check_guardian(asked, child)
            name, number, who, value = (
                person_key(child.id),
                child.number,
                id_text(recipient.id),
                value.partition(":")[2],
            )
        given = (event, value, text, by, who, channel, parcel, compact_json(item), place)
        reply = await self._store.run("answer", asked.key.shard, asked.key.suffix, asked.tenant, name, number, *given)
        if reply[0] == "deleted":
            raise _person_deleted()
        row = load_row(reply[1]) if len(reply) > 1 else None
        if row is None:
            raise no_question()
        if child is None:
            return GivenAnswer(reply[0], asked.key, recipient.id, asked.question, row)
        return GivenAnswer(reply[0], asked.key, child.id, asked.question, _said_by(row, who, child))

    async def _check_guardian(self, asked: AskedRecipient, child: AskedChild) -> None:
        (user,) = await self._users.lookup(asked.tenant, [child.id])
        if user is None and await self._departed.was_deleted(asked.tenant, child.id):
            raise _person_deleted()
        if is_barred_by(user, await self._current.ids_of(asked.tenant, asked.recipient.id)):
            raise Forbidden("ANSWER_NOT_YOURS", "This is not a guardian of the child any more, or is blocked for it.")

    async def message_at(self, asked: AskedRecipient, channel: str, address: str) -> AnsweredMessage | None:
        """Return the message that a recipient has got at an address; None if it has none there."""
        if channel not in asked.channels:
            return None
        plan = load_plan(asked.fields["plan"] or "")[asked.channels.index(channel)]
        parcel, entries = await self._reader.entries_of(asked.key, plan, asked.recipient.number)
        own = [one.contact for one in entries if one.address and canonical(channel, one.address) == address]
        return AnsweredMessage(channel, parcel, own[0]) if own else None

    async def has_lost(self, asked: AskedRecipient, message: AnsweredMessage) -> bool:
        """Return whether the address to which a message went was removed from its person meanwhile."""
        plan = load_plan(asked.fields["plan"] or "")[asked.channels.index(message.channel)]
        _, entries = await self._reader.entries_of(asked.key, plan, asked.recipient.number)
        own = [one.address for one in entries if one.contact == message.contact and one.address]
        contacts = [(asked.recipient.id, message.channel, address) for address in own]
        return any(await self._current.have_lost(asked.tenant, contacts, int(asked.fields["created"] or 0)))

    async def find(self, shard: int, code: str, number: int, *more: str) -> AskedRecipient:
        """Return the recipient with this number of the delivery whose question has this code. `more`: further fields of
        its history. Raises NotFound QUESTION_NOT_FOUND.
        """
        known = shard < self._store.shards
        suffix = await self._store.command("GET", KEYS["asked"].at(shard, code)) if known else None
        if suffix is None:
            raise no_question()
        key, page = HistoryKey.of(shard, suffix), number // PAGE
        fields = await self._reader.read_fields(key, (*_FIELDS, f"people:{page}", *more))
        question, text = question_of(fields), fields[f"people:{page}"]
        people = load_recipients(text, page) if text else []
        if question is None or number % PAGE >= len(people):
            raise no_question()
        recipient, content = people[number % PAGE], load_content(fields["content"])
        asked = asked_for(in_language(question, recipient.locale), recipient.asked_children)
        return AskedRecipient(key, fields["tenant"] or "", asked, recipient, channels_of(fields), content, fields)


def chosen_keys(said: Sequence[tuple[AskedChild, Voice | None]]) -> Sequence[str]:
    """Return what was said for children as keys of the question that a recipient is asked."""
    return [f"{child.number}:{voice.value}" for child, voice in said if voice]


def written_value(question: Question, text: str) -> tuple[str, str]:
    """Return the value and the words of a written answer. Raises Invalid ANSWER_MALFORMED."""
    found = read_value(question.kind, text)
    if found is None:
        raise Invalid("ANSWER_MALFORMED", f"The question asks for another kind of answer: {question.kind}.", "value")
    return found


def _said_by(row: AnswerRow, who: str, child: AskedChild) -> AnswerRow:
    """Return the row of a child as one of its guardians may see it: with its own answer, as a key of its question; ""
    without one, also if another guardian has answered.
    """
    said = next((one.value for one in row.voices if one.who == who), "")
    return with_fields(row, value=f"{child.number}:{said}" if said else "", text="", voices=(), conflict=False)


def _person_deleted() -> Forbidden:
    return Forbidden("ANSWER_PERSON_DELETED", "The data of this person were deleted.", "recipient")


def no_question() -> NotFound:
    return NotFound("QUESTION_NOT_FOUND", "There is no such question, or it is no longer kept.")
