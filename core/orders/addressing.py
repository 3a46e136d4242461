"""Turns addressees into recipients: looks people up, expands groups, checks who may write to them.

Each refusal names the addressee, `recipients.<number>`, and leaves no trace: nothing is written here.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from core.admission.quotas import ADMIN
from core.directory import Directory
from core.errors import Forbidden, Invalid, NotFound
from core.model.delivery import Recipient
from core.model.history_key import Id
from core.model.people import ObjectKind, User
from core.orders.merging import each_once
from core.orders.order import Addressee, GroupRef, SupergroupRef, UserRef

NO_VALUES: Mapping[str, str] = {}
GroupRefs = Mapping[int, GroupRef | SupergroupRef]
"""The groups and supergroups among addressees, by number."""


class Addressed(NamedTuple):
    """The people of a delivery, each once. `mentions`: as they were found, a person perhaps more than once."""

    recipients: Sequence[Recipient]
    mentions: Sequence[Recipient]

    @property
    def repeated(self) -> int:
        """Return how many people are addressed more than once: by their id, or in several groups that are no virtual
        ones."""
        counts = Counter(str(one.id) for one in self.mentions)
        return sum(counts[str(one.id)] > 1 or len(one.origin) > 1 for one in self.recipients)


class Addressing:
    """One per process."""

    def __init__(self, directory: Directory, max_recipients: int) -> None:
        self._directory = directory
        self._max_recipients = max_recipients

    async def recipients(self, tenant: str, addressees: Sequence[Addressee], sender: Id, role: str | None) -> Addressed:
        """Return each person once. Raises Invalid USER_NOT_FOUND, GROUP_NOT_FOUND, SUPERGROUP_NOT_FOUND,
        NOBODY_ADDRESSED, TOO_MANY_RECIPIENTS, Forbidden NOT_OWNER.
        """
        found = [one for one in addressees if isinstance(one, Recipient)]
        if len(found) < len(addressees):
            found = await self._people(tenant, addressees)
            found += await self._members(tenant, _groups_in(addressees), sender, role)
        merged = each_once(found) if len(found) > 1 else found
        self._check_number(merged)
        return Addressed(merged, found)

    def _check_number(self, recipients: Sequence[Recipient]) -> None:
        if not recipients:
            raise Invalid("NOBODY_ADDRESSED", "The groups have no members.", "recipients")
        if len(recipients) > self._max_recipients:
            detail = f"At most {self._max_recipients} recipients are allowed."
            raise Invalid("TOO_MANY_RECIPIENTS", detail, "recipients")

    async def _people(self, tenant: str, addressees: Sequence[Addressee]) -> list[Recipient]:
        """Return the recipients among the addressees, and the people of the directory, in their order."""
        named = [one for one in addressees if isinstance(one, UserRef)]
        users = iter(await self._directory.users.lookup(tenant, [one.id for one in named]) if named else ())
        people: list[Recipient] = []
        for number, one in enumerate(addressees):
            if isinstance(one, Recipient):
                people.append(one)
            elif isinstance(one, UserRef):
                people.append(_recipient_of(next(users), one, number))
        return people

    async def _members(self, tenant: str, groups: GroupRefs, sender: Id, role: str | None) -> list[Recipient]:
        if not groups:
            return []
        if role not in (None, ADMIN):
            await self._check_owner(tenant, groups, sender)
        ids = [one.id for one in groups.values() if isinstance(one, GroupRef)]
        super_ids = [one.id for one in groups.values() if isinstance(one, SupergroupRef)]
        try:
            expansion = await self._directory.expander.expand(tenant, ids, super_ids)
        except NotFound:
            await self._refuse_unknown(tenant, groups)
            raise
        return [_with_contacts(one.user, one.user.id, origin=one.origin) for one in expansion.members]

    async def _check_owner(self, tenant: str, groups: GroupRefs, sender: Id) -> None:
        """Check that the sender may write to these groups. Raises Forbidden NOT_OWNER for the first group that is not
        the sender's, or Invalid if it does not exist.
        """
        owns = self._directory.ownerships.owns
        owned = await asyncio.gather(*(owns(tenant, sender, _kind_of(one), one.id) for one in groups.values()))
        for (number, group), is_owned in zip(groups.items(), owned, strict=True):
            if not is_owned:
                await self._refuse_unknown(tenant, {number: group})
                kind = _kind_of(group)
                raise Forbidden("NOT_OWNER", f"The sender is no owner of the {kind} {group.id!r}.", _path(number, kind))

    async def _refuse_unknown(self, tenant: str, groups: GroupRefs) -> None:
        """Check that all groups exist. Raises Invalid for the first group that does not exist."""
        for number, group in groups.items():
            try:
                if isinstance(group, GroupRef):
                    await self._directory.groups.require(tenant, [group.id])
                else:
                    await self._directory.supergroups.require(tenant, [group.id])
            except NotFound as unknown:
                raise Invalid(unknown.code, unknown.detail, _path(number, _kind_of(group))) from None


def _groups_in(addressees: Iterable[Addressee]) -> GroupRefs:
    return {number: one for number, one in enumerate(addressees) if isinstance(one, GroupRef | SupergroupRef)}


def _kind_of(group: GroupRef | SupergroupRef) -> ObjectKind:
    return "group" if isinstance(group, GroupRef) else "supergroup"


def _path(number: int, field: str) -> str:
    return f"recipients.{number}.{field}"


def _recipient_of(user: User | None, ref: UserRef, number: int) -> Recipient:
    """Return a person of the directory as a recipient. Raises Invalid USER_NOT_FOUND."""
    if user is None:
        detail = f"The directory has no person {ref.id!r}, and no contacts are given."
        raise Invalid("USER_NOT_FOUND", detail, _path(number, "id"))
    return _with_contacts(user, ref.id, name=ref.name, values=ref.values, place=ref.place)


def _with_contacts(
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
    contacts = user.contacts
    if user.blocked:
        return Recipient(given, name or user.name, {}, origin, tuple(contacts), values, place, user.fields)
    if user.opt_out:
        contacts = {channel: addresses for channel, addresses in contacts.items() if channel not in user.opt_out}
    return Recipient(given, name or user.name, contacts, origin, user.opt_out, values, place, user.fields)
