"""Each person once, with the contacts, names and origins of all its mentions (D-02). Pure."""

from collections.abc import Iterable, Sequence

from core.model.contacts.addresses import without_duplicates
from core.model.delivery import Recipient


def each_once(recipients: Iterable[Recipient]) -> Sequence[Recipient]:
    """Return each recipient once, in the order of the first mentions. Equal ids of different types (7, "7") are one."""
    merged: dict[str, Recipient] = {}
    repeated: dict[str, list[Recipient]] = {}
    for one in recipients:
        name = str(one.id)
        if merged.setdefault(name, one) is not one:
            repeated.setdefault(name, [merged[name]]).append(one)
    for name, mentions in repeated.items():
        merged[name] = _one_of(mentions)
    return list(merged.values())


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
    return Recipient(
        mentions[0].id, name, contacts, _each(group for one in mentions for group in one.origin), opted_out
    )


def _each(values: Iterable[str]) -> Sequence[str]:
    return tuple(dict.fromkeys(values))
