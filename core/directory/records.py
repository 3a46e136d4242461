"""The records of people, groups and supergroups: hashes id → JSON, read in pages.

A record has a `version`, new with every write. A change is written only if the record still has the version it was
made from, and a function recognises its own write when a call is repeated after a lost connection.

Pages are of ids, sorted as text, by their bytes in UTF-8 (10 before 9). A cursor names the last id of the page before,
so pages neither overlap nor skip what stays.
"""

import secrets
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import timedelta
from itertools import islice
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from core.errors import Conflict, NotFound, Refused, malformed_cursor
from core.model.history_key import Id
from core.model.json_form import compact_json
from core.model.people import (
    MAX_ADDRESSES,
    MAX_EXTERNAL_IDS,
    MAX_GUARDIANS,
    Group,
    Supergroup,
    User,
    id_text,
    name_words,
)
from core.model.text.characters import from_unreserved, to_unreserved
from core.redis.store import Store

PAGE = 500
"""Records or members of one call: the server needs about 0.2 ms."""

T = TypeVar("T", User, Group, Supergroup)
Item = TypeVar("Item")


class _Versioned(Struct):
    version: str


_decode_version = msgspec.json.Decoder(_Versioned).decode
_HASHES: dict[type, Sequence[str]] = {
    User: ("users",),
    Group: ("collections", "group"),
    Supergroup: ("collections", "supergroup"),
}


def encode_record(value: User | Group | Supergroup) -> str:
    """Return the record of a value, with a version of its own; of a person with the words of its name, by which it is
    found.
    """
    words = {"words": found} if isinstance(value, User) and (found := name_words(value.name)) else {}
    return compact_json({**msgspec.to_builtins(value), **words, "version": secrets.token_hex(8)})


def version_of(record: str) -> str:
    return _decode_version(record).version


def decode_record(record: str, shape: type[T]) -> T:
    return msgspec.json.decode(record, type=shape)


def given_fields(change: Struct) -> dict[str, Any]:
    return {name: value for name in change.__struct_fields__ if (value := getattr(change, name)) is not UNSET}


class ImportRunning(Conflict):
    """A file is imported into the directory of the tenant: until its end no other write is taken."""

    retry_after = timedelta(seconds=5)

    def __init__(self) -> None:
        super().__init__("IMPORT_RUNNING", "An import into the directory is under way. Repeat this in a few seconds.")


class Records:
    """Reads and writes the records of the directory; one per process. Ids are compared as text."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def find(self, tenant: str, shape: type[T], given: Id) -> str | None:
        """Return the record of one id, None if there is none."""
        record: str | None = await self.store.command("HGET", self._hash_of(tenant, shape), id_text(given))
        return record

    async def write(self, function: str, tenant: str, *arguments: str) -> Any:
        """Run a function that writes; return its reply. Everything of a tenant's directory is in one shard: a write
        concerns people, groups and indexes at once. Raises ImportRunning.
        """
        reply = await self.store.run_for_tenant(function, tenant, *arguments)
        if isinstance(reply, list) and reply[0] == "importing":
            raise ImportRunning
        return reply

    async def values(self, tenant: str, shape: type[T], ids: Iterable[str]) -> list[T | None]:
        """Return the values of ids, in their order, in pages."""
        found: list[T | None] = []
        rest = iter(ids)
        while page := list(islice(rest, PAGE)):
            records = await self.store.command("HMGET", self._hash_of(tenant, shape), *page)
            found += [decode_record(record, shape) if record else None for record in records]
        return found

    def _hash_of(self, tenant: str, shape: type) -> str:
        name, *kind = _HASHES[shape]
        return self.store.tenant_key(name, tenant, *kind)


def user_not_found(user: Id) -> NotFound:
    return NotFound("USER_NOT_FOUND", f"There is no person {user!r}.", about=str(user))


def limit_reached(detail: str) -> Refused:
    return Conflict("LIMIT_REACHED", detail)


class Merge(Struct, frozen=True):
    """`user`: the person that stays, as it will be. `other`: the person that is deleted. `groups`: its groups, which it
    brings along. `lost`: fields of the other that are given up, because the person that stays has a value of its own.
    """

    user: User
    other: User
    groups: Sequence[Id]
    lost: Mapping[str, str]


def merged(kept: User, other: User, groups: Sequence[Id]) -> Merge:
    """Return the merge of two people: what one has decided against stays so (opt-outs, a block). Raises Conflict
    LIMIT_REACHED.
    """
    contacts = {
        channel: list(dict.fromkeys([*kept.contacts.get(channel, ()), *other.contacts.get(channel, ())]))
        for channel in dict.fromkeys([*kept.contacts, *other.contacts])
    }
    if any(len(addresses) > MAX_ADDRESSES for addresses in contacts.values()):
        raise limit_reached(f"Together they would have more than {MAX_ADDRESSES} addresses of a channel.")
    external_ids = tuple(dict.fromkeys([*kept.external_ids, *other.external_ids]))
    if len(external_ids) > MAX_EXTERNAL_IDS:
        raise limit_reached(f"Together they would have more than {MAX_EXTERNAL_IDS} external ids.")
    pair = (id_text(kept.id), id_text(other.id))
    guardians, blocked_guardians = (
        tuple(one for one in dict.fromkeys([*mine, *theirs]) if one not in pair)
        for mine, theirs in (
            (kept.guardians, other.guardians),
            (kept.blocked_guardians, other.blocked_guardians),
        )
    )
    if max(len(guardians), len(blocked_guardians)) > MAX_GUARDIANS:
        raise limit_reached(f"Together they would have more than {MAX_GUARDIANS} guardians.")
    user = replace(
        kept,
        name=kept.name or other.name,
        email=kept.email or other.email,
        role=kept.role or other.role,
        locale=kept.locale or other.locale,
        contacts=contacts,
        opt_out=tuple(dict.fromkeys([*kept.opt_out, *other.opt_out])),
        blocked=kept.blocked or other.blocked,
        fields={**other.fields, **kept.fields},
        hours=kept.hours or other.hours,
        external_ids=external_ids,
        guardians=guardians,
        blocked_guardians=blocked_guardians,
        scim={**other.scim, **kept.scim},
    )
    return Merge(user, other, groups, _lost(user, other))


def _lost(user: User, other: User) -> Mapping[str, Any]:
    """Return the values of the other person that the merged one does not have."""
    both = {name: (getattr(other, name), getattr(user, name)) for name in ("name", "email", "role", "locale")}
    both |= {f"fields.{name}": (theirs, user.fields[name]) for name, theirs in other.fields.items()}
    return {name: theirs for name, (theirs, ours) in both.items() if theirs not in (None, ours)}


class DirectoryPage(Struct, Generic[Item], frozen=True):
    """A part of a list. `next`: the cursor of the next page, None on the last."""

    items: Sequence[Item]
    next: str | None = None


async def pages_of_ids(
    store: Store, key: str, after: str = "", size: int = PAGE, end: str = "+"
) -> AsyncIterator[list[str]]:
    """Emit the ids of a sorted set after an id and up to `end`, at most `size` at a time."""
    while True:
        start = f"({after}" if after else "-"
        page: list[str] = await store.command("ZRANGEBYLEX", key, start, end, "LIMIT", 0, size)
        if page:
            yield page
        if len(page) < size:
            return
        after = page[-1]


async def all_ids(store: Store, key: str) -> list[str]:
    """Return all ids of a sorted set, read in pages."""
    return [one async for page in pages_of_ids(store, key) for one in page]


async def page_of_ids(store: Store, key: str, cursor: str | None, limit: int) -> tuple[list[str], str | None]:
    """Return at most `limit` ids of a sorted set, and the cursor of the next page. Raises Invalid CURSOR_MALFORMED."""
    found: list[str] = []
    async for page in pages_of_ids(store, key, read_cursor(cursor), min(limit + 1, PAGE)):
        found += page
        if len(found) > limit:
            return found[:limit], write_cursor(found[limit - 1])
    return found, None


def write_cursor(last: str) -> str:
    return to_unreserved(last)


def read_cursor(cursor: str | None) -> str:
    """Return the id after which a page begins; "" for the first page. Raises Invalid CURSOR_MALFORMED."""
    if cursor is None:
        return ""
    last = from_unreserved(cursor)
    if not last or "\0" in last or write_cursor(last) != cursor:
        raise malformed_cursor()
    return last
