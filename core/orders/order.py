"""The order of a caller: a delivery whose recipients may be named by the directory, and its author. Frozen values."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from core.model.delivery import NewDelivery, Recipient
from core.model.history_key import Id
from core.model.people import User


class UserRef(Struct, frozen=True):
    """A person whose contacts are in the directory. `values`, `place`: as of a `Recipient`."""

    id: Id
    name: str | None = None
    values: Mapping[str, str] = {}
    place: str = ""


class GroupRef(Struct, frozen=True):
    """All members of a group."""

    id: Id


class SupergroupRef(Struct, frozen=True):
    """All members of the groups of a supergroup."""

    id: Id


class TableRef(Struct, frozen=True):
    """The rows of an uploaded table. `file`: the id of the upload. `sheet`, `encoding`: "" finds it out."""

    file: str
    sheet: str = ""
    encoding: str = ""
    place: str = ""


Addressee = Recipient | UserRef | GroupRef | SupergroupRef | TableRef
"""A `Recipient` has its contacts with it and needs no directory."""


class Order(Struct, frozen=True):
    """A delivery to `addressees`; `delivery.recipients` is empty. `urgent`: quiet hours do not hold. `far`: it may
    be due more than a year ahead. `personal`: `{{field}}` in its text stands for a value of each recipient.
    """

    delivery: NewDelivery
    addressees: Sequence[Addressee]
    urgent: bool = False
    far: bool = False
    personal: bool = False


class Caller(Struct, frozen=True):
    """Who orders. `is_admin`: the sender's role is what the order says. `may_be_urgent`: may send in quiet hours.
    `person`: who is signed in and sends only in its own name; None: a program.
    """

    tenant: str
    is_admin: bool = False
    may_be_urgent: bool = False
    person: User | None = None
