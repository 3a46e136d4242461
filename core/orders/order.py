"""The order of a caller: a delivery whose recipients may be named by the directory, and its author. Frozen values."""

from collections.abc import Sequence
from typing import Annotated

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
        """Return whether the contacts are given, so that the directory is not asked."""
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
        has_rows = any(isinstance(one, Addressee) and (one.table or one.follow_up) for one in self.addressees)
        return self.has_values or has_rows or bool(self.delivery.texts) if self.personal is None else self.personal

    @property
    def unfilled(self) -> Sequence[str]:
        """Return the marks of the text and the buttons that everybody gets as they are written, unless the author has
        said that they are no marks.
        """
        if self.personal is not None or self.is_personal:
            return ()
        return marks_in(self.delivery.text, self.delivery.content)


class Caller(Struct, frozen=True):
    """The author of an order. `is_admin`: the sender's role is what the order says. `may_be_urgent`: may send in quiet
    hours. `person`: who is signed in and sends only in its own name; None: a program.
    """

    tenant: str
    is_admin: bool = False
    may_be_urgent: bool = False
    person: User | None = None
