"""Who gets an order about people of the directory: they themselves, their guardians, or both.

A guardian of several addressed children is mentioned for each of them; `core.orders.merging` makes one recipient of the
mentions, so siblings are one message. Who is blocked for a child is left out and named.
"""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from core.directory.users import Users
from core.model.delivery import Audience, GuardedChild, Recipient, Uninformed
from core.model.history_key import Id
from core.model.people import User, id_text

NO_GUARDIAN, GUARDIAN_BLOCKED = "no_guardian", "guardian_blocked"
NO_VALUES: Mapping[str, str] = {}


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
    contacts = user.contacts
    if user.blocked:
        contacts, user = {}, replace(user, opt_out=tuple(contacts))
    elif user.opt_out:
        contacts = {channel: addresses for channel, addresses in contacts.items() if channel not in user.opt_out}
    about = name or user.name, contacts, origin, user.opt_out, values, place, user.fields, user.locale, user.hours
    return Recipient(given, *about)
