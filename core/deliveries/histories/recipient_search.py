"""Pages of a delivery's recipients: those not reached first, filtered, and the reasons why people were not reached.

    bitmap of who was reached ─▶ numbers in order ─▶ the pages of people and outcomes that one page needs

A page without a filter reads only its own recipients, however many the delivery has. A filter reads on until the page
is full, and at most `MOST_READ` recipients: then the page ends early, with a cursor.
"""

from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from core.deliveries.histories.encoding import PAGE, StoredRecipient, load_recipients
from core.deliveries.histories.projection import HistoryFields
from core.deliveries.histories.reader import HistoryReader
from core.errors import malformed_cursor
from core.model.history import OutcomeRecord, RecipientRecord
from core.model.history_key import HistoryKey, Id
from core.model.people import id_text
from core.model.question import AnswerState, Question, RecipientAnswer, load_question
from core.model.states import OPEN, Status
from core.model.text.characters import folded
from core.redis.keys import KEYS
from core.redis.store import Store

MOST_READ = 4000
_AT_ONCE = 500
_PAGE = 1000
_WORD = 32

TELLING = (Status.FAILED, Status.UNKNOWN, Status.EXPIRED, Status.CANCELLED, Status.SKIPPED, Status.NO_CONTACT)
"""Of several outcomes of a person who was not reached, the first of these is the reason."""

_WITH_REASON = (Status.FAILED, Status.SKIPPED, Status.CANCELLED)
STILL_COMING = ("waiting", "later")


@dataclass(frozen=True, slots=True)
class RecipientFilter:
    """None and "": all. `status`, `reason` and `channel` are of one outcome. `text`: a part of the name or id. `why`:
    as `why_not_reached` says. `answer`, `option`: of the question of the delivery. `conflict`: children whose guardians
    differ. `members`: also those of group chats
    who have answered, at the end of the list; `called`: the ids of those whose names have `text`, as a history has no
    names of members.
    """

    status: Status | None = None
    reason: str = ""
    channel: str = ""
    text: str = ""
    why: str = ""
    reached: bool | None = None
    answer: AnswerState | None = None
    option: str = ""
    conflict: bool = False
    members: bool = False
    called: Collection[str] = ()

    @property
    def reads_outcomes(self) -> bool:
        return bool(self.status or self.reason or self.channel or self.text or self.why or self._asks)

    @property
    def _asks(self) -> bool:
        return bool(self.answer or self.option or self.conflict)

    def matches(self, record: RecipientRecord) -> bool:
        """Return whether a recipient is listed; `reached` is not looked at."""
        if self.text and not self._is_called(record):
            return False
        if self.why and why_not_reached(record) != self.why:
            return False
        if self._asks and not self._is_answered(record.answer):
            return False
        outcomes = record.outcomes.items()
        return any(self._is_wanted(channel, outcome) for channel, outcome in outcomes)

    def _is_called(self, record: RecipientRecord) -> bool:
        is_named = folded(self.text) in folded(f"{record.name or ''}\n{record.id}")
        return is_named or (record.is_member and id_text(record.id) in self.called)

    def _is_answered(self, answer: RecipientAnswer | None) -> bool:
        row = answer.row if answer else None
        value, differ = (row.value, row.conflict) if row else ("", False)
        is_wanted = answer is not None and self.answer in (None, answer.state) and self.option in ("", value)
        return is_wanted and (differ or not self.conflict)

    def _is_wanted(self, channel: str, outcome: OutcomeRecord) -> bool:
        return (
            self.channel in ("", channel)
            and self.status in (None, outcome.status)
            and self.reason in ("", outcome.reason or "")
        )


class RecipientPage(NamedTuple):
    """`next`: the cursor of the following page; a page may be short although there is one. `question`: of the delivery,
    None if it asks nothing.
    """

    recipients: Sequence[RecipientRecord]
    next: str | None
    question: Question | None = None


def why_not_reached(record: RecipientRecord) -> str | None:
    """Return why a person was not reached: a reason, a status, or one of `STILL_COMING`: `waiting` while a channel may
    still reach it, `later` if that waits for hours of its own; None if it was reached, or is the member of a group
    chat.
    """
    if record.received_in or record.is_member:
        return None
    if still_open := [one for one in record.outcomes.values() if one.status in OPEN]:
        return "later" if all(one.not_before for one in still_open) else "waiting"
    outcome = telling_outcome(record)
    if outcome is None:
        return str(Status.NO_CONTACT)
    return outcome.reason if outcome.reason and outcome.status in _WITH_REASON else str(outcome.status)


def telling_outcome(record: RecipientRecord) -> OutcomeRecord | None:
    """Return the outcome that explains why a person was not reached: the first of `TELLING`; None without any."""
    ended = [one for one in record.outcomes.values() if one.status in TELLING]
    return min(ended, key=lambda one: TELLING.index(one.status), default=None)


class RecipientSearch:
    """One per process."""

    def __init__(self, store: Store, reader: HistoryReader) -> None:
        self._store = store
        self._reader = reader

    async def page(
        self, key: HistoryKey, tenant: str, wanted: RecipientFilter, cursor: str | None, limit: int
    ) -> RecipientPage:
        """Return the next recipients. Raises NotFound HISTORY_NOT_FOUND, Invalid CURSOR_MALFORMED."""
        fields = await self._reader.fields(key, tenant)
        question = load_question(fields["answer"])
        places = await self._places(key, fields, wanted)
        start = _start_of(places, cursor)
        found: list[RecipientRecord] = []
        at_once = _AT_ONCE if wanted.reads_outcomes else limit
        for begin in range(start, min(len(places), start + MOST_READ), at_once):
            some = places[begin : begin + at_once]
            records = await self._records(key, fields, [place.number for place in some])
            for offset, record in enumerate(records, begin):
                if wanted.matches(record):
                    found.append(record)
                if len(found) == limit:
                    return RecipientPage(found, _cursor(places, offset + 1), question)
        return RecipientPage(found, _cursor(places, min(len(places), start + MOST_READ)), question)

    async def member_ids(self, key: HistoryKey, tenant: str) -> list[Id]:
        """Return the members of group chats who have answered. Raises NotFound HISTORY_NOT_FOUND."""
        return [one.id for one in await self._reader.members(key, await self._reader.fields(key, tenant))]

    async def records_of(self, key: HistoryKey, tenant: str, numbers: Sequence[int]) -> list[RecipientRecord]:
        """Return the recipients with these numbers. Raises NotFound HISTORY_NOT_FOUND."""
        return await self._records(key, await self._reader.fields(key, tenant), numbers)

    async def reasons(self, key: HistoryKey, tenant: str) -> Mapping[str, int]:
        """Return why people were not reached → how many, the most frequent first. Raises NotFound HISTORY_NOT_FOUND."""
        fields = await self._reader.fields(key, tenant)
        numbers = [one.number for one in await self._places(key, fields, RecipientFilter(reached=False))]
        counts: Counter[str] = Counter()
        for start in range(0, len(numbers), _AT_ONCE):
            records = await self._records(key, fields, numbers[start : start + _AT_ONCE])
            counts.update(why for record in records if (why := why_not_reached(record)))
        return dict(counts.most_common())

    async def all(self, key: HistoryKey, tenant: str, wanted: RecipientFilter) -> AsyncIterator[RecipientPage]:
        """Emit all pages. Raises NotFound HISTORY_NOT_FOUND."""
        cursor: str | None = None
        while True:
            page = await self.page(key, tenant, wanted, cursor, _PAGE)
            yield page
            cursor = page.next
            if cursor is None:
                return

    async def _places(self, key: HistoryKey, fields: HistoryFields, wanted: RecipientFilter) -> list["_RecipientPlace"]:
        """Return the recipients in the order of the list: those not reached first."""
        total = int(fields["recipients"] or 0)
        reached = await self.reached(key, total)
        places = [_RecipientPlace(number in reached, number) for number in range(total)]
        found = sorted(one for one in places if wanted.reached in (None, one.is_reached))
        members = int(fields["answers_members"] or 0) if wanted.members else 0
        return [*found, *(_RecipientPlace(True, total + number) for number in range(members))]

    async def reached(self, key: HistoryKey, total: int) -> set[int]:
        """Return the numbers of those who were reached, from the bitmap."""
        words = -(-total // _WORD)
        reads = [part for word in range(words) for part in ("GET", f"u{_WORD}", f"#{word}")]
        values = await self._store.command("BITFIELD", KEYS["reached"].at(key.shard, key.suffix), *reads)
        return {
            word * _WORD + bit
            for word, value in enumerate(values)
            if value
            for bit in range(_WORD)
            if value >> (_WORD - 1 - bit) & 1
        }

    async def _records(self, key: HistoryKey, fields: HistoryFields, numbers: Sequence[int]) -> list[RecipientRecord]:
        total = int(fields["recipients"] or 0)
        recipients = await self._recipients(key, [number for number in numbers if number < total])
        if len(recipients) < len(numbers):
            first = numbers[len(recipients)]  # members stand behind all recipients
            recipients += await self._reader.members(key, fields, first, len(numbers) - len(recipients))
        return await self._reader.records(key, fields, recipients)

    async def _recipients(self, key: HistoryKey, numbers: Sequence[int]) -> list[StoredRecipient]:
        pages = sorted({number // PAGE for number in numbers})
        texts = await self._reader.read_fields(key, [f"people:{page}" for page in pages]) if pages else {}
        by_page = {page: load_recipients(texts[f"people:{page}"] or "[]", page) for page in pages}
        return [by_page[number // PAGE][number % PAGE] for number in numbers]


class _RecipientPlace(NamedTuple):
    """Sorts those who were not reached before the others, each in the order of the delivery."""

    is_reached: bool
    number: int


def _start_of(places: Sequence[_RecipientPlace], cursor: str | None) -> int:
    """Return the index at which a page begins. A person that changes sides between two pages is not lost: who is
    reached meanwhile comes again behind those who are not.
    """
    if cursor is None:
        return 0
    side, number = cursor[:1], cursor[1:]
    if side not in ("n", "r") or not number.isascii() or not number.isdecimal() or len(number) > 9:
        raise malformed_cursor()
    first = _RecipientPlace(side == "r", int(number))
    return next((index for index, place in enumerate(places) if place >= first), len(places))


def _cursor(places: Sequence[_RecipientPlace], index: int) -> str | None:
    if index >= len(places):
        return None
    return f"{'r' if places[index].is_reached else 'n'}{places[index].number}"
