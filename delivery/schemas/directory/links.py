"""The types of contact linking: bodies and responses."""

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from delivery.schemas.requests import Address, Email, Id, RequestModel, ShortText


class LinkBody(RequestModel, frozen=True):
    """The contact to link, and the e-mail address of the person whose contact it is."""

    email: Email
    channel: ShortText
    address: Address


class LinkCodeBody(RequestModel, frozen=True):
    """The code from the mail."""

    code: Annotated[str, Meta(min_length=1, max_length=64, description="spaces and small letters do not matter")]


class LinkRequested(Struct):
    """A code was mailed. `id`: of the link to confirm; `expires_at`: until when the code is valid."""

    id: str
    expires_at: datetime


class Linked(Struct):
    """The contact belongs to this user now."""

    user: Id
    channel: str
    address: str
