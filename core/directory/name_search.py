"""Finds people by the beginnings of the words of their names, through a sorted set of `<word> <id>`.

The index has one entry for each word, so a person may be met more than once: it counts at the first of its words that
fits, and pages neither overlap nor skip.
"""

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

from core.directory.paging import pages_of_ids
from core.directory.records import Records
from core.model.people import User, name_words

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


def has_name(user: User, wanted: str) -> bool:
    """Return whether each word of `wanted` begins a word of the name; False without a word."""
    words, prefixes = name_words(user.name or ""), name_words(wanted)
    return bool(prefixes) and all(any(word.startswith(prefix) for word in words) for prefix in prefixes)


def _fitting(user: User | None, entry: str, rarest: str, prefixes: Sequence[str]) -> User | None:
    words = name_words(user.name) if user else ()
    fits = all(any(word.startswith(prefix) for word in words) for prefix in prefixes)
    if not fits or entry.partition(" ")[0] != min(word for word in words if word.startswith(rarest)):
        return None
    return user
