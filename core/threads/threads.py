"""The store of threads. All threads of an inbox are in one shard, so a message, the list of its inbox and what is
unread change in one step.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from core.directory.departed import DepartedPeople
from core.errors import NotFound, malformed_cursor
from core.model.clock import in_ms, to_ms
from core.model.history_key import Id
from core.model.json_form import compact_json
from core.model.people import id_text
from core.redis.keys import KEYS
from core.redis.store import Store
from core.threads.files import ThreadFile
from core.uploads import Uploads

OFFICE, USER = "office", "user"
"""The kinds of inboxes."""
PERSON, STAFF = "person", "staff"
"""The sides of a thread."""
MOST_MESSAGES = 1000
"""The newest that a thread keeps."""
_AT_ONCE = 100
_SEARCHED = 500
"""The threads that a search looks at before it returns."""

_KEPT_MS = timedelta(days=400) // timedelta(milliseconds=1)
"""As in add_to_thread, unless the settings of the store say otherwise."""
_OVERLAP_MS = timedelta(days=1) // timedelta(milliseconds=1)
ANSWERING = timedelta(minutes=1)
"""For so long a reader of an office is said to be answering."""
_ID = re.compile(r"(\d{1,5})\.([0-9a-f]{20})")
_CURSOR = re.compile(r"\d{1,15}-\d{1,5}\.[0-9a-f]{20}")
_FACTS = ("tenant", "inbox", "person", "way", "delivery", "last", "messages", "unread", "muted", "answering")


class Inbox(NamedTuple):
    """`kind`: user, then `id` is a person who has sent something; or office, then it is a group."""

    kind: str
    id: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.id}"

    @classmethod
    def parse(cls, text: str) -> "Inbox":
        kind, _, name = text.partition(":")
        return cls(kind, name)


class Correspondent(Struct, frozen=True):
    """A person who writes to an inbox. `id`: of the directory, else of the recipient of a delivery. `locale`: the
    language in which Ada speaks to it.
    """

    id: Id
    name: str | None = None
    locale: str = ""


class ReplyRoute(NamedTuple):
    """The origin of a person's last message, to which answers go."""

    channel: str
    address: str


class ThreadMessage(Struct, frozen=True):
    """`by`: who has written it. `files`: how many files the author had added that are not passed on; `attachments`:
    those that are. `delivery`: by which an answer went out. `at`: Unix ms. `corrects`: it is an edit of an earlier
    message of its author. `is_unverified`: somebody else may have written it. `small_pictures`: of the
    signature of a mail, which are left out.
    """

    number: int
    side: str
    at: int
    by: Id
    text: str
    channel: str = ""
    files: int = 0
    delivery: str = ""
    corrects: bool = False
    attachments: Sequence[ThreadFile] = ()
    is_unverified: bool = False
    small_pictures: int = 0


class _Stored(Struct, frozen=True, omit_defaults=True):
    by: Id
    text: str
    channel: str = ""
    files: int = 0
    delivery: str = ""
    corrects: bool = False
    attachments: Sequence[ThreadFile] = ()
    is_unverified: bool = False
    small_pictures: int = 0


@dataclass(frozen=True, slots=True)
class Thread:
    """`delivery`: the one that was replied to last, "" for none. `last`: ms of the newest message. `newest`: None if it
    is no longer kept. `is_muted`: what its person writes is not unread, and is not sent to the readers.
    `answering`: the id of the reader who is answering at this moment, "" for nobody.
    """

    id: str
    tenant: str
    inbox: Inbox
    person: Correspondent
    way: ReplyRoute
    delivery: str
    last: int
    messages: int
    unread: int
    newest: ThreadMessage | None = None
    is_muted: bool = False
    answering: str = ""


class Colleague(NamedTuple):
    """Another reader of an office. `has_answered`: else it is answering at this moment."""

    id: str
    has_answered: bool


class Added(NamedTuple):
    """`is_new`: False for an event that was added before. `is_muted`: as of the thread."""

    thread: str
    message: ThreadMessage
    is_new: bool
    is_muted: bool = False


class Threads:
    """One per process. `departed`: who reads the inboxes of people who are gone. Methods raise StoreError."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.departed = DepartedPeople(store)
        self._uploads = Uploads(store)

    def id_of(self, tenant: str, inbox: Inbox, person: Id) -> str:
        shard = self._store.shard_of(f"{tenant}:{inbox}")
        code = blake2b("\0".join((tenant, str(inbox), str(person))).encode(), digest_size=10).hexdigest()
        return f"{shard}.{code}"

    async def add_of_person(
        self,
        tenant: str,
        inbox: Inbox,
        person: Correspondent,
        way: ReplyRoute,
        delivery: str,
        event: str,
        message: ThreadMessage,
    ) -> Added:
        """Add what a person has written. `event`: names it, without spaces."""
        thread = self.id_of(tenant, inbox, person.id)
        facts = [
            "person",
            compact_json(person),
            "way",
            compact_json(way),
            *(["delivery", delivery] if delivery else []),
        ]
        await self._note_of_person(tenant, person.id, thread, inbox)
        return await self._add(thread, tenant, inbox, event, message, facts)

    async def _note_of_person(self, tenant: str, person: Id, thread: str, inbox: Inbox) -> None:
        """Note that a thread goes with a person, for as long as it lives after a message of now."""
        key, settings = self._key_of_person(tenant, person), KEYS["settings"].at(_shard_of(thread))
        kept = int(await self._store.command("HGET", settings, "threads_ms") or _KEPT_MS)
        await self._store.write_lasting(kept + _OVERLAP_MS, "SADD", key, f"{thread} {inbox}")

    async def add_of_staff(self, thread: Thread, event: str, message: ThreadMessage) -> Added:
        """Add an answer. It marks the thread as read."""
        await self._note_of_person(thread.tenant, thread.person.id, thread.id, thread.inbox)
        return await self._add(thread.id, thread.tenant, thread.inbox, event, message, [])

    async def _add(
        self, thread: str, tenant: str, inbox: Inbox, event: str, message: ThreadMessage, facts: Sequence[str]
    ) -> Added:
        one = message
        content = one.by, one.text, one.channel, one.files, one.delivery, one.corrects, one.attachments
        stored = _Stored(*content, one.is_unverified, one.small_pictures)
        reply = await self._store.run(
            "add_to_thread",
            *(_shard_of(thread), thread, tenant, str(inbox), event, message.side, compact_json(stored)),
            *(facts, MOST_MESSAGES),
        )
        is_new, number, at = reply[0] == "added", int(reply[1]), int(reply[2])
        return Added(thread, msgspec.structs.replace(message, number=number, at=at), is_new, bool(int(reply[3])))

    async def find(self, tenant: str, thread: str) -> Thread:
        """Return a thread with its newest message. Raises NotFound THREAD_NOT_FOUND."""
        found = await self._read(tenant, thread)
        if found is None:
            raise NotFound("THREAD_NOT_FOUND", "There is no such thread.")
        return found

    async def page(
        self, tenant: str, inbox: Inbox, cursor: str | None, limit: int, *, unread: bool = False
    ) -> tuple[list[Thread], str | None]:
        """Return threads of an inbox, the newest first, and the cursor of the next page. Raises Invalid
        CURSOR_MALFORMED.
        """
        if cursor and not _CURSOR.fullmatch(cursor):
            raise malformed_cursor()
        name = "unread_threads" if unread else "inbox"
        key = KEYS[name].at(self._store.shard_of(f"{tenant}:{inbox}"), tenant, str(inbox))
        newest, _, last_id = cursor.partition("-") if cursor else ("+inf", "", "")
        same_moment = int(await self._store.command("ZCOUNT", key, newest, newest)) if cursor else 0
        rows: Sequence[Any] = await self._store.command(
            "ZRANGE", key, newest, "-inf", "BYSCORE", "REV", "LIMIT", 0, same_moment + limit + 1, "WITHSCORES"
        )
        listed = [(one, int(at)) for one, at in rows if not cursor or int(at) < int(newest) or one < last_id]
        shown = listed[:limit]
        found = [await self._read(tenant, thread) for thread, _ in shown]
        more = f"{shown[-1][1]}-{shown[-1][0]}" if len(listed) > limit else None
        return [one for one in found if one], more

    async def search(
        self, tenant: str, inbox: Inbox, text: str, cursor: str | None, limit: int, *, unread: bool = False
    ) -> tuple[list[Thread], str | None]:
        """Return threads of an inbox with a text in the name of the person or in one of the newest hundred messages, as
        `page` does. It ends after 500 threads, so a page may be empty and have a next one.
        """
        found: list[Thread] = []
        looked_at, wanted = 0, text.casefold()
        while True:
            part, cursor = await self.page(tenant, inbox, cursor, limit - len(found), unread=unread)
            found += [one for one in part if await self._contains(one, wanted)]
            looked_at += len(part)
            if cursor is None or len(found) == limit or looked_at >= _SEARCHED:
                return found, cursor

    async def _contains(self, thread: Thread, wanted: str) -> bool:
        if wanted in (thread.person.name or "").casefold():
            return True
        newest = await self.messages(thread, 0, _AT_ONCE)
        return any(wanted in one.text.casefold() for one in newest)

    async def has_any(self, tenant: str, inbox: Inbox) -> bool:
        key = KEYS["inbox"].at(self._store.shard_of(f"{tenant}:{inbox}"), tenant, str(inbox))
        return bool(await self._store.command("EXISTS", key))

    async def count_unread(self, tenant: str, inbox: Inbox) -> int:
        """Return how many threads of an inbox have messages that nobody has read."""
        key = KEYS["unread_threads"].at(self._store.shard_of(f"{tenant}:{inbox}"), tenant, str(inbox))
        return int(await self._store.command("ZCARD", key))

    async def messages(self, thread: Thread, before: int, limit: int) -> list[ThreadMessage]:
        """Return messages of a thread, the newest first. `before`: the number of the oldest one read so far, 0 for
        none."""
        last = before - 1 if before else thread.messages
        numbers = range(last, max(last - limit, thread.messages - MOST_MESSAGES, 0), -1)
        fields = [f"message:{number}" for number in numbers]
        key = KEYS["thread"].at(_shard_of(thread.id), thread.id)
        stored = await self._store.command("HMGET", key, *fields) if fields else []
        return [_message(number, text) for number, text in zip(numbers, stored, strict=True) if text]

    async def mark_read(self, thread: Thread, number: int) -> int:
        """Mark messages up to one as read; return how many are unread behind it."""
        return int(
            await self._store.run("read_to", _shard_of(thread.id), thread.id, thread.tenant, str(thread.inbox), number)
        )

    async def claim_answer(
        self, thread: Thread, who: Id, kept: timedelta = ANSWERING, *, sends: bool = False
    ) -> Colleague | None:
        """Note for a while that a reader of an office is answering, unless a colleague is; return that one, if an
        answer is to be sent now also a colleague who has written last. `kept`: zero ends it.
        """
        if thread.inbox.kind != OFFICE:
            return None
        place = thread.id, thread.tenant, str(thread.inbox), id_text(who)
        result, *name = await self._store.run("claim_answer", _shard_of(thread.id), *place, in_ms(kept), int(sends))
        return Colleague(name[0], result == "answered") if name else None

    async def mark(self, thread: Thread, mark: str) -> None:
        """Mute the person of a thread, `unmute` it, or `hide` the thread until the person writes again. The person is
        not told. Raises NotFound THREAD_NOT_FOUND.
        """
        place = thread.id, thread.tenant, str(thread.inbox)
        if not await self._store.run("mark_thread", _shard_of(thread.id), *place, mark):
            raise NotFound("THREAD_NOT_FOUND", "There is no such thread.")

    async def of_person(self, tenant: str, person: Id) -> list[str]:
        return [one.partition(" ")[0] for one in await self._members(tenant, person)]

    async def all_of(self, tenant: str, person: Id) -> set[str]:
        """Return the ids of the threads that go with a person: its own, and those of the inboxes that it reads."""
        found = set(await self.of_person(tenant, person))
        for owner in [*await self.departed.inherited(tenant, person), id_text(person)]:
            cursor: str | None = ""
            while cursor is not None:
                page, cursor = await self.page(tenant, Inbox(USER, owner), cursor or None, _AT_ONCE)
                found.update(one.id for one in page)
        return found

    async def merge(self, tenant: str, kept: Id, other: Id) -> None:
        """Have the threads of one person go with another, of which it has become a part, and be answered there. Their
        way back is not inherited: it is chosen anew. A repeat moves what is left.
        """
        for member in await self._members(tenant, other):
            thread, _, inbox = member.partition(" ")
            if found := await self._read(tenant, thread):
                await self._note_of_person(tenant, kept, thread, Inbox.parse(inbox))
                person = compact_json(msgspec.structs.replace(found.person, id=kept))
                await self._store.run("move_thread", _shard_of(thread), thread, person)
            await self._store.command("SREM", self._key_of_person(tenant, other), member)
        await self.departed.note_merged(tenant, kept, other)

    async def forget(self, tenant: str, person: Id) -> None:
        """Delete the threads of a person that is deleted, and those of the inboxes that it reads alone, with their
        files.
        """
        await self._forget_all(tenant, await self._members(tenant, person))
        await self._store.command("DEL", self._key_of_person(tenant, person))
        for owner in [*await self.departed.inherited(tenant, person), id_text(person)]:
            await self.departed.note_deleted(tenant, owner)
            own = Inbox(USER, owner)
            while found := [f"{one.id} {own}" for one in (await self.page(tenant, own, None, _AT_ONCE))[0]]:
                await self._forget_all(tenant, found)
        await self.departed.forget_inherited(tenant, person)

    async def _forget_all(self, tenant: str, members: Sequence[str]) -> None:
        for one in members:
            thread, _, inbox = one.partition(" ")
            await self._delete_files(tenant, thread)
            await self._store.run("forget_thread", _shard_of(thread), thread, tenant, inbox)

    async def _delete_files(self, tenant: str, thread_id: str) -> None:
        thread, before = await self._read(tenant, thread_id), 0
        while thread and (page := await self.messages(thread, before, _AT_ONCE)):
            for file in (one for message in page for one in message.attachments):
                with suppress(NotFound):  # it is gone already
                    await self._uploads.delete(tenant, file.id)
            before = page[-1].number

    async def _members(self, tenant: str, person: Id) -> list[str]:
        return sorted(await self._store.command("SMEMBERS", self._key_of_person(tenant, person)))

    def _key_of_person(self, tenant: str, person: Id) -> str:
        return KEYS["threads_of"].at(self._store.shard_of(f"{tenant}:{person}"), tenant, id_text(person))

    async def _read(self, tenant: str, thread: str) -> Thread | None:
        found = _ID.fullmatch(thread)
        if found is None or int(found[1]) >= self._store.shards:
            return None
        key = KEYS["thread"].at(int(found[1]), thread)
        facts = dict(zip(_FACTS, await self._store.command("HMGET", key, *_FACTS), strict=True))
        if facts["tenant"] != tenant:
            return None
        number = int(facts["messages"] or 0)
        ends, _, name = (facts["answering"] or "").partition(" ")
        stored = await self._store.command("HGET", key, f"message:{number}")
        return Thread(
            id=thread,
            tenant=tenant,
            inbox=Inbox.parse(facts["inbox"]),
            person=msgspec.json.decode(facts["person"], type=Correspondent),
            way=msgspec.json.decode(facts["way"], type=ReplyRoute),
            delivery=facts["delivery"] or "",
            last=int(facts["last"]),
            messages=number,
            unread=int(facts["unread"] or 0),
            newest=_message(number, stored) if stored else None,
            is_muted=facts["muted"] == "1",
            answering=name if name and int(ends) > to_ms(self._store.now()) else "",
        )


def _shard_of(thread: str) -> int:
    return int(thread.partition(".")[0])


def _message(number: int, text: str) -> ThreadMessage:
    at, side, _, encoded = text.split(" ", 3)
    stored = msgspec.json.decode(encoded, type=_Stored)
    content = stored.by, stored.text, stored.channel, stored.files, stored.delivery, stored.corrects
    about = stored.attachments, stored.is_unverified, stored.small_pictures
    return ThreadMessage(number, side, int(at), *content, *about)
