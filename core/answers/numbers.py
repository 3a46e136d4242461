"""Answers in a channel without buttons: the numbers of options, which an address has for each open question.

    couriers.sending ─▶ AnswerNumbers.reserve: the numbers in the text
    core.updates.events ─▶ AnswerNumbers.read: what a text answers ─▶ core.updates.answer_worker ─▶ `Answers.record`

Guarantees: a number of an address means one option of one question, until a day after its closing. A question without a
time to close has its numbers for at most `LONGEST`.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from itertools import islice

import msgspec
from msgspec import Struct

from core.answers.answers import (
    MAIL,
    NUMBER,
    TEXT,
    AnsweredMessage,
    Answers,
    AskedRecipient,
    no_question,
    written_value,
)
from core.answers.values import AskedInText, TextAnswer, folded, meaning, written_answer
from core.deliveries.received import Choices, ReceivedMessage
from core.errors import NotFound
from core.model.clock import in_ms
from core.model.contacts.addresses import canonical
from core.model.history_key import HistoryKey, code_of
from core.model.json_form import compact_json
from core.model.question import AnswerKind, AnswerVisibility, GivenAnswer, Question, row_field
from core.redis.keys import KEYS
from core.redis.store import Store

LONGEST = timedelta(days=90)
_DAY_MS = in_ms(timedelta(days=1))
_LONGEST_OPTION, _MOST_LOOKED_AT = 150, 20
"""Characters of an option with the name of a child before it; questions of which a text may be an option."""


class TextMeaning(Struct, frozen=True, omit_defaults=True):
    """The answer in a text, as its event keeps it. `place`: "" if that is unclear. `option`: from 0. `is_number`: the
    text has said a number. `value`: what was written to a question without options, and whether it `is_wrong`.
    `is_free_to_reply`: a reply to the address costs nothing. `is_mailed`: the text is a mail. `more`: options for
    further children.
    """

    place: str = ""
    parcel: int = 0
    contact: int = 0
    option: int = 0
    note: str = ""
    is_number: bool = False
    value: str = ""
    is_wrong: bool = False
    is_free_to_reply: bool = False
    is_mailed: bool = False
    more: Sequence[int] = ()

    @property
    def by(self) -> str:
        """Return how the question is answered: mail, number or text."""
        if self.is_mailed:
            return MAIL
        return NUMBER if self.is_number else TEXT


class NumberedQuestion(Struct, frozen=True):
    """A question that an address answers by numbers, as it is stored. `ends`: ms. `numbers`: none where a text is
    enough, because it can quote the question.
    """

    parcel: int
    contact: int
    ends: int
    numbers: Sequence[int] = ()


class AnswerNumbers:
    """One per process. Methods raise StoreError."""

    def __init__(self, store: Store, answers: Answers | None = None) -> None:
        self._store = store
        self._answers = answers or Answers(store)
        self._choices = Choices(store)

    async def reserve(
        self,
        tenant: str,
        channel: str,
        address: str,
        key: HistoryKey,
        question: Question,
        number: int,
        message: AnsweredMessage,
        *,
        by_text: bool = False,
    ) -> Sequence[int]:
        """Return the numbers of the options of a question at an address, the same for each repeat; none if there are
        not enough. A question without options has one number. `number`: of the recipient. `by_text`: it needs none, as
        a text can quote it.
        """
        place, address = f"{key.shard}.{code_of(key)}.{number}", canonical(channel, address)
        over = [
            one for one in await self._stored(tenant, channel, address) if one != place and await self._is_over(one)
        ]
        ends = (question.until or _now() + in_ms(LONGEST)) + _DAY_MS
        shard = self._store.shard_of_person(tenant, channel, address)
        place_of_message = message.parcel, message.contact
        owner = tenant, channel, address, place, 0 if by_text else max(1, len(question.options))
        numbers: Sequence[int] = await self._store.run(
            "reserve_numbers", shard, *owner, *place_of_message, ends, compact_json(over)
        )
        return numbers

    async def read(self, tenant: str, channel: str, address: str, text: str) -> TextMeaning | None:
        """Return what a text of an address answers; None if it is no answer to a question that was sent there."""
        address = canonical(channel, address)
        stored = await self._stored(tenant, channel, address)
        asked = await self._asked(tenant, channel, stored) if stored else {}
        found = meaning(text, [one for one, _ in asked.values()])
        if found is None:
            return None
        if isinstance(found, str) or await self._is_choice(tenant, channel, address, text):
            return TextMeaning()
        return _as_meaning(found, stored[found.place])

    async def read_quoting(
        self, tenant: str, channel: str, address: str, text: str, quoted: ReceivedMessage
    ) -> TextMeaning | None:
        """Return what a text answers that quotes the message of a question: an option in words, or a value; None for
        other words and messages.
        """
        place, address = f"{quoted.key.shard}.{code_of(quoted.key)}.{quoted.number}", canonical(channel, address)
        stored = {name: row for name, row in (await self._stored(tenant, channel, address)).items() if name == place}
        for asked, _ in (await self._asked(tenant, channel, stored)).values():
            if not asked.question.has_options:
                return _as_meaning(written_answer(text, asked), stored[place])
        return await self._chosen(tenant, channel, address, text, place)

    async def read_option(
        self, tenant: str, channel: str, address: str, text: str, received: Iterable[ReceivedMessage]
    ) -> TextMeaning | None:
        """Return the option whose words a text has, of the only open question with buttons that has it among the newest
        of these messages of an address; None for other words, and for a hidden question, which a press answers.
        """
        address, said, found = canonical(channel, address), folded(text), list[str]()
        places = dict.fromkeys(f"{one.key.shard}.{code_of(one.key)}.{one.number}" for one in received)
        for place in islice(places, _MOST_LOOKED_AT) if len(said) <= _LONGEST_OPTION else ():
            asked = await self._find(place)
            if asked and asked.question.visible is AnswerVisibility.NAMED and not asked.is_closed(_now()):
                found += [place for one in asked.question.options if folded(one.text) == said]
        return await self._chosen(tenant, channel, address, text, found[0]) if len(found) == 1 else None

    async def _chosen(self, tenant: str, channel: str, address: str, text: str, place: str) -> TextMeaning | None:
        """Return the option of a question with buttons that words choose, of which it is certain that they mean it."""
        asked = await self._find(place)
        if asked is None or asked.tenant != tenant or asked.question.is_anonymous:
            return None
        message = await self._answers.message_at(asked, channel, address)
        if message is None or await self._answers.has_lost(asked, message):
            return None
        found = meaning(text, [AskedInText(place, asked.question, (), is_open=True)])
        row = NumberedQuestion(message.parcel, message.contact, 0)
        return _as_meaning(found, row) if isinstance(found, TextAnswer) else None

    async def read_edited(self, tenant: str, channel: str, address: str, text: str, place: str) -> TextMeaning:
        """Return what the new words of an answer say to its question; words that are no option have no place."""
        address = canonical(channel, address)
        stored = {name: row for name, row in (await self._stored(tenant, channel, address)).items() if name == place}
        for asked, _ in (await self._asked(tenant, channel, stored)).values():
            has_options = asked.question.has_options
            open_again = asked._replace(is_answered=False, is_open=True)
            found = meaning(text, [open_again]) if has_options else written_answer(text, asked)
            if isinstance(found, TextAnswer):
                return _as_meaning(found, stored[place])
        return TextMeaning()

    async def read_mail(self, text: str, key: HistoryKey, number: int, message: AnsweredMessage) -> TextMeaning | None:
        """Return what a mail answers that replies to one message: an option by its number or its text in the first
        line, or a value; None for other words, and if nothing is asked there that can be answered in words. `number`:
        of the recipient.
        """
        place = f"{key.shard}.{code_of(key)}.{number}"
        asked = await self._find(place)
        if asked is None or asked.question.is_anonymous or asked.question.kind is AnswerKind.FILE:
            return None
        if await self._answers.has_lost(asked, message):
            return None
        question, numbers = asked.question, range(1, len(asked.question.options) + 1)
        # Late words count as a late answer, and the person gets a reply that says so.
        in_text = AskedInText(
            place, question, numbers, is_open=True, is_about_children=bool(asked.recipient.asked_children)
        )
        row = NumberedQuestion(message.parcel, message.contact, 0)
        if not question.has_options:
            return _as_meaning(written_answer(text, in_text), row, is_mailed=True)
        line, _, rest = text.strip().partition("\n")
        found = meaning(line, [in_text])
        if not isinstance(found, TextAnswer):
            return None
        note = "\n".join(filter(None, (found.note, rest.strip())))
        return _as_meaning(found._replace(note=note), row, is_mailed=True)

    async def may_answer_hidden(self, text: str, asked_in: Iterable[tuple[HistoryKey, int]]) -> bool:
        """Return whether a text may be meant as an answer to an open question that is hidden or anonymous, of one of
        these deliveries, each with the number of the recipient there.
        """
        places = dict.fromkeys(f"{key.shard}.{code_of(key)}.{number}" for key, number in asked_in)
        found = [asked for place in places if (asked := await self._find(place))]
        hidden = [
            AskedInText("", one.question, (), not one.is_closed(_now()), is_answered=False)
            for one in found
            if one.question.visible is not AnswerVisibility.NAMED
        ]
        return meaning(text, hidden) is not None

    async def asked(self, place: str) -> AskedRecipient:
        """Return the question of a meaning. Raises NotFound QUESTION_NOT_FOUND."""
        asked = await self._find(place)
        if asked is None:
            raise no_question()
        return asked

    async def _is_choice(self, tenant: str, channel: str, address: str, text: str) -> bool:
        """Return whether a text is the number of a choice, too, that a later message has offered."""
        return await self._choices.button_of(tenant, channel, address, text) is not None

    async def answer(self, tenant: str, channel: str, given: TextMeaning, event: str) -> GivenAnswer:
        """Count what a text has answered, without `more`. Raises NotFound QUESTION_NOT_FOUND, Forbidden
        ANSWER_PERSON_DELETED.
        """
        asked = await self._find(given.place)
        if asked is None or asked.tenant != tenant:
            raise no_question()
        question = asked.question
        message, note = AnsweredMessage(channel, given.parcel, given.contact), given.note
        if question.has_options:
            value = question.options[given.option].key
        else:
            value, note = written_value(question, given.value)
        return await self._answers.record(asked, event, value, given.by, text=note, arrival=message)

    async def is_asked_by_bot(self, tenant: str, channel: str, user: str, chat: str) -> bool:
        """Return whether a bot has asked a person in a chat, and waits for a text."""
        key = KEYS["question"].at(self._store.shard_of_person(tenant, channel, user), tenant, channel, user, chat)
        return bool(await self._store.command("EXISTS", key))

    async def open_questions(self, tenant: str, channel: str, address: str) -> Sequence[tuple[str, AskedInText]]:
        """Return the open questions of an address, each with the text of its delivery."""
        asked = await self._asked(tenant, channel, await self._stored(tenant, channel, canonical(channel, address)))
        return [(one.text, found) for found, one in asked.values() if found.is_open]

    async def _asked(
        self, tenant: str, channel: str, stored: Mapping[str, NumberedQuestion]
    ) -> Mapping[str, tuple[AskedInText, AskedRecipient]]:
        """Return the questions of an address, without those that a former owner of it was asked."""
        found: dict[str, tuple[AskedInText, AskedRecipient]] = {}
        for place, row in stored.items():
            asked = await self._find(place)
            message = AnsweredMessage(channel, row.parcel, row.contact)
            if asked and asked.tenant == tenant and not await self._answers.has_lost(asked, message):
                is_answered = asked.fields[row_field(asked.recipient.number)] is not None
                is_open = not asked.is_closed(_now())
                in_text = AskedInText(
                    *(place, asked.question, row.numbers, is_open, is_answered), bool(asked.recipient.asked_children)
                )
                found[place] = in_text, asked
        return found

    async def _stored(self, tenant: str, channel: str, address: str) -> dict[str, NumberedQuestion]:
        shard = self._store.shard_of_person(tenant, channel, address)
        rows = await self._store.command("HGETALL", KEYS["answer_numbers"].at(shard, tenant, channel, address))
        return {place: _decode(row) for place, row in rows.items()}

    async def _is_over(self, place: str) -> bool:
        """Return whether a question was closed a day ago, or is no longer kept."""
        asked = await self._find(place)
        return asked is None or asked.is_closed(_now() - _DAY_MS)

    async def _find(self, place: str) -> AskedRecipient | None:
        shard, code, number = place.split(".")
        try:
            return await self._answers.find(int(shard), code, int(number), row_field(int(number)))
        except NotFound:
            return None


def _as_meaning(found: TextAnswer, row: NumberedQuestion, *, is_mailed: bool = False) -> TextMeaning:
    value = found.value, found.is_wrong, not row.numbers, is_mailed
    return TextMeaning(
        found.place, row.parcel, row.contact, found.option, found.note, found.is_number, *value, found.more
    )


def _now() -> int:
    return int(time.time() * 1000)


_decode = msgspec.json.Decoder(NumberedQuestion).decode
