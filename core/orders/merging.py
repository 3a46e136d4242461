"""Each person once, with the contacts, names and origins of all its mentions (D-02). Pure."""

from collections.abc import Iterable, Mapping, Sequence

from core.errors import Invalid
from core.model.contacts.addresses import canonical, without_duplicates
from core.model.delivery import Recipient


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


def _bare_address(one: Recipient) -> tuple[str, str] | None:
    """Return channel and address of a recipient that is only an address, without values of its own; else None."""
    channel, _, address = str(one.id).partition(":")
    is_bare = not one.values and list(one.contacts.items()) == [(channel, [address])]
    return (channel, canonical(channel, address)) if is_bare else None


def _without_bare(merged: Mapping[str, Recipient], bare: Mapping[str, tuple[str, str]]) -> Sequence[Recipient]:
    """Return recipients without the bare addresses that another one of them has."""
    wanted, owners, left = set(bare.values()), dict[tuple[str, str], str](), dict(merged)
    for name, one in sorted(merged.items(), key=lambda item: item[0] in bare):  # people first
        places = {(channel, canonical(channel, to)) for channel, some in one.contacts.items() for to in some}
        for place in places & wanted:
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
    return Recipient(mentions[0].id, name, contacts, origin, opted_out, values, place, fields, locale, hours, children)


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
