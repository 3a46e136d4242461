"""Links to the page on which a recipient answers: in mails, SMS, and wherever a channel has no buttons for it.

    the token of a link ─▶ AnswerLinks.open ─▶ delivery/api/recipient_pages ─▶ AnswerLinks.answer ─▶ `Answers.record`

A link names its recipient and is signed with 128 bits, so it needs no account and no cookie: whoever has it answers as
this person. Opening it changes nothing.
"""

from collections.abc import Sequence
from typing import NamedTuple

from core.answers.answers import AnsweredMessage, Answers, AskedRecipient, chosen_keys, no_question
from core.answers.buttons import AnswerTokens
from core.deliveries.histories.parcels import load_parcel
from core.deliveries.histories.reader import HistoryReader
from core.errors import Forbidden
from core.model.clock import to_ms
from core.model.question import AnswerRow, GivenAnswer, Question, Voice, channel_code, load_row, row_field
from core.redis.store import Store

LINK = "link"
CORRECTION_MS = 60_000
"""As in lua/answers/modules/answers.lua."""


class LinkedQuestion(NamedTuple):
    """The content of the page. `row`: None before an answer. `may_answer`: until an answer is final, of a guardian
    until all of its answers are. `chosen`: the keys of the options that a guardian has chosen for its children.
    """

    asked: AskedRecipient
    message: AnsweredMessage
    row: AnswerRow | None
    is_closed: bool
    may_answer: bool
    chosen: Sequence[str] = ()

    @property
    def is_open(self) -> bool:
        """Return whether the page offers to answer."""
        return self.may_answer and not self.is_closed


class AnswerLinks:
    """Methods raise StoreError."""

    def __init__(self, store: Store, answers: Answers) -> None:
        self._store = store
        self._answers = answers
        self._reader = HistoryReader(store)
        self._tokens = AnswerTokens(store)

    async def open(self, token: str) -> LinkedQuestion:
        """Return the question behind a link; nothing changes. Raises Forbidden ANSWER_TOKEN_WRONG,
        ANSWER_PERSON_DELETED, NotFound QUESTION_NOT_FOUND.
        """
        place = await self._tokens.read_link(token)
        row_name = row_field(place.number)
        asked = await self._answers.find(place.shard, place.code, place.number, row_name)
        channel = next((one for one in asked.channels if channel_code(one) == place.channel), "")
        if not channel:
            raise no_question()
        message = AnsweredMessage(channel, place.parcel, place.contact)
        if await self._is_deleted(asked, message):
            raise Forbidden("ANSWER_PERSON_DELETED", "The data of this person were deleted.")
        now = to_ms(self._store.now())
        said = await self._answers.said_for_children(asked)
        row = None if said else load_row(asked.fields[row_name])
        before: Sequence[AnswerRow | Voice | None] = [voice for _, voice in said] or [row]
        may_answer = any(one is None or _may_change(asked.question, one, now) for one in before)
        return LinkedQuestion(asked, message, row, asked.is_closed(now), may_answer, chosen_keys(said))

    async def answer(self, token: str, given: str, event: str) -> GivenAnswer:
        """Count an answer; after the closing it is late. `given`: as `Answers.entered`. Raises as it does, and as
        `open`.
        """
        linked = await self.open(token)
        value, text = await self._answers.entered(linked.asked.question, linked.asked.tenant, given)
        return await self._answers.record(linked.asked, event, value, LINK, text=text, arrival=linked.message)

    async def _is_deleted(self, asked: AskedRecipient, message: AnsweredMessage) -> bool:
        """Return whether the address was removed with the data of its person."""
        name = f"parcel:{message.channel}:{message.parcel}"
        stored = (await self._reader.read_fields(asked.key, [name]))[name]
        entries = load_parcel(stored)[1] if stored else ()
        place = (asked.recipient.number, message.contact)
        return any(not one.address for one in entries if (one.number, one.contact) == place)


def _may_change(question: Question, before: AnswerRow | Voice, now: int) -> bool:
    return not question.is_anonymous and (question.change or now < before.at + CORRECTION_MS)
