"""The questions of deliveries while they are open: closed, opened again, asked of further people, reminded of."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from core.answers.answers import no_question
from core.answers.current_people import CurrentPeople, is_barred_by
from core.deliveries.histories.projection import HistoryFields, channels_of, waves_of
from core.deliveries.histories.reader import HistoryReader
from core.directory import Directory
from core.directory.departed import DepartedPeople
from core.errors import Conflict, NotFound
from core.model.clock import to_ms
from core.model.history_key import HistoryKey
from core.model.people import User
from core.model.question import AnswerState, row_field
from core.redis.store import Store

NobodyReminded = Literal["all_answered", "unreached", "unwanted"]


class OpenQuestions:
    """One per process. Methods raise StoreError."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reader = HistoryReader(store)
        self._users = Directory(store).users
        self._departed = DepartedPeople(store)
        self._current = CurrentPeople(store)

    async def close(self, key: HistoryKey, tenant: str, *, only_due: bool = False) -> bool:
        """Close the question of a delivery; return False if it was closed before, or with `only_due` is not due. Raises
        NotFound QUESTION_NOT_FOUND.
        """
        if key.shard >= self._store.shards:
            raise no_question()
        result = await self._store.run("close_answers", key.shard, key.suffix, tenant, int(only_due))
        if result == "missing":
            raise no_question()
        return bool(result == "closed")

    async def reopen(self, key: HistoryKey, tenant: str, until: datetime | None = None) -> bool:
        """Open a closed question again; return False if it is open. `until`: when it closes by itself. Raises NotFound
        QUESTION_NOT_FOUND, Conflict QUESTION_CANCELLED.
        """
        if key.shard >= self._store.shards:
            raise no_question()
        result = await self._store.run("reopen_answers", key.shard, key.suffix, tenant, to_ms(until) if until else 0)
        if result == "missing":
            raise no_question()
        if result == "cancelled":
            raise Conflict("QUESTION_CANCELLED", "The delivery was cancelled, and so was its question.")
        return bool(result == "reopened")

    async def ask_next(self, key: HistoryKey, tenant: str, wave: int = 0) -> tuple[str, int]:
        """Ask further people, where the question needs a number of confirmations. `wave`: which one comes by time, 0
        after somebody has declined. Returns asked and how many people, or why not: again, closed, unsent, enough.
        Raises NotFound QUESTION_NOT_FOUND.
        """
        result, *people = await self._store.run("ask_wave", key.shard, key.suffix, tenant, wave)
        if result == "missing":
            raise no_question()
        return result, int(people[0]) if people else 0

    async def remind(self, key: HistoryKey, tenant: str, wave: int = 0, by: str = "") -> tuple[str, int]:
        """Remind those whose question is open. `wave`: which reminder, 0 for the next one; `by`: who wants it, "" if it
        was planned. Returns reminded and how many people, or why not: again, closed, unsent, enough. Raises NotFound
        QUESTION_NOT_FOUND.
        """
        if not wave:
            fields = await self._reader.fields(key, tenant)
            wave = len(waves_of(fields["answers_reminders"])) + 1
        if key.shard >= self._store.shards:
            raise no_question()
        unwanted = await self._unwanted(key, tenant)
        result, *people = await self._store.run("remind", key.shard, key.suffix, tenant, wave, by, *unwanted)
        if result == "missing":
            raise no_question()
        return result, int(people[0]) if people else 0

    async def why_nobody(self, key: HistoryKey, tenant: str) -> NobodyReminded:
        """Return why a reminder went to nobody: all_answered; unreached: nobody without an answer has got the message;
        unwanted: all without an answer have opted out, are blocked or have lost their addresses. Raises NotFound
        QUESTION_NOT_FOUND, HISTORY_NOT_FOUND.
        """
        totals = (await self._reader.summary(key, tenant)).answers
        if totals is None:
            raise no_question()
        if totals.states[AnswerState.OPEN]:
            return "unwanted"
        waits = totals.states[AnswerState.UNREACHABLE] + totals.states[AnswerState.NOT_ASKED]
        return "unreached" if waits else "all_answered"

    async def _unwanted(self, key: HistoryKey, tenant: str) -> list[str]:
        """Return `channel:number` of each recipient that by now is blocked for a child, is no guardian of a child any
        more, or is asked about none but children that have an answer or were deleted; and `channel:number:contact` of
        each address that it has no more, or at which it, or the person that has it, may not be written to.
        """
        try:
            fields = await self._reader.fields(key, tenant)
        except NotFound:
            return []
        recipients = await self._reader.recipients(key, fields)
        children = list({str(child.id): child.id for one in recipients for child in one.children}.values())
        known = dict(zip(map(str, children), await self._users.lookup(tenant, children), strict=True))
        asked = {child.number: str(child.id) for one in recipients for child in one.asked_children}
        over = await self._without_answer_to_come(key, tenant, asked, known)
        found = []
        for one in recipients:
            ids = await self._current.ids_of(tenant, one.id) if one.children else ()
            is_barred = any(is_barred_by(known[str(child.id)], ids) for child in one.children)
            is_barred |= bool(one.asked_children) and all(child.number in over for child in one.asked_children)
            found += [f"{channel}:{one.number}" for channel in channels_of(fields)] if is_barred else []
        return [*found, *await self._unwanted_addresses(key, tenant, fields)]

    async def _unwanted_addresses(self, key: HistoryKey, tenant: str, fields: HistoryFields) -> list[str]:
        parcels = [one async for one in self._reader.parcels(key, fields)]
        sent = [(parcel.channel, entry) for parcel in parcels for entry in parcel.entries if entry.address]
        contacts = [(entry.id, channel, entry.address) for channel, entry in sent]
        lost = await self._current.have_lost(tenant, contacts, int(fields["created"] or 0))
        accepted = await self._current.accept(tenant, contacts)
        return [
            f"{channel}:{entry.number}:{entry.contact}"
            for (channel, entry), is_lost, is_accepted in zip(sent, lost, accepted, strict=True)
            if is_lost or not is_accepted
        ]

    async def _without_answer_to_come(
        self, key: HistoryKey, tenant: str, asked: Mapping[int, str], known: Mapping[str, User | None]
    ) -> set[int]:
        """Return the rows of children that have an answer or were deleted, if any was. `asked`: row → id; `known`: id →
        the child in the directory.
        """
        unknown = {number: name for number, name in asked.items() if known[name] is None}
        gone = {number for number, name in unknown.items() if await self._departed.was_deleted(tenant, name)}
        if not gone:
            return gone
        rows = await self._reader.read_fields(key, [row_field(number) for number in asked])
        return gone | {number for number in asked if rows[row_field(number)]}
