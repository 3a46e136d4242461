"""Turns addressees into recipients: looks people up, expands groups, adds guardians, checks who may write to them.

Each refusal names the place of the addressee, and leaves no trace: nothing is written here. A guardian of several
addressed children is mentioned for each of them. All mentions of a person become one recipient with the contacts, names
and origins of them all (D-02), so siblings are one message. Who is blocked for a child is left out and named.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from core.directory import Directory
from core.directory.users import Users
from core.errors import Forbidden, Invalid, NotFound
from core.model.contacts.addresses import canonical, without_duplicates
from core.model.delivery import Audience, GuardedChild, Recipient, Uninformed
from core.model.history_key import Id
from core.model.own_fields import OwnFieldsByName, shown
from core.model.people import ObjectKind, User, canonical_id, id_text
from core.model.text.characters import nfc, without_marks
from core.model.text.personal import field_name
from core.orders.order import Addressee, AnyAddressee, Placed
from core.orders.sending_policy import writes_to_all
from core.sentence import language_of

GroupRefs = Mapping[str, Addressee]
"""The groups and supergroups among addressees, by place."""
NO_GUARDIAN, GUARDIAN_BLOCKED = "no_guardian", "guardian_blocked"
NO_VALUES: Mapping[str, str] = {}


class Addressing:
    """One per process. `open_to_staff`: the tenants in which staff writes to all."""

    def __init__(self, directory: Directory, max_recipients: int, open_to_staff: Collection[str]) -> None:
        self._directory = directory
        self._max_recipients = max_recipients
        self._open_to_staff = open_to_staff

    async def by_own_ids(
        self, tenant: str, addressees: Sequence[AnyAddressee], channels: Collection[str]
    ) -> Sequence[AnyAddressee]:
        """Return the addressees with the ids of people in place of their external ids, such as `1c:00042`. An id that
        belongs to a person is that person's, and the name of a channel begins an address.
        """
        named = {number: _external(one, channels) for number, one in enumerate(addressees)}
        if not any(named.values()):
            return addressees
        owns = await self._directory.users.own_ids(tenant, [one for one in named.values() if one])
        return [
            replace(one, id=owns[named[number]], contacts=UNSET) if named[number] in owns else one
            for number, one in enumerate(addressees)
        ]

    async def mentions(
        self, tenant: str, addressees: Placed, sender: Id, role: str | None, audience: Audience, language: str
    ) -> tuple[Sequence[Recipient], Sequence[Uninformed]]:
        """Return the people who are addressed, a person perhaps more than once, or their guardians; and the guardians
        that get nothing. `language`: of the text. Raises Invalid USER_NOT_FOUND, GROUP_NOT_FOUND, SUPERGROUP_NOT_FOUND,
        Forbidden NOT_OWNER.
        """
        people = await self._people(tenant, addressees)
        people += await self._members(tenant, _groups_in(addressees), sender, role)
        mentions, uninformed = await for_audience(self._directory.users, tenant, people, audience)
        return await self._readable(tenant, mentions, language), uninformed

    def each_once(self, mentions: Sequence[Recipient]) -> Sequence[Recipient]:
        """Return each person once. Raises Invalid NOBODY_ADDRESSED, TOO_MANY_RECIPIENTS, VALUES_DIFFER."""
        recipients = each_once(mentions) if len(mentions) > 1 else mentions
        if not recipients:
            detail = "Nobody is addressed: the groups have no members, or these people no guardians."
            raise Invalid("NOBODY_ADDRESSED", detail, "recipients")
        if len(recipients) > self._max_recipients:
            detail = f"At most {self._max_recipients} recipients are allowed."
            raise Invalid("TOO_MANY_RECIPIENTS", detail, "recipients")
        return recipients

    async def _readable(self, tenant: str, people: Sequence[Recipient], language: str) -> Sequence[Recipient]:
        """Return recipients with their own fields as people read them, in the language of each, else of the text."""
        types = await self._directory.own_fields.all(tenant) if any(one.fields for one in people) else {}
        if not types:
            return people
        return [_with_readable_fields(one, types, language) if one.fields else one for one in people]

    async def _people(self, tenant: str, addressees: Placed) -> list[Recipient]:
        """Return the single people among the addressees, in their order."""
        named = [_id(one) for _, one in addressees if isinstance(one, Addressee) and one.is_in_directory]
        users = iter(await self._directory.users.lookup(tenant, named) if named else ())
        people: list[Recipient] = []
        given: list[int] = []
        for place, one in addressees:
            if isinstance(one, Recipient):
                people.append(one)
            elif one.is_in_directory:
                people.append(_of_directory(next(users), one, place))
            elif not one.is_group:
                given.append(len(people))
                people.append(_with_given_contacts(one, place))
        wanted = await self._as_owners_wish(tenant, [people[number] for number in given]) if given else ()
        for number, one in zip(given, wanted, strict=True):
            people[number] = one
        return people

    async def _as_owners_wish(self, tenant: str, people: Sequence[Recipient]) -> Sequence[Recipient]:
        """Return recipients with given contacts without those that belong to a person of the directory that wants no
        messages there, or is blocked; and in the hours of that person. A recipient that is only an address is the
        person that has it, unless the message names somebody else with this address.
        """
        places = [(channel, to) for one in people for channel, some in one.contacts.items() for to in some]
        found = await self._directory.users.at(tenant, places)
        owners = {place: user for place, user in zip(places, found, strict=True) if user}
        if not owners:
            return people
        bare = [_bare_address(one) for one in people]
        taken = {place for one, its in zip(people, bare, strict=True) if its is None for place in _places(one)}
        return [
            _as_owners_wish(one, owners, is_person=_is_address(one) and its not in taken)
            for one, its in zip(people, bare, strict=True)
        ]

    async def _members(self, tenant: str, groups: GroupRefs, sender: Id, role: str | None) -> list[Recipient]:
        if not groups:
            return []
        if role is not None and not writes_to_all(role, tenant, self._open_to_staff):
            await self._check_owner(tenant, groups, sender)
        ids = [nfc(one.group) for one in groups.values() if one.group]
        super_ids = [nfc(one.supergroup) for one in groups.values() if one.supergroup]
        try:
            expansion = await self._directory.expander.expand(tenant, ids, super_ids)
        except NotFound:
            await self._refuse_unknown(tenant, groups)
            raise
        return [as_recipient(one.user, one.user.id, origin=one.origin) for one in expansion.members]

    async def _check_owner(self, tenant: str, groups: GroupRefs, sender: Id) -> None:
        """Check that the sender may write to these groups. Raises Forbidden NOT_OWNER for the first group that is not
        the sender's, or Invalid if it does not exist.
        """
        owns = self._directory.ownerships.owns
        owned = await asyncio.gather(*(owns(tenant, sender, _kind_of(one), _group_id(one)) for one in groups.values()))
        for (place, group), is_owned in zip(groups.items(), owned, strict=True):
            if not is_owned:
                await self._refuse_unknown(tenant, {place: group})
                kind = _kind_of(group)
                detail = f"The sender is no owner of the {kind} {_group_id(group)!r}."
                raise Forbidden("NOT_OWNER", detail, f"{place}.{kind}", str(_group_id(group)))

    async def _refuse_unknown(self, tenant: str, groups: GroupRefs) -> None:
        """Check that all groups exist. Raises Invalid for the first group that does not exist."""
        for place, group in groups.items():
            try:
                if group.group:
                    await self._directory.groups.require(tenant, [_group_id(group)])
                else:
                    await self._directory.supergroups.require(tenant, [_group_id(group)])
            except NotFound as unknown:
                raise Invalid(unknown.code, unknown.said, f"{place}.{_kind_of(group)}", unknown.about) from None


def _with_readable_fields(person: Recipient, types: OwnFieldsByName, language: str) -> Recipient:
    values, own = person.fields.items(), language_of(person.locale, language)
    fields = {name: shown(types[name], value, own) if name in types else value for name, value in values}
    return replace(person, fields=fields)


def _external(given: AnyAddressee, channels: Collection[str]) -> str:
    """Return what may be the external id by which an addressee is named, "" if nothing is. In a line of text it looks
    like a contact.
    """
    if isinstance(given, Recipient) or not isinstance(given.id, str):
        return ""
    system, _, own = given.id.partition(":")
    is_line = given.contacts == {system: [own]} and system not in channels
    return nfc(given.id) if is_line or given.is_in_directory else ""


def _groups_in(addressees: Placed) -> GroupRefs:
    return {place: one for place, one in addressees if isinstance(one, Addressee) and one.is_group}


def _kind_of(group: Addressee) -> ObjectKind:
    return "group" if group.group else "supergroup"


def _group_id(group: Addressee) -> str:
    return nfc(group.group or group.supergroup or "")


def _of_directory(user: User | None, given: Addressee, place: str) -> Recipient:
    """Return a person of the directory as a recipient. Raises Invalid USER_NOT_FOUND."""
    if user is None:
        detail = f"The directory has no person {given.id!r}, and no contacts are given."
        raise Invalid("USER_NOT_FOUND", detail, f"{place}.id", str(given.id))
    return as_recipient(user, canonical_id(_id(given)), name=given.name or None, values=_values(given), place=place)


def _with_given_contacts(given: Addressee, place: str) -> Recipient:
    contacts = {
        channel: _unique(channel, [addresses] if isinstance(addresses, str) else addresses)
        for channel, addresses in (given.contacts or {}).items()
        if addresses
    }
    named, locale = canonical_id(_id(given)), given.locale or ""
    return Recipient(named, given.name or None, contacts, values=_values(given), place=place, locale=locale)


def _as_owners_wish(one: Recipient, owners: Mapping[tuple[str, str], User], *, is_person: bool) -> Recipient:
    """`owners`: channel and address → the person of the directory that has it; `is_person`: the recipient is this
    person.
    """
    own = [user for channel, some in one.contacts.items() for to in some if (user := owners.get((channel, to)))]
    if not own:
        return one

    def is_wanted(channel: str, address: str) -> bool:
        owner = owners.get((channel, address))
        return owner is None or owner.accepts(channel)

    wanted = {channel: [to for to in some if is_wanted(channel, to)] for channel, some in one.contacts.items()}
    contacts = {channel: some for channel, some in wanted.items() if some}
    named = replace(
        one,
        contacts=contacts,
        opted_out=tuple(channel for channel in one.contacts if channel not in contacts),
        hours=next((user.hours for user in own if user.hours), ""),
        blocked=not contacts and all(user.blocked for user in own),
    )
    if not is_person:
        return named
    (owner,) = own
    name, locale = one.name or owner.name, one.locale or owner.locale
    return replace(named, id=owner.id, name=name, fields=owner.fields, locale=locale)


def _id(given: Addressee) -> Id:
    assert not isinstance(given.id, UnsetType), "core.orders.check refuses a recipient without an id"
    return given.id


def _values(given: Addressee) -> Mapping[str, str]:
    """Return the values of a recipient by the names of their fields."""
    values = given.values or {}
    return {field_name(written): "" if value is None else str(value) for written, value in values.items()}


def _unique(channel: str, addresses: Sequence[str]) -> Sequence[str]:
    """Return each address once, as it was written, but without the invisible marks round it."""
    plain = [without_marks(nfc(one)) for one in addresses]
    return plain if len(plain) == 1 else without_duplicates(channel, plain)


async def for_audience(
    users: Users, tenant: str, mentions: Sequence[Recipient], audience: Audience
) -> tuple[Sequence[Recipient], Sequence[Uninformed]]:
    """Return the mentions of those who get the message, and the children of whom a guardian does not, or who have none.
    A guardian has the values, the groups and the place of its child.
    """
    if audience is Audience.STUDENTS:
        return mentions, ()
    children = {id_text(one.id): one.id for one in mentions}
    known = dict(zip(children, await users.lookup(tenant, list(children)), strict=True))
    named = list(dict.fromkeys(one for user in known.values() if user for one in user.informed_guardians))
    guardians = dict(zip(named, await users.lookup(tenant, named), strict=True))
    found: list[Recipient] = []
    for one in mentions:
        child, user = GuardedChild(one.id, one.name), known[id_text(one.id)]
        if audience is Audience.BOTH:
            found.append(replace(one, children=[child]) if user else one)
        informed = [guardians[name] for name in user.informed_guardians] if user else []
        found += [_guardian(guardian, one, child) for guardian in informed if guardian]
    return found, [fault for name, given in children.items() for fault in _uninformed(given, known[name], guardians)]


def _guardian(guardian: User, mention: Recipient, child: GuardedChild) -> Recipient:
    found = as_recipient(guardian, guardian.id, origin=mention.origin, values=mention.values, place=mention.place)
    return replace(found, children=[child])


def _uninformed(child: Id, user: User | None, guardians: Mapping[str, User | None]) -> list[Uninformed]:
    """Return why guardians of a child get nothing: none is known, or one is blocked for this child. The block of a
    person for all messages is the outcome of its own message.
    """
    blocked = [Uninformed(child, GUARDIAN_BLOCKED, one) for one in (user.blocked_guardians if user else ())]
    has_one = user is not None and any(guardians[one] for one in user.informed_guardians)
    return blocked if has_one else [*blocked, Uninformed(child, NO_GUARDIAN)]


def as_recipient(
    user: User,
    given: Id,
    *,
    name: str | None = None,
    origin: Sequence[str] = (),
    values: Mapping[str, str] = NO_VALUES,
    place: str = "",
) -> Recipient:
    """Return a person of the directory as a recipient, without the channels in which it wants no messages: all, if it
    is blocked.
    """
    contacts, is_blocked = user.contacts, user.blocked
    if is_blocked:
        contacts, user = {}, replace(user, opt_out=tuple(contacts))
    elif user.opt_out:
        contacts = {channel: addresses for channel, addresses in contacts.items() if channel not in user.opt_out}
    about = name or user.name, contacts, origin, user.opt_out, values, place, user.fields, user.locale or "", user.hours
    return Recipient(given, *about, blocked=is_blocked)


def each_once(recipients: Iterable[Recipient]) -> Sequence[Recipient]:
    """Return each recipient once, in the order of the first mentions. Equal ids of different types (7, "7") are one. A
    bare address, such as `telegram:100001`, and a person that has it are one. Raises Invalid VALUES_DIFFER.
    """
    merged: dict[str, Recipient] = {}
    repeated: dict[str, list[Recipient]] = {}
    for one in recipients:
        name = str(one.id)
        if merged.setdefault(name, one) is not one:
            repeated.setdefault(name, [merged[name]]).append(one)
    for name, mentions in repeated.items():
        merged[name] = _one_of(mentions)
    bare = {name: place for name, one in merged.items() if (place := _bare_address(one))}
    return _without_bare(merged, bare) if bare else list(merged.values())


def _places(one: Recipient) -> set[tuple[str, str]]:
    """Return channel and address of each contact."""
    return {(channel, canonical(channel, to)) for channel, some in one.contacts.items() for to in some}


def _is_address(one: Recipient) -> bool:
    """Return whether a recipient is named by one address alone, such as `telegram:100001`."""
    channel, _, address = str(one.id).partition(":")
    contacts = [(name, canonical(name, to)) for name, some in one.contacts.items() for to in some]
    return contacts == [(channel, canonical(channel, address))]


def _bare_address(one: Recipient) -> tuple[str, str] | None:
    """Return channel and address of a recipient that is only an address, without values of its own; else None."""
    channel, _, address = str(one.id).partition(":")
    return (channel, canonical(channel, address)) if _is_address(one) and not one.values else None


def _without_bare(merged: Mapping[str, Recipient], bare: Mapping[str, tuple[str, str]]) -> Sequence[Recipient]:
    """Return recipients without the bare addresses that another one of them has."""
    wanted, owners, left = set(bare.values()), dict[tuple[str, str], str](), dict(merged)
    for name, one in sorted(merged.items(), key=lambda item: item[0] in bare):  # people first
        for place in _places(one) & wanted:
            owners.setdefault(place, name)
    for name, place in bare.items():
        if (owner := owners[place]) != name:
            left[owner] = _one_of([left[owner], left.pop(name)])
    return list(left.values())


def _one_of(mentions: Sequence[Recipient]) -> Recipient:
    """Return one recipient of several mentions. A channel that the person has left is used with none of its
    contacts."""
    opted_out = _each(channel for one in mentions for channel in one.opted_out)
    addresses: dict[str, list[str]] = {}
    for one in mentions:
        for channel, of_one in one.contacts.items():
            addresses.setdefault(channel, []).extend(of_one)
    contacts = {name: without_duplicates(name, found) for name, found in addresses.items() if name not in opted_out}
    name = next((one.name for one in mentions if one.name), None)
    origin = _each(group for one in mentions for group in one.origin)
    place = next((one.place for one in mentions if one.place), "")
    fields = next((one.fields for one in mentions if one.fields), {})
    locale = next((one.locale for one in mentions if one.locale), "")
    children = tuple({str(child.id): child for one in mentions for child in one.children}.values())
    hours, values = next((one.hours for one in mentions if one.hours), ""), _values_of(mentions)
    about = origin, opted_out, values, place, fields, locale, hours, children
    return Recipient(mentions[0].id, name, contacts, *about, blocked=any(one.blocked for one in mentions))


def _values_of(mentions: Sequence[Recipient]) -> Mapping[str, str]:
    """Return the values of all mentions. Raises Invalid VALUES_DIFFER: a person gets one text."""
    values: dict[str, str] = {}
    for one in mentions:
        for field, value in one.values.items():
            if values.setdefault(field, value) != value:
                detail = f"The recipient {one.id!r} occurs twice, and {field!r} is {values[field]!r} and {value!r}."
                raise Invalid("VALUES_DIFFER", detail, f"{one.place}.values.{field}")
    return values


def _each(values: Iterable[str]) -> Sequence[str]:
    return tuple(dict.fromkeys(values))
