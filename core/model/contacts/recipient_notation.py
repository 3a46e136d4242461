"""Recipients as one line of text: the same in a JSON body, on the command line and on the web page. Pure.

    7                                     the recipient with the id 7
    7=telegram:100001,sms:+79991112233    the same, with contacts given here
    telegram:100001                       a recipient known only by contacts; the text is the id
    1c:00042                              the person with this external id: `core.orders.addressing`
    group:ИВТ-21    supergroup:1 курс     all members

Blanks around ids, channels and addresses do not count. An id that contains `:` or `=` needs the JSON object.
"""

from typing import Any

GROUPS = ("group", "supergroup")

_ID = r"[^:=]*[^:=\s][^:=]*"
_CONTACT = r"[^:=,]*[^:=,\s][^:=,]*:[^=,]*[^=,\s][^=,]*"
PATTERN = rf"^({_ID}|\s*(super)?group:[^=]*[^=\s][^=]*|({_ID}=)?{_CONTACT}(,{_CONTACT})*)$"
"""Lines that `read` accepts, as a regular expression of JSON Schema. A test compares both."""


def read(line: str) -> dict[str, Any]:
    """Return the recipient as the JSON object with the same meaning. Raises ValueError with a message for people."""
    line = line.strip()
    recipient_id, equals, contacts = line.partition("=")
    if equals:
        return {"id": _read_id(recipient_id.strip()), "contacts": _read_contacts(contacts)}
    kind, colon, name = line.partition(":")
    if not colon:
        return {"id": _read_id(line)}
    if kind.strip() in GROUPS:
        if not name.strip():
            raise ValueError(f"The name of the {kind.strip()} is missing.")
        return {kind.strip(): name.strip()}
    return {"id": line, "contacts": _read_contacts(line)}


def _read_id(text: str) -> int | str:
    """Return an integer if the text is one in its usual form, else the text."""
    if not text:
        raise ValueError("The id is missing.")
    if ":" in text:
        raise ValueError("An id that contains a colon needs the JSON object.")
    is_number = text.isascii() and text.isdecimal() and len(text) < 19 and str(int(text)) == text
    return int(text) if is_number else text


def _read_contacts(text: str) -> dict[str, list[str]]:
    contacts: dict[str, list[str]] = {}
    for contact in text.split(","):
        channel, _, address = (part.strip() for part in contact.partition(":"))
        if not (channel and address) or "=" in contact:
            raise ValueError(f"“{contact.strip()}” is not channel:address, for example telegram:100001.")
        contacts.setdefault(channel, []).append(address)
    return contacts
