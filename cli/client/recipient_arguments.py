"""Parses recipients as they are written on a command line. Pure.

7                              the recipient with id 7; the directory knows the contacts
7=telegram:100001,sms:+7999…   the same, with the contacts given here
telegram:100001                a recipient known only by this contact
group:ИВТ-21  supergroup:1     all members
"""

from typing import Any

from cli.command import WRONG_USAGE, CommandFailed

GROUPS = ("group", "supergroup")


def parse_recipient(text: str) -> dict[str, Any]:
    """The recipient in the form of the API. Raises CommandFailed."""
    recipient_id, equals, contacts = text.partition("=")
    if equals:
        return {"id": parse_id(recipient_id), "contacts": parse_contacts(contacts)}
    kind, colon, name = text.partition(":")
    if not colon:
        return {"id": parse_id(text)}
    if kind in GROUPS:
        return {kind: name}
    return {"id": text, "contacts": parse_contacts(text)}


def parse_id(text: str) -> int | str:
    """An integer if the text is one in its usual form, else the text. Raises CommandFailed if it is empty."""
    if not text:
        raise CommandFailed("a recipient without id", WRONG_USAGE)
    return int(text) if text.isdecimal() and text.isascii() and str(int(text)) == text else text


def parse_contacts(text: str) -> dict[str, list[str]]:
    contacts: dict[str, list[str]] = {}
    for contact in text.split(","):
        channel, colon, address = contact.partition(":")
        if not (channel and colon and address):
            raise CommandFailed(f"{contact!r} is not channel:address, for example telegram:100001", WRONG_USAGE)
        contacts.setdefault(channel, []).append(address)
    return contacts
