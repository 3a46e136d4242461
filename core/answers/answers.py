"""Answers to the questions of deliveries: pressed or entered on behalf, read, closed.

Called by `core.updates.presses` and by `delivery/`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from core.answers.buttons import Rows, answered_rows
from core.answers.tokens import AnswerTokens
from core.deliveries.histories.encoding import PAGE, StoredRecipient, load_content, load_recipients
from core.deliveries.histories.parcels import Entry
from core.deliveries.histories.projection import channels_of
from core.deliveries.histories.reader import HistoryReader
from core.errors import Forbidden, Invalid, NotFound
from core.model.compact_json import compact_json
from core.model.content import Content
from core.model.history_key import HistoryKey
from core.model.question import GivenAnswer, Question, load_question, load_row
from core.model.states import Reason, Status
from core.redis.keys import KEYS
from core.redis.store import Store

PRESS, ON_BEHALF = "press", "on_behalf"


class PressedAnswer(NamedTuple):
    """`buttons`: how the message shows the answer."""

    given: GivenAnswer
    buttons: Rows


class _Asked(NamedTuple):
    question: Question
    recipient: StoredRecipient
    channels: Sequence[str]
    content: Content | None


class Answers:
    """Counts answers, and closes questions. Methods raise StoreError."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reader = HistoryReader(store)
        self._tokens = AnswerTokens(store)

    async def press(self, tenant: str, channel: str, address: str, token: str, event: str) -> PressedAnswer:
        """Count the press of a button by an account; a repeat of the event returns its first result. `event`: names it,
        without spaces. Raises Forbidden ANSWER_TOKEN_WRONG, ANSWER_NOT_YOURS,
        ANSWER_PERSON_DELETED, NotFound QUESTION_NOT_FOUND.
        """
        pressed = await self._tokens.read(tenant, channel, address, token)
        suffix = await self._suffix_of(pressed.shard, pressed.code)
        if suffix is None:
            raise _no_question()
        key = HistoryKey.of(pressed.shard, suffix)
        asked = await self._asked(key, tenant, pressed.number)
        question, recipient, channels = asked.question, asked.recipient, asked.channels
        if channel not in channels or pressed.option >= len(question.options):
            raise _no_question()
        contacts = recipient.contacts[channels.index(channel)]
        entry = Entry(recipient.id, recipient.number, pressed.contact, contacts, "")
        arrival = entry.item(Status.READ, Reason.ANSWERED)
        value = question.options[pressed.option].key
        given = await self._answer(
            key, tenant, question, recipient, event, value, PRESS, "", channel, pressed.parcel, arrival
        )
        tokens = await self._tokens.of_options(tenant, channel, address, pressed, len(question.options))
        return PressedAnswer(given, answered_rows(asked.content, question, tokens, given.row.value))

    async def enter(
        self, key: HistoryKey, tenant: str, recipient: str, value: str, who: str, event: str
    ) -> GivenAnswer:
        """Count an answer that `who` enters on behalf of a recipient, which may still change it. Raises NotFound
        HISTORY_NOT_FOUND, QUESTION_NOT_FOUND, RECIPIENT_NOT_FOUND, Invalid OPTION_UNKNOWN.
        """
        fields = await self._reader.fields(key, tenant)
        question = load_question(fields["answer"])
        if question is None:
            raise _no_question()
        if question.option(value) is None:
            raise Invalid("OPTION_UNKNOWN", f"The question has no option {value!r}.", "value")
        people = await self._reader.recipients(key, fields)
        found = next((one for one in people if str(one.id) == recipient), None)
        if found is None:
            raise NotFound("RECIPIENT_NOT_FOUND", f"The delivery has no recipient {recipient!r}.")
        return await self._answer(key, tenant, question, found, event, value, ON_BEHALF, who)

    async def close(self, key: HistoryKey, tenant: str, *, only_due: bool = False) -> bool:
        """Close the question of a delivery; return False if it was closed before, or with `only_due` is not due. Raises
        NotFound QUESTION_NOT_FOUND.
        """
        if key.shard >= self._store.shards:
            raise _no_question()
        result = await self._store.run("close_answers", key.shard, key.suffix, tenant, int(only_due))
        if result == "missing":
            raise _no_question()
        return bool(result == "closed")

    async def _answer(
        self,
        key: HistoryKey,
        tenant: str,
        question: Question,
        recipient: StoredRecipient,
        event: str,
        value: str,
        by: str,
        who: str = "",
        channel: str = "",
        parcel: int = 0,
        arrival: Sequence[Any] = (),
    ) -> GivenAnswer:
        name = f"{'i' if isinstance(recipient.id, int) else 's'}{recipient.id}"
        given = (event, value, "", by, who, channel, parcel, compact_json(list(arrival)))
        reply = await self._store.run("answer", key.shard, key.suffix, tenant, name, recipient.number, *given)
        if reply[0] == "deleted":
            raise Forbidden("ANSWER_PERSON_DELETED", "The data of this person were deleted.")
        row = load_row(reply[1]) if len(reply) > 1 else None
        if row is None:
            raise _no_question()
        return GivenAnswer(reply[0], key, recipient.id, question, row)

    async def _suffix_of(self, shard: int, code: str) -> str | None:
        if shard >= self._store.shards:
            return None
        suffix: str | None = await self._store.command("GET", KEYS["asked"].at(shard, code))
        return suffix

    async def _asked(self, key: HistoryKey, tenant: str, number: int) -> _Asked:
        """Return the question and the recipient with this number. Raises NotFound QUESTION_NOT_FOUND."""
        page = number // PAGE
        fields = await self._reader.read_fields(key, ("tenant", "answer", "content", "plan", f"people:{page}"))
        question, text = load_question(fields["answer"]), fields[f"people:{page}"]
        people = load_recipients(text, page) if text else []
        if fields["tenant"] != tenant or question is None or number % PAGE >= len(people):
            raise _no_question()
        return _Asked(question, people[number % PAGE], channels_of(fields), load_content(fields["content"]))


def _no_question() -> NotFound:
    return NotFound("QUESTION_NOT_FOUND", "There is no such question, or it is no longer kept.")
