"""The order of a caller: a delivery whose recipients may be named by the directory, and its author. Frozen values."""

from collections.abc import Sequence

from msgspec import Struct

from core.model.delivery import NewDelivery, Recipient
from core.model.history_key import Id
from core.model.people import User


class UserRef(Struct, frozen=True):
    """A person whose contacts are in the directory."""

    id: Id
    name: str | None = None


class GroupRef(Struct, frozen=True):
    """All members of a group."""

    id: Id


class SupergroupRef(Struct, frozen=True):
    """All members of the groups of a supergroup."""

    id: Id


Addressee = Recipient | UserRef | GroupRef | SupergroupRef
"""A `Recipient` has its contacts with it and needs no directory."""


class Order(Struct, frozen=True):
    """A delivery to `addressees`; `delivery.recipients` is empty. `urgent`: quiet hours do not hold. `far`: it may
    be due more than a year ahead.
    """

    delivery: NewDelivery
    addressees: Sequence[Addressee]
    urgent: bool = False
    far: bool = False


class Caller(Struct, frozen=True):
    """Who orders. `is_admin`: the sender's role is what the order says. `may_be_urgent`: may send in quiet hours.
    `person`: who is signed in and sends only in its own name; None: a program.
    """

    tenant: str
    is_admin: bool = False
    may_be_urgent: bool = False
    person: User | None = None
