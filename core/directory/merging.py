"""Merges two people into one. Pure."""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from core.directory.records import limit_reached
from core.model.history_key import Id
from core.model.people import MAX_ADDRESSES, User


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
    user = replace(
        kept,
        name=kept.name or other.name,
        email=kept.email or other.email,
        role=kept.role or other.role,
        contacts=contacts,
        opt_out=tuple(dict.fromkeys([*kept.opt_out, *other.opt_out])),
        blocked=kept.blocked or other.blocked,
        fields={**other.fields, **kept.fields},
    )
    both = {name: (getattr(other, name), getattr(user, name)) for name in ("name", "email", "role")}
    both |= {f"fields.{name}": (theirs, user.fields[name]) for name, theirs in other.fields.items()}
    return Merge(
        user, other, groups, {name: theirs for name, (theirs, ours) in both.items() if theirs not in (None, ours)}
    )
