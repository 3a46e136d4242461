"""The order of a caller: a delivery whose recipients may be named by the directory, and its author. Frozen values.

A recipient may be one line of text, the same in a JSON body, on the command line and on the web page:

    7                                     the recipient with the id 7
    7=telegram:100001,sms:+79991112233    the same, with contacts given here
    telegram:100001                       a recipient known only by contacts; the text is the id
    1c:00042                              the person with this external id: `core.orders.addressing`
    group:ИВТ-21    supergroup:1 курс     all members

Blanks around ids, channels and addresses do not count. An id that contains `:` or `=` needs the JSON object.
"""

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from core.model.delivery import Audience, Following, NewDelivery, Recipient
from core.model.field_types import (
    Contacts,
    DeliveryId,
    Encoding,
    FieldValues,
    IdField,
    Label,
    Name,
    SheetName,
    UploadId,
)
from core.model.people import Locale, User
from core.model.text.personal import marks_in

GROUPS = ("group", "supergroup")
_ID = r"[^:=]*[^:=\s][^:=]*"
_CONTACT = r"[^:=,]*[^:=,\s][^:=,]*:[^=,]*[^=,\s][^=,]*"
RECIPIENT_PATTERN = rf"^({_ID}|\s*(super)?group:[^=]*[^=\s][^=]*|({_ID}=)?{_CONTACT}(,{_CONTACT})*)$"
"""Lines that `read_recipient` accepts, as a regular expression of JSON Schema. A test compares both."""


class Addressee(Struct, frozen=True, forbid_unknown_fields=True):
    """One person by `id`: with `contacts`, and perhaps a `locale`, or without the field, and then the directory knows
    both. Or all members of a `group` or `supergroup`. Or the rows of a `table`: the id of an uploaded CSV or .xlsx
    file, with the `sheet` if several have values, and the `encoding` of CSV if it is not found out. Or, as the only
    one, a `follow_up`: the id of a delivery, `of` whose recipients those are meant who are not reached, or who have not
    answered its question.
    """

    id: IdField | UnsetType = UNSET
    name: Label | UnsetType | None = UNSET
    contacts: Contacts | UnsetType = UNSET
    values: FieldValues | UnsetType = UNSET
    group: Name | UnsetType = UNSET
    supergroup: Name | UnsetType = UNSET
    table: UploadId | UnsetType = UNSET
    sheet: SheetName | UnsetType = UNSET
    encoding: Encoding | UnsetType = UNSET
    follow_up: DeliveryId | UnsetType = UNSET
    of: Annotated[Following, Meta(extra_json_schema={"default": "unreached"})] | UnsetType = UNSET
    locale: Locale | UnsetType = UNSET

    @property
    def is_group(self) -> bool:
        return bool(self.group or self.supergroup)

    @property
    def has_contacts(self) -> bool:
        """Return whether the contacts are given, so that the directory need not know it."""
        return not isinstance(self.contacts, UnsetType)

    @property
    def is_in_directory(self) -> bool:
        """Return whether it is a person whose contacts the directory knows."""
        return not self.is_group and not self.has_contacts


AnyAddressee = Addressee | Recipient
"""A `Recipient` was made by Ada, of an event or a record: it has its contacts, and is not checked."""

Placed = Sequence[tuple[str, AnyAddressee]]
"""Addressees, each with the place where it was given: `recipients.0`, or of a row of a table `recipients.0.table.2`."""


class TableRef(Struct, frozen=True):
    """An uploaded table. `file`: the id of the upload. `sheet`, `encoding`: "" finds it out."""

    file: str
    sheet: str = ""
    encoding: str = ""


class Order(Struct, frozen=True):
    """A delivery to `addressees`; `delivery.recipients` is empty, and its `channels` are if all known ones are meant.

    `urgent`: quiet hours do not hold. `far`: it may be due more than a year ahead. `personal`: `{{field}}` in its text
    stands for a value of each recipient; None: if a recipient has `values`, is a table, the order is
    a follow-up or has texts by language. `audience`: who gets it in place of the addressees, or beside them.
    """

    delivery: NewDelivery
    addressees: Sequence[AnyAddressee]
    urgent: bool = False
    far: bool = False
    personal: bool | None = None
    audience: Audience = Audience.STUDENTS

    @property
    def has_values(self) -> bool:
        return any(bool(one.values) for one in self.addressees if isinstance(one, Addressee))

    @property
    def is_personal(self) -> bool:
        if self.personal is not None:
            return self.personal
        people = (one for one in self.addressees if isinstance(one, Addressee))
        return bool(self.delivery.texts) or any(one.values or one.table or one.follow_up for one in people)

    @property
    def unfilled(self) -> Sequence[str]:
        """Return the marks of the text and the buttons that everybody gets as they are written, unless the author has
        said that they are no marks.
        """
        if self.personal is not None:
            return ()
        marks = marks_in(self.delivery.text, self.delivery.content)
        return () if marks and self.is_personal else marks


class Caller(Struct, frozen=True):
    """The author of an order. `is_admin`: the sender's role is what the order says. `may_be_urgent`: may send in quiet
    hours. `person`: who is signed in and sends only in its own name; None: a program.
    """

    tenant: str
    is_admin: bool = False
    may_be_urgent: bool = False
    person: User | None = None


def read_recipient(line: str) -> dict[str, Any]:
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
