"""The deliveries to one person, found without an index: a function searches the people of a page of deliveries.

    deliveries of the tenant, newest first ─▶ find_recipient, some hundred pages of people a call ─▶ outcomes, erasure

To keep an index would cost a write for each recipient of each delivery, to answer a question that is seldom asked
(docs/decisions/0108). A page of a list reads at most `MOST_READ` deliveries; then it ends early, with a cursor.
"""

from asyncio import gather
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

import msgspec

from core.deliveries.cancel import Canceller
from core.deliveries.histories.encoding import PAGE, THREAD, StoredRecipient, load_recipients
from core.deliveries.histories.listing import DeliveryPosition, Listing, read_cursor, write_cursor
from core.deliveries.histories.parcels import DETAIL, NOT_SHOWN, PARTS, load_parcel
from core.deliveries.histories.reader import HistoryReader
from core.deliveries.histories.recipient_search import RecipientSearch
from core.deliveries.received import ABOUT
from core.errors import NotFound
from core.model.history import History, RecipientRecord
from core.model.history_key import Id, person_key
from core.model.json_form import compact_json
from core.model.question import AnswerKind, AskedChild, load_question, load_row, row_field
from core.redis.keys import KEYS
from core.redis.store import Store

MOST_READ = 5000
_PAGES = 400
"""Pages of people that one call searches: about a millisecond."""
_AT_ONCE = 200
_TOGETHER = 20
"""Deliveries that are erased at the same time."""
_NUMBER_DIGITS = 19

T = TypeVar("T")
R = TypeVar("R")


class ChildAnswer(NamedTuple):
    """The last answer of a guardian for a child. `at`: Unix ms."""

    child: AskedChild
    value: str
    at: int


class PersonDelivery(NamedTuple):
    """A delivery, and what became of it for the person. `for_children`: what it has answered as a guardian."""

    history: History
    recipient: RecipientRecord
    for_children: Sequence[ChildAnswer] = ()


class _Found(NamedTuple):
    """The place of a person in a delivery; `is_child`: of a guardian that gets it about this person; `is_member`: it
    has answered in a group chat, and has no `id` here. `children`: those for which it may answer.
    """

    position: DeliveryPosition
    number: int
    id: Id = ""
    is_child: bool = False
    is_member: bool = False
    children: Sequence[AskedChild] = ()

    @property
    def is_recipient(self) -> bool:
        return not self.is_child and not self.is_member


class DeliveriesOfPerson:
    """One per process."""

    def __init__(
        self, store: Store, reader: HistoryReader, listing: Listing, recipients: RecipientSearch, canceller: Canceller
    ) -> None:
        self._store = store
        self._reader = reader
        self._listing = listing
        self._recipients = recipients
        self._canceller = canceller

    async def page(
        self, tenant: str, person: str, cursor: str | None, limit: int, sees: Callable[[DeliveryPosition], bool]
    ) -> tuple[Sequence[PersonDelivery], str | None]:
        """Return deliveries to a person that `sees` lets pass, newest first, and the cursor of the next page. Raises
        Invalid CURSOR_MALFORMED.
        """
        found: list[PersonDelivery] = []
        read, last = 0, read_cursor(cursor) if cursor else None
        async for positions in self._slices(tenant, last, 0):
            places = {one.position: one for one in await self._find(positions, person) if one.is_recipient}
            for position in positions:
                if len(found) == limit or read == MOST_READ:
                    return found, write_cursor(last) if last else None
                last, read = position, read + 1
                if position in places and sees(position):
                    one = await self._delivery(tenant, places[position], person)
                    found += [one] if one else []
        return found, None

    async def _delivery(self, tenant: str, found: _Found, person: str) -> PersonDelivery | None:
        """Return a delivery; None if its retention has ended meanwhile."""
        key = found.position.key
        try:
            history = await self._reader.summary(key, tenant)
            (record,) = await self._recipients.records_of(key, tenant, [found.number])
        except NotFound:
            return None
        return PersonDelivery(history, record, await self._for_children(found, person))

    async def _for_children(self, found: _Found, person: str) -> Sequence[ChildAnswer]:
        """Return what a guardian has answered for each of its children."""
        children = [one for one in found.children if one.number != found.number]
        names = [row_field(one.number) for one in children]
        stored = await self._reader.read_fields(found.position.key, names) if names else {}
        rows = [(one, load_row(stored[row_field(one.number)])) for one in children]
        return [
            ChildAnswer(child, voice.value, voice.at)
            for child, row in rows
            for voice in (row.voices if row else ())
            if voice.who == person
        ]

    async def erase(self, tenant: str, person: str, since: int = 0, delete_file: "DeleteFile | None" = None) -> int:
        """Remove the name, the groups, the values and the addresses of a person from the deliveries to it, and its name
        from those that it has sent, created since an ms, with the words and files of its answers; outcomes and counts
        stay, under its id, and its places in open questions are free. What has not been sent
        to it is cancelled first. `delete_file`: deletes a file of an answer, which may be gone. Returns from how many.
        """
        erased = 0

        async def erase_all(places: Sequence[_Found]) -> int:
            """Erase the places of a person in one delivery, one after the other: only the first finds something."""
            return sum([await self._erase_found(one, tenant, person, delete_file) for one in places])

        async for positions in self._slices(tenant, None, since):
            places = defaultdict[DeliveryPosition, list[_Found]](list)
            for one in await self._find(positions, person):
                places[one.position].append(one)
            erased += sum(await _each([*places.values()], erase_all))
            own = [one for one in positions if one.key.sender == person]
            await _each(own, lambda one: self._erase(one, person, self._erasures_from))
        return erased

    async def _erase_found(self, one: _Found, tenant: str, person: str, delete_file: "DeleteFile | None") -> int:
        facts = await self._reader.read_fields(one.position.key, ["answer", "finished"])
        question = load_question(facts["answer"])
        if one.is_recipient and facts["finished"] is None:
            with suppress(NotFound):
                await self._canceller.cancel(one.position.key, tenant, [person])
        if delete_file and question and question.kind is AnswerKind.FILE:
            await self._delete_files(one.position, person, delete_file)
        erased = 0 if one.is_member else await self._erase(one.position, person, self._erasures_to)
        if not one.is_child and question and any(option.places for option in question.options):
            await self._free_place(one)
        return erased

    async def _free_place(self, found: _Found) -> None:
        """Give the place of a person in an open question to who has waited longest, or take it out of the line."""
        shard, suffix = found.position.shard, found.position.suffix
        await self._store.run("free_place", shard, suffix, person_key(found.id), found.number)

    async def erase_threads(self, tenant: str, threads: Collection[str], since: int = 0) -> None:
        """Remove the words and the names of files from the deliveries that carried the messages of threads to either
        side, created since an ms; what has not been sent is cancelled first.
        """
        if not threads:
            return
        async for positions in self._slices(tenant, None, since):
            # Read at once, so in few round trips: most deliveries of a tenant are none of these threads.
            read = await gather(*(self._reader.read_fields(one.key, ["replies", "finished"]) for one in positions))
            found = zip(positions, read, strict=True)
            own = [(one, facts) for one, facts in found if (facts["replies"] or "").removeprefix(THREAD) in threads]
            await _each(own, lambda one: self._erase_words(one[0], tenant, is_over=one[1]["finished"] is not None))

    async def _erase_words(self, position: DeliveryPosition, tenant: str, *, is_over: bool) -> None:
        """Take the words out of one delivery that has carried a message of a thread."""
        if not is_over:
            with suppress(NotFound):
                await self._canceller.cancel(position.key, tenant)
        await self._erase(position, "", self._erasures_of_words)

    async def _erasures_of_words(self, position: DeliveryPosition, _: str) -> Sequence["_Change"]:
        """Return the fields with the words of a message that Ada has passed on, or has written about one or about an
        answer.
        """
        fields = await self._reader.read_fields(position.key, ["origin", "replies", "text", "content"])
        origin, replies = fields.pop("origin"), fields.pop("replies") or ""
        if origin != "replies" and not replies.startswith(ABOUT):
            return []
        cleared = {"text": "", "content": "{}"}
        return [
            ("history", name, text, cleared[name]) for name, text in fields.items() if text not in (None, cleared[name])
        ]

    async def _erase(self, position: DeliveryPosition, person: str, find: "_Erasures") -> int:
        """Repeat it until no other step has changed the history meanwhile: a retry adds parcels."""
        while changes := await find(position, person):
            words = [word for change in changes for word in change]
            if await self._store.run("erase_fields", position.shard, position.suffix, *words):
                return 1
        return 0

    async def _erasures_to(self, position: DeliveryPosition, person: str) -> Sequence["_Change"]:
        """Return the fields of a delivery to the person that have its data."""
        names = [
            name for name in await self._reader.field_names(position.key) if name.startswith(("people:", "parcel:"))
        ]
        texts = await self._reader.read_fields(position.key, names)
        changes = []
        for name, text in texts.items():
            clean = _clean_people if name.startswith("people:") else _clean_parcel
            if text and (new := clean(text, person)) != text:
                changes.append(("history", name, text, new))
        answers = await self._answers(position, person, texts)
        words = await self._erasures_of_words(position, person)
        return [*changes, *answers, *words, *await self._references(position, person, texts)]

    async def _answers(
        self, position: DeliveryPosition, person: str, texts: Mapping[str, str | None]
    ) -> Sequence["_Change"]:
        """Return the answers that have words of the person, or about a child what anybody has written. What counts
        stays.
        """
        own, answered = _rows_of(texts, person)
        names = [row_field(number) for number in sorted(own | answered)]
        stored = await self._reader.read_fields(position.key, names) if names else {}
        changes = []
        for number in sorted(own | answered):
            text = stored[row_field(number)]
            row = msgspec.json.decode(text) if text else {}
            if text and _has_words(row):
                new = compact_json(_clean_answer(row, "" if number in own else person))
                changes.append(("history", row_field(number), text, new))
        return [one for one in changes if one[2] != one[3]]

    async def _delete_files(self, position: DeliveryPosition, person: str, delete_file: "DeleteFile") -> None:
        """Delete the files with which a person has answered."""
        names = [name for name in await self._reader.field_names(position.key) if name.startswith("people:")]
        fields = await self._reader.read_fields(position.key, names)
        own, _ = _rows_of(fields, person)
        answers = await self._reader.read_fields(position.key, [row_field(number) for number in own]) if own else {}
        for text in answers.values():
            row = msgspec.json.decode(text) if text else {}
            for file in (one["value"] for one in (row, *row.get("revisions", ())) if one):
                await delete_file(file)

    async def _references(
        self, position: DeliveryPosition, person: str, texts: Mapping[str, str | None]
    ) -> Sequence["_Change"]:
        """Return the outcomes of a person that have a reference: with some providers it names the dialog."""
        parcels = [(name.split(":")[1], text) for name, text in texts.items() if name.startswith("parcel:") and text]
        entries = [(channel, entry) for channel, text in parcels for entry in load_parcel(text)[1]]
        fields = sorted({entry.field(channel) for channel, entry in entries if str(entry.id) == person})
        key = KEYS["outcomes"].at(position.shard, position.suffix)
        stored = await self._store.command("HMGET", key, *fields) if fields else []
        found = ((field, text, _clean_outcome(text)) for field, text in zip(fields, stored, strict=True) if text)
        return [("outcomes", field, text, new) for field, text, new in found if new != text]

    async def _erasures_from(self, position: DeliveryPosition, _: str) -> Sequence["_Change"]:
        """Return the field of the sender, if it has a name."""
        (text,) = (await self._reader.read_fields(position.key, ["sender"])).values()
        sender = msgspec.json.decode(text) if text else {}
        return (
            [("history", "sender", text, compact_json({**sender, "name": None}))] if text and sender.get("name") else []
        )

    async def _find(self, positions: Sequence[DeliveryPosition], person: str) -> list[_Found]:
        """Return where the person stands in which of the deliveries."""
        found: list[_Found] = []
        for shard in {one.shard for one in positions}:
            rest = [one for one in positions if one.shard == shard]
            while rest:
                looked, *hits = await self._store.run(
                    "find_recipient", shard, person, *_beginnings(person), PAGE, _PAGES, *(one.suffix for one in rest)
                )
                by_suffix = {one.suffix: one for one in rest}
                pages = zip(hits[::2], hits[1::2], strict=True)
                read = await gather(*(self._in_page(by_suffix[suffix], int(page), person) for suffix, page in pages))
                found += [hit for page in read for hit in page]
                rest = rest[int(looked) :]
        return found

    async def _in_page(self, position: DeliveryPosition, page: int, person: str) -> list[_Found]:
        if page < 0:
            return [_Found(position, -1 - page, is_member=True)]
        (text,) = (await self._reader.read_fields(position.key, [f"people:{page}"])).values()
        people = load_recipients(text or "[]", page)
        own = [
            _Found(position, one.number, one.id, children=one.asked_children) for one in people if str(one.id) == person
        ]
        return [*own, *(_Found(position, one.number, is_child=True) for one in people if _is_about(one, person))]

    async def _slices(
        self, tenant: str, after: DeliveryPosition | None, since: int
    ) -> AsyncIterator[Sequence[DeliveryPosition]]:
        some: list[DeliveryPosition] = []
        async for position in self._listing.positions(tenant, after, since):
            some.append(position)
            if len(some) == _AT_ONCE:
                yield some
                some = []
        if some:
            yield some


async def _each(items: Sequence[T], work: Callable[[T], Awaitable[R]]) -> list[R]:
    """Return the result of the work for each, some at the same time: one alone would mostly wait for the server."""
    done: list[R] = []
    for first in range(0, len(items), _TOGETHER):
        done += await gather(*map(work, items[first : first + _TOGETHER]))
    return done


_Change = tuple[str, str, str, str]
"""`history` or `outcomes`, a field, its text, and the text without the data of the person."""
DeleteFile = Callable[[str], Awaitable[None]]
"""Deletes an uploaded file, by its id."""
_Erasures = Callable[[DeliveryPosition, str], Awaitable[Sequence[_Change]]]


def _beginnings(person: str) -> tuple[str, str]:
    """Return how the row of a recipient begins, if its id is a number and if it is a text."""
    digits = person.removeprefix("-")
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= _NUMBER_DIGITS and str(int(person)) == person
    return f"[{person},[" if is_number else "", f"[{compact_json(person)},["


def _clean_people(text: str, person: str) -> str:
    """Return a page of people in which this one has only its id, and how many contacts it had."""
    return compact_json([_clean_row(row, person) for row in msgspec.json.decode(text)])


def _clean_row(row: list[Any], person: str) -> list[Any]:
    """Return the row of a recipient without the person: its own one has only the id, that of a guardian neither the
    name of this child nor the values of the text.
    """
    if str(row[0]) == person:
        return row[:2]
    children = row[5] if len(row) > 5 else ()
    if not any(str(child[0]) == person for child in children):
        return row
    return [*row[:4], (), [[*child[:2], None] if str(child[0]) == person else child for child in children], *row[6:]]


def _rows_of(texts: Mapping[str, str | None], person: str) -> tuple[set[int], set[int]]:
    """Return the numbers of the answers of a person, or about it; and of those about the children that it guards."""
    pages = [(int(name.partition(":")[2]), text) for name, text in texts.items() if name.startswith("people:")]
    people = [one for page, text in pages if text for one in load_recipients(text, page)]
    own = {one.number for one in people if str(one.id) == person}
    about = {child.number for one in people for child in one.asked_children if str(child.id) == person}
    answered = {child.number for one in people if str(one.id) == person for child in one.asked_children}
    return own | about, answered


def _has_words(row: Mapping[str, Any]) -> bool:
    return any(one.get("text") for one in (row, *row.get("revisions", ()), *row.get("voices", ())))


def _clean_answer(row: Mapping[str, Any], who: str) -> dict[str, Any]:
    """Return an answer without the words of a person, "" for those of all."""
    clean = _without_words(row, who)
    for name in ("revisions", "voices"):
        if name in row:
            clean[name] = [_without_words(one, who) for one in row[name]]
    return clean


def _without_words(row: Mapping[str, Any], who: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "text" or (who and row.get("who") != who)}


def _is_about(recipient: StoredRecipient, person: str) -> bool:
    return any(str(child.id) == person for child in recipient.children)


def _clean_parcel(text: str, person: str) -> str:
    """Return a parcel in which this recipient has no address."""
    group, entries, *personal = msgspec.json.decode(text)
    return compact_json([group, [[*row[:4], ""] if str(row[0]) == person else row for row in entries], *personal])


def _clean_outcome(text: str) -> str:
    """Return an outcome without the reference and the words of the provider."""
    *known, said = text.split("|", 5)
    said, shown, not_shown = said.partition(NOT_SHOWN)
    _, paid, parts = said.partition(DETAIL)[0].partition(PARTS)
    return "|".join([*known, paid + parts + shown + not_shown])
