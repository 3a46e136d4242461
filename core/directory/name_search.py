"""Finds people by the beginnings of the words of their names, through a sorted set of `<word> <id>`.

The index has one entry for each word, so a person may be met more than once: it counts at the first of its words that
fits, and pages neither overlap nor skip.
"""

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

from core.directory.collections import Groups
from core.directory.records import DirectoryPage, Records, pages_of_ids, read_cursor, write_cursor
from core.model.history_key import Id
from core.model.people import User, id_text, name_words

_LAST = "\U0010ffff"


class NameHit(NamedTuple):
    """An entry of the index that was looked at. `user`: the person, None if it does not fit or counts elsewhere."""

    entry: str
    user: User | None


async def by_name(
    records: Records, tenant: str, wanted: str, after: str, size: int
) -> AsyncIterator[Sequence[NameHit]]:
    """Emit the people each of whose words begins like one of `wanted`, sorted by word and id, behind an entry."""
    prefixes = name_words(wanted)
    if not prefixes:
        return
    rarest = max(prefixes, key=len)
    key, end = records.store.tenant_key("names", tenant), f"[{rarest}{_LAST}"
    async for page in pages_of_ids(records.store, key, after or rarest, size, end):
        users = await records.values(tenant, User, [entry.partition(" ")[2] for entry in page])
        yield [NameHit(entry, _fitting(user, entry, rarest, prefixes)) for entry, user in zip(page, users, strict=True)]


async def all_by_name(records: Records, tenant: str, after: str, size: int) -> AsyncIterator[Sequence[NameHit]]:
    """Emit all people behind an entry, sorted by the first word of the name and the id; last those without a name."""
    if not after.startswith(_LAST):
        async for page in pages_of_ids(records.store, records.store.tenant_key("names", tenant), after, size):
            users = await records.values(tenant, User, [entry.partition(" ")[2] for entry in page])
            yield [NameHit(entry, _begun_by(user, entry)) for entry, user in zip(page, users, strict=True)]
        after = _LAST
    async for page in pages_of_ids(records.store, records.store.tenant_key("userids", tenant), after[1:], size):
        users = await records.values(tenant, User, page)
        yield [
            NameHit(_LAST + one, None if user and name_words(user.name) else user)
            for one, user in zip(page, users, strict=True)
        ]


async def members_by_name(
    groups: Groups, tenant: str, group: Id, wanted: str, *, cursor: str | None, limit: int
) -> DirectoryPage[User]:
    """Return a page of the members of a group, sorted by name; of those with this name, if `wanted` is not "". Raises
    NotFound GROUP_NOT_FOUND, Invalid CURSOR_MALFORMED.
    """
    after = read_cursor(cursor)
    members = await groups.all_members(tenant, group)
    places = {_place(one): one for one in members if not wanted or has_name(one, wanted)}
    page = sorted(place for place in places if place > after)[: limit + 1]
    following = write_cursor(page[limit - 1]) if len(page) > limit else None
    return DirectoryPage([places[place] for place in page[:limit]], following)


def _place(user: User) -> str:
    """Return what a person is sorted by: the name without case, then the id."""
    return f"{' '.join(name_words(user.name))} {id_text(user.id)}"


def has_name(user: User, wanted: str) -> bool:
    """Return whether each word of `wanted` begins a word of the name; False without a word."""
    words, prefixes = name_words(user.name or ""), name_words(wanted)
    return bool(prefixes) and all(any(word.startswith(prefix) for word in words) for prefix in prefixes)


def _begun_by(user: User | None, entry: str) -> User | None:
    """Return the person if the entry is that of the first word of its name."""
    words = name_words(user.name) if user else ()
    return user if words and words[0] == entry.partition(" ")[0] else None


def _fitting(user: User | None, entry: str, rarest: str, prefixes: Sequence[str]) -> User | None:
    words = name_words(user.name) if user else ()
    fits = all(any(word.startswith(prefix) for word in words) for prefix in prefixes)
    if not fits or entry.partition(" ")[0] != min(word for word in words if word.startswith(rarest)):
        return None
    return user
