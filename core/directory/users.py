"""The people of the directory: create, change, delete, find by id, e-mail address, contact, group and role."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from msgspec.structs import replace

from core.directory.collections import Groups
from core.directory.name_search import NameHit, all_by_name, by_name
from core.directory.own_fields import OwnFields
from core.directory.records import (
    PAGE,
    DirectoryPage,
    Merge,
    Records,
    all_ids,
    decode_record,
    encode_record,
    given_fields,
    limit_reached,
    merged,
    pages_of_ids,
    read_cursor,
    user_not_found,
    version_of,
    write_cursor,
)
from core.errors import Conflict, Invalid, NotFound, raise_first
from core.model.contacts.addresses import canonical
from core.model.history_key import Id
from core.model.own_fields import FieldCondition
from core.model.people import (
    MAX_ADDRESSES,
    MAX_EXTERNAL_IDS,
    User,
    UserChange,
    canonical_email,
    canonical_user,
    faults_of_contacts,
    faults_of_user,
    id_text,
    is_external_id,
    name_words,
)
from core.model.text.characters import nfc

# People read for one page of a filtered list. Beyond it the page ends early, with a cursor.
_MOST_READ = 5000


class _Filter(NamedTuple):
    """The conditions for people of a list; None: any value."""

    name: str | None
    email: str | None
    contact: tuple[str, str] | None
    external_id: str | None
    group: Id | None
    role: str | None
    where: Sequence[FieldCondition]
    guardian: Id | None

    @property
    def leaves_out(self) -> bool:
        """Return whether an index has people that are not wanted, so that more must be read than are returned."""
        return bool(self.where) or sum(one is not None for one in (self.group, self.role, self.guardian)) > 1


class Users:
    """The people of the directory."""

    def __init__(self, records: Records, groups: Groups, own_fields: OwnFields) -> None:
        self._records = records
        self._groups = groups
        self._own_fields = own_fields

    async def create(self, tenant: str, user: User) -> User:
        """Store a new person; return it as it was stored, with canonical addresses.

        Raises Invalid, also FIELD_VALUE_WRONG, Conflict USER_EXISTS, EMAIL_TAKEN, CONTACT_TAKEN, EXTERNAL_ID_TAKEN.
        """
        raise_first(faults_of_user(user))
        stored = canonical_user(replace(user, fields=await self._own_fields.typed(tenant, user.fields)))
        reply = await self._records.write("create_user", tenant, id_text(user.id), encode_record(stored))
        if reply[0] == "exists":
            raise Conflict("USER_EXISTS", "There is a person with this id.", "id")
        _raise_taken(reply)
        return stored

    async def update(self, tenant: str, user: Id, change: UserChange) -> User:
        """Change some fields of a person; return it as it is now.

        Raises NotFound USER_NOT_FOUND, Invalid, Conflict EMAIL_TAKEN, CONTACT_TAKEN, EXTERNAL_ID_TAKEN.
        """
        given = given_fields(change)
        if given.get("fields"):
            given["fields"] = await self._own_fields.typed(tenant, given["fields"])
        return await self.revise(tenant, user, lambda old: replace(old, **given))

    async def delete(self, tenant: str, user: Id) -> None:
        """Delete a person with its contacts, memberships and ownerships. Histories stay as they are.

        Raises NotFound USER_NOT_FOUND.
        """
        await self.find(tenant, user)
        while await self._records.write("delete_user", tenant, id_text(user)) == ["guardian"]:
            await self._change_guardian(tenant, user, None)

    async def merge(self, tenant: str, kept: Id, other: Id) -> Merge:
        """Make one person of two: `kept` gets what it lacks, and contacts, groups and ownerships of the other, which is
        deleted in the same step. Raises NotFound USER_NOT_FOUND, Invalid SAME_PERSON, Conflict LIMIT_REACHED.
        """
        while True:
            plan, records = await self._plan(tenant, kept, other)
            versions = [version_of(record) for record in records]
            words = (id_text(kept), id_text(other), *versions, encode_record(plan.user))
            (state, *_) = await self._records.write("merge_users", tenant, *words)
            if state == "limit":
                raise limit_reached("The two are in more groups, or own more, than one person can.")
            if state == "guardian":
                await self._change_guardian(tenant, other, kept)
            if state == "merged":
                return plan

    async def children(self, tenant: str, guardian: Id) -> list[str]:
        """Return the ids of the people that name this guardian, also as a blocked one."""
        return await all_ids(self._records.store, self._key_of_children(tenant, guardian))

    def _key_of_children(self, tenant: str, guardian: Id) -> str:
        return self._records.store.tenant_key("children", tenant, id_text(guardian))

    async def _change_guardian(self, tenant: str, guardian: Id, heir: Id | None) -> None:
        """Have the children of a guardian name another person, or nobody, in its place. A child never names itself."""
        for child in await self.children(tenant, guardian):

            def without(old: User) -> User:
                return replace(
                    old,
                    guardians=_with_heir(old, old.guardians, guardian, heir),
                    blocked_guardians=_with_heir(old, old.blocked_guardians, guardian, heir),
                )

            with suppress(NotFound):  # the child was deleted meanwhile
                await self.revise(tenant, child, without)

    async def plan_merge(self, tenant: str, kept: Id, other: Id) -> Merge:
        """Return what `merge` would do; nothing is written. Raises what `merge` raises, except for the limits of groups
        and ownerships.
        """
        return (await self._plan(tenant, kept, other))[0]

    async def _plan(self, tenant: str, kept: Id, other: Id) -> tuple[Merge, Sequence[str]]:
        if id_text(kept) == id_text(other):
            raise Invalid("SAME_PERSON", "A person cannot be merged with itself.", "other")
        records = [await self._record(tenant, one) for one in (kept, other)]
        one, another = (decode_record(record, User) for record in records)
        groups = [await self._groups.with_member(tenant, user) for user in (kept, other)]
        in_already = {id_text(group.id) for group in groups[0]}
        joins = [group.id for group in groups[1] if id_text(group.id) not in in_already]
        return merged(one, another, joins), records

    async def _record(self, tenant: str, user: Id) -> str:
        record = await self._records.find(tenant, User, user)
        if record is None:
            raise user_not_found(user)
        return record

    async def find(self, tenant: str, user: Id) -> User:
        """Return the person with this id. Raises NotFound USER_NOT_FOUND."""
        return decode_record(await self._record(tenant, user), User)

    async def data_of_fields(self, tenant: str, user: User) -> dict[str, str | int | float]:
        """Return the own fields of a person as values: a number as such, a date as 2026-09-01."""
        return await self._own_fields.data(tenant, user.fields)

    async def lookup(self, tenant: str, ids: Sequence[Id]) -> list[User | None]:
        """Return the people with these ids, in their order; None for an unknown one."""
        return await self._records.values(tenant, User, [id_text(one) for one in ids])

    async def by_email(self, tenant: str, email: str) -> User | None:
        """Return the person with this e-mail address, in any case of letters."""
        return await self._indexed(tenant, "emails", canonical_email(email))

    async def by_contact(self, tenant: str, channel: str, address: str) -> User | None:
        """Return the person with this contact, in any written form of the address."""
        return await self._indexed(tenant, "contacts", f"{channel}:{canonical(channel, address)}")

    async def owners(self, tenant: str, contacts: Sequence[tuple[str, str]]) -> list[str | None]:
        """Return the id of the person with each contact, in the order given; None if no person has it."""
        key = self._records.store.tenant_key("contacts", tenant)
        fields = [f"{channel}:{canonical(channel, address)}" for channel, address in contacts]
        pages = [fields[start : start + PAGE] for start in range(0, len(fields), PAGE)]
        return [owner for page in pages for owner in await self._records.store.command("HMGET", key, *page)]

    async def at(self, tenant: str, contacts: Sequence[tuple[str, str]]) -> list[User | None]:
        """Return the person with each contact, in the order given; None if no person has it."""
        ids = await self.owners(tenant, contacts) if contacts else []
        named = list(dict.fromkeys(one for one in ids if one is not None))
        people = dict(zip(named, await self.lookup(tenant, named), strict=True)) if named else {}
        return [people.get(one) if one is not None else None for one in ids]

    async def removals(self, tenant: str, contacts: Sequence[tuple[Id, str, str]]) -> list[int]:
        """Return the ms at which each contact, a person with channel and address, was removed from this person, 0 if it
        was not.
        """
        keys = [self._records.store.tenant_key("former_contacts", tenant, id_text(one)) for one, *_ in contacts]
        fields = [f"{channel}:{canonical(channel, address)}" for _, channel, address in contacts]
        calls = (self._records.store.command("HGET", key, field) for key, field in zip(keys, fields, strict=True))
        return [int(at or 0) for at in await asyncio.gather(*calls)]

    async def by_external_id(self, tenant: str, external_id: str) -> User | None:
        """Return the person that another system calls by this id."""
        return await self._indexed(tenant, "external_ids", nfc(external_id))

    async def own_ids(self, tenant: str, ids: Iterable[Id]) -> dict[str, str]:
        """Return external id → id of the person, for those of `ids` that are no own ids."""
        given = [one for one in dict.fromkeys(map(id_text, ids)) if is_external_id(one)]
        if not given:
            return {}
        people = await self.lookup(tenant, given)
        unknown = [one for one, user in zip(given, people, strict=True) if user is None]
        key, found = self._records.store.tenant_key("external_ids", tenant), dict[str, str]()
        for start in range(0, len(unknown), PAGE):
            page = unknown[start : start + PAGE]
            owners = await self._records.store.command("HMGET", key, *page)
            found |= {one: owner for one, owner in zip(page, owners, strict=True) if owner is not None}
        return found

    async def add_external_id(self, tenant: str, user: Id, external_id: str) -> User:
        """Add an external id to a person, who may have it already; return the person as it is now.

        Raises NotFound USER_NOT_FOUND, Invalid, Conflict EXTERNAL_ID_TAKEN, LIMIT_REACHED (16 external ids).
        """

        def add(old: User) -> User:
            external_ids = tuple(dict.fromkeys([*old.external_ids, nfc(external_id)]))
            if len(external_ids) > MAX_EXTERNAL_IDS:
                raise limit_reached(f"A person has at most {MAX_EXTERNAL_IDS} external ids.")
            return replace(old, external_ids=external_ids)

        return await self.revise(tenant, user, add)

    async def add_contact(self, tenant: str, user: Id, channel: str, address: str) -> User:
        """Add a contact to a person, who may have it already; return the person as it is now.

        Raises NotFound USER_NOT_FOUND, Invalid, Conflict CONTACT_TAKEN, LIMIT_REACHED (16 addresses of a channel).
        """
        raise_first(faults_of_contacts({channel: [address]}, None))

        def add(old: User) -> User:
            addresses = list(dict.fromkeys([*old.contacts.get(channel, ()), canonical(channel, address)]))
            if len(addresses) > MAX_ADDRESSES:
                raise limit_reached(f"A person has at most {MAX_ADDRESSES} addresses of a channel.")
            return replace(old, contacts={**old.contacts, channel: addresses})

        return await self.revise(tenant, user, add)

    async def remove_contact(self, tenant: str, user: Id, channel: str, address: str) -> User:
        """Remove this one contact of a person; return the person as it is now.

        Raises NotFound USER_NOT_FOUND, CONTACT_NOT_FOUND.
        """
        unwanted = canonical(channel, address)

        def remove(old: User) -> User:
            addresses = old.contacts.get(channel, ())
            if unwanted not in addresses:
                raise NotFound("CONTACT_NOT_FOUND", "The person does not have this contact.")
            return replace(old, contacts={**old.contacts, channel: [one for one in addresses if one != unwanted]})

        return await self.revise(tenant, user, remove)

    async def page(
        self,
        tenant: str,
        *,
        name: str | None = None,
        email: str | None = None,
        contact: tuple[str, str] | None = None,
        external_id: str | None = None,
        group: Id | None = None,
        role: str | None = None,
        guardian: Id | None = None,
        where: str = "",
        is_sorted_by_name: bool = False,
        cursor: str | None = None,
        limit: int = 100,
    ) -> DirectoryPage[User]:
        """Return a page of people, sorted by id as text, or by the first word of the name; within a page by the whole
        name. `contact`: channel and address. Several conditions must all be true. An unknown group has no members. A
        page may end early, with a cursor. `name`: the beginnings of words of the name, in any case; the page is sorted
        by the word then. `where`: conditions for own fields, as
        `OwnFields.conditions` reads them. `guardian`: the children of this person.

        Raises Invalid CURSOR_MALFORMED, CONDITION_MALFORMED, FIELD_VALUE_WRONG.
        """
        conditions = await self._own_fields.conditions(tenant, where, "where") if where else ()
        wanted = _Filter(name, email, contact, external_id, group, role, conditions, guardian)
        after = read_cursor(cursor)
        if any(one is not None for one in (email, contact, external_id)):
            return DirectoryPage([one for one in await self._by_index(tenant, wanted) if id_text(one.id) > after])
        if name is not None:
            return await self._by_name(tenant, by_name(self._records, tenant, name, after, PAGE), wanted, after, limit)
        if is_sorted_by_name:
            entries = all_by_name(self._records, tenant, after, PAGE)
            listed = await self._by_name(tenant, entries, wanted, after, limit)
            return DirectoryPage(sorted(listed.items, key=_order_by_name), listed.next)
        return await self._by_id(tenant, wanted, after, limit)

    async def _by_id(self, tenant: str, wanted: _Filter, after: str, limit: int) -> DirectoryPage[User]:
        """Return the people of the smallest index after an id."""
        found: list[User] = []
        read, size = 0, PAGE if wanted.leaves_out else min(limit + 1, PAGE)
        async for page in pages_of_ids(self._records.store, self._index_of(tenant, wanted), after, size):
            for user_id, user in zip(page, await self.lookup(tenant, page), strict=True):
                if len(found) == limit or read == _MOST_READ:
                    return DirectoryPage(found, write_cursor(after))
                after, read = user_id, read + 1
                if user and _fits_alone(user, wanted):
                    found.append(user)
        return DirectoryPage(found)

    async def _by_name(
        self, tenant: str, entries: AsyncIterator[Sequence[NameHit]], wanted: _Filter, after: str, limit: int
    ) -> DirectoryPage[User]:
        found: list[User] = []
        read = 0
        async for hits in entries:
            for entry, user in hits:
                if len(found) == limit or read == _MOST_READ:
                    return DirectoryPage(found, write_cursor(after))
                after, read = entry, read + 1
                if user and await self._fits(tenant, user, wanted):
                    found.append(user)
        return DirectoryPage(found)

    async def _fits(self, tenant: str, user: User, wanted: _Filter) -> bool:
        """Return whether a person is in the group, and has the role and the own fields, that are wanted."""
        if not _fits_alone(user, wanted):
            return False
        return wanted.group is None or await self._groups.has_member(tenant, wanted.group, user.id)

    def _index_of(self, tenant: str, wanted: _Filter) -> str:
        """Return the sorted set with the fewest people that may be wanted."""
        if wanted.group is not None:
            return self._groups.key_of_members(tenant, wanted.group)
        if wanted.guardian is not None:
            return self._key_of_children(tenant, wanted.guardian)
        if wanted.role is not None:
            return self._records.store.tenant_key("role", tenant, wanted.role)
        return self._records.store.tenant_key("userids", tenant)

    async def _by_index(self, tenant: str, wanted: _Filter) -> list[User]:
        """Return the one person with this e-mail address or contact, if the other conditions are true too."""
        found = [await self.by_email(tenant, wanted.email)] if wanted.email is not None else []
        found += [await self.by_contact(tenant, *wanted.contact)] if wanted.contact is not None else []
        found += [await self.by_external_id(tenant, wanted.external_id)] if wanted.external_id is not None else []
        user = found[0]
        if user is None or any(other != user for other in found):
            return []
        return [user] if await self._fits(tenant, user, wanted) else []

    async def _indexed(self, tenant: str, index: str, field: str) -> User | None:
        """Return the person that an index names. None if it is deleted meanwhile."""
        user_id = await self._records.store.command("HGET", self._records.store.tenant_key(index, tenant), field)
        return (await self.lookup(tenant, [user_id]))[0] if user_id is not None else None

    async def revise(self, tenant: str, user: Id, changed: Callable[[User], User]) -> User:
        """Write what `changed` makes of the person; again from its new state if another caller was faster. Own fields
        must have the forms of their types.

        Raises NotFound USER_NOT_FOUND, Invalid, Conflict EMAIL_TAKEN, CONTACT_TAKEN, EXTERNAL_ID_TAKEN, and what
        `changed` raises.
        """
        while True:
            record = await self._record(tenant, user)
            new = changed(decode_record(record, User))
            raise_first(faults_of_user(new))
            new = canonical_user(new)
            arguments = (tenant, id_text(user), version_of(record), encode_record(new))
            reply = await self._records.write("update_user", *arguments)
            _raise_taken(reply)
            if reply[0] == "updated":
                return new


def _order_by_name(user: User) -> tuple[bool, Sequence[str], str]:
    """Return what a person is sorted by in a list by name: those without a name are last."""
    words = name_words(user.name)
    return not words, words, id_text(user.id)


def _with_heir(child: User, guardians: Sequence[str], guardian: Id, heir: Id | None) -> Sequence[str]:
    named = [heir if one == id_text(guardian) else one for one in guardians]
    return tuple(dict.fromkeys(id_text(one) for one in named if one is not None and id_text(one) != id_text(child.id)))


def _fits_alone(user: User, wanted: _Filter) -> bool:
    if wanted.guardian is not None and id_text(wanted.guardian) not in (*user.guardians, *user.blocked_guardians):
        return False
    return wanted.role in (None, user.role) and all(one.is_met(user.fields) for one in wanted.where)


def _raise_taken(reply: Sequence[str]) -> None:
    if reply[0] == "email":
        raise Conflict("EMAIL_TAKEN", "Another person has this e-mail address.", "email")
    if reply[0] == "external_id":
        raise Conflict("EXTERNAL_ID_TAKEN", f"Another person has the external id {reply[1]}.", "external_ids")
    if reply[0] == "guardian":
        raise Invalid("GUARDIAN_NOT_FOUND", f"There is no person {reply[1]!r} that could be a guardian.", "guardians")
    if reply[0] == "contact":
        channel = reply[1].partition(":")[0]
        raise Conflict("CONTACT_TAKEN", "Another person has this contact.", f"contacts.{channel}")
