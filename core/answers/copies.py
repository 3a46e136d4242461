"""The other messages that ask a recipient the same question: they show what was answered elsewhere, and those of group
chats how many have answered what.

    lua/answers/modules/answers.lua puts a task of the kind `copies` ─▶ AnswerWorker ─▶ Copies.of ─▶ bot calls

A copy is a message with buttons in a channel through which the answer did not come. Of the last answer: an earlier task
that is late shows it, too.
"""

import time
from collections.abc import AsyncIterator, Collection, Sequence
from typing import NamedTuple

from core.answers.answers import Answers, AskedRecipient
from core.answers.buttons import AnswerTokens, Rows, answered_rows, asking, counting_rows
from core.deliveries.channels import Channels
from core.deliveries.histories.encoding import ChannelPlan, load_plan
from core.deliveries.histories.parcels import Entry, load_parcel
from core.deliveries.histories.projection import read_outcome
from core.deliveries.histories.reader import HistoryReader
from core.errors import NotFound
from core.model.contacts.addresses import is_group
from core.model.history_key import HistoryKey, code_of
from core.model.question import Pressed, load_row, row_field
from core.redis.store import Store


class Copy(NamedTuple):
    """A message, and the buttons that it is to show. `message`: the provider's id. `version`: of the answer."""

    channel: str
    address: str
    message: str
    buttons: Rows
    version: int


class _CopyPlace(NamedTuple):
    channel: str
    parcel: int
    entry: Entry


class Copies:
    """One per process. Methods raise StoreError."""

    def __init__(self, store: Store, answers: Answers) -> None:
        self._answers = answers
        self._reader = HistoryReader(store)
        self._channels = Channels(store)
        self._tokens = AnswerTokens(store)

    async def of(self, key: HistoryKey, number: int, answered_in: str) -> Sequence[Copy]:
        """Return the copies of a question for the recipient with this number. `answered_in`: the channel of the answer,
        "" for none.
        """
        row_name = row_field(number)
        try:
            asked = await self._answers.find(key.shard, code_of(key), number, row_name)
        except NotFound:
            return []
        row = load_row(asked.fields[row_name])
        if row is None or asked.is_closed(time.time() * 1000):  # the closing removes the buttons
            return []
        places = [place for channel in await self._with_buttons(asked, answered_in)
                  for place in await self._places(asked, channel, number)]  # fmt: skip
        return [copy for place in places if (copy := await self._copy(asked, place, [row.value], row.version))]

    async def of_chats(self, key: HistoryKey) -> Sequence[Copy]:
        """Return the messages of the group chats in which somebody has answered, with the totals."""
        try:
            asked = await self._answers.find(key.shard, code_of(key), 0, "answers_chats")
        except NotFound:
            return []
        chats = [int(number) for number in (asked.fields["answers_chats"] or "").split()]
        return [
            copy
            for number in chats
            for own in [await self._answers.find(key.shard, code_of(key), number)]
            for channel in await self._with_buttons(own, "")
            for place in await self._places(own, channel, number)
            if is_group(channel, place.entry.address) and (copy := await self._copy(own, place, [], 0))
        ]

    async def all(self, key: HistoryKey) -> AsyncIterator[Copy]:
        """Emit every message with buttons of a question, as its recipient is to see it now."""
        try:
            asked = await self._answers.find(key.shard, code_of(key), 0)
        except NotFound:
            return
        plans = load_plan(asked.fields["plan"] or "")
        channels = await self._with_buttons(asked, "")
        for plan in (one for one in plans if one.channel in channels):
            for parcel in range(len(plan.parcels)):
                entries = [one for one in await self._entries(asked, plan, parcel) if one.address]
                rows = await self._reader.read_fields(key, [row_field(one.number) for one in entries])
                for entry in entries:
                    row = load_row(rows[row_field(entry.number)])
                    own = await self._answers.find(key.shard, code_of(key), entry.number)
                    chosen, version = ([row.value], row.version) if row else ([], 0)
                    if asked.fields["answers_children"]:
                        chosen = list(await self._answers.chosen(own)) or chosen
                    if copy := await self._copy(own, _CopyPlace(plan.channel, parcel, entry), chosen, version):
                        yield copy

    async def _with_buttons(self, asked: AskedRecipient, answered_in: str) -> Sequence[str]:
        """Return the other channels that ask by buttons."""
        others = {*asked.channels} - {answered_in}
        displays = [one for one in await self._channels.views() if one.name in others and one.display]
        return [
            one.name
            for one in displays
            if one.display and asking(asked.content, asked.question, one.display.shows, one.display.written_as_text)
        ]

    async def _places(self, asked: AskedRecipient, channel: str, number: int) -> Sequence[_CopyPlace]:
        """Return the entries of the recipient with this number in a channel, none if its data were deleted."""
        plan = next(one for one in load_plan(asked.fields["plan"] or "") if one.channel == channel)
        parcel, entries = await self._reader.entries_of(asked.key, plan, number)
        return [_CopyPlace(channel, parcel, one) for one in entries if one.address]

    async def _entries(self, asked: AskedRecipient, plan: ChannelPlan, parcel: int) -> Sequence[Entry]:
        name = f"parcel:{plan.channel}:{parcel}"
        stored = (await self._reader.read_fields(asked.key, [name]))[name]
        return load_parcel(stored).entries if stored else ()

    async def _copy(
        self, asked: AskedRecipient, place: _CopyPlace, chosen: Collection[str], version: int
    ) -> Copy | None:
        """Return a copy; None if its message was not sent, or its id is unknown."""
        (channel, parcel, entry), question = place, asked.question
        field = entry.field(channel)
        outcome = (await self._reader.outcomes(asked.key, [field]))[field]
        reference = read_outcome(outcome, over=False).reference if outcome else None
        if not reference:
            return None
        shard, code = asked.key.shard, code_of(asked.key)
        pressed = Pressed(shard, code, entry.number, parcel, entry.contact, is_anonymous=question.is_anonymous)
        account = asked.tenant, channel, entry.address
        tokens = await self._tokens.of_options(*account, pressed, len(question.options))
        if is_group(channel, entry.address):
            counts = (await self._reader.summary(asked.key, asked.tenant)).answers
            buttons = counting_rows(asked.content, question, tokens, counts.options if counts else {})
        else:
            buttons = answered_rows(asked.content, question, tokens, chosen)
        return Copy(channel, entry.address, reference.rpartition(",")[2], buttons, version)
