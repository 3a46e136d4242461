"""Whom to send to, as it is typed on a command line. Pure.

7                              the person with id 7, whose contacts the directory knows
7=telegram:100001,sms:+7999…   the same with contacts given at once
telegram:100001                somebody known by this contact alone
group:ИВТ-21  supergroup:1     all members
"""

from typing import Any

from cli.command import WRONG_USAGE, NotDone

GROUPS = ("group", "supergroup")


def recipient(text: str) -> dict[str, Any]:
    """The recipient as the API wants it. Raises NotDone."""
    who, equals, contacts = text.partition("=")
    if equals:
        return {"id": person(who), "contacts": contacts_of(contacts)}
    kind, colon, name = text.partition(":")
    if not colon:
        return {"id": person(text)}
    if kind in GROUPS:
        return {kind: name}
    return {"id": text, "contacts": contacts_of(text)}


def person(text: str) -> int | str:
    """An id as it was meant: a whole number is a number."""
    if not text:
        raise NotDone("a recipient without id", WRONG_USAGE)
    return int(text) if text.isdecimal() and text.isascii() and str(int(text)) == text else text


def contacts_of(text: str) -> dict[str, list[str]]:
    contacts: dict[str, list[str]] = {}
    for one in text.split(","):
        channel, colon, address = one.partition(":")
        if not (channel and colon and address):
            raise NotDone(f"{one!r} is not channel:address, as in telegram:100001", WRONG_USAGE)
        contacts.setdefault(channel, []).append(address)
    return contacts
