"""The types of signing in to the console: bodies and responses."""

from datetime import datetime
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from delivery.schemas.requests import Email, Id, RequestModel, ShortText
from delivery.schemas.responses import QuotaResponse

Secret = Annotated[str, Meta(min_length=1, max_length=256)]
Right = Literal["write", "read", "people", "operate", "inspect", "keys", "author"]


class SessionRequest(RequestModel, frozen=True):
    """The proof of an identity: an API key, by a mailed code and its id, or by a link of the bot."""

    key: Annotated[Secret, Meta(description="an API key")] | UnsetType = UNSET
    code_id: Annotated[Secret, Meta(description="the id of the request of the code")] | UnsetType = UNSET
    code: (
        Annotated[str, Meta(min_length=1, max_length=64, description="spaces and small letters do not matter")]
        | UnsetType
    ) = UNSET
    link: Annotated[Secret, Meta(description="the last part of the address that the bot has sent")] | UnsetType = UNSET


class CodeBody(RequestModel, frozen=True):
    """The address to which a code is mailed. `tenant`: that of the person."""

    email: Email
    tenant: Annotated[ShortText, Meta(extra_json_schema={"default": "default"})] | UnsetType = UNSET


class CodeSent(Struct):
    """A code is mailed if a person has the address. `code_id` is needed together with the code."""

    code_id: str
    expires_at: datetime


class SignOutQuery(RequestModel, frozen=True):
    """Which sessions end."""

    all: (
        Annotated[
            Literal["", "1", "true", "0", "false"],
            Meta(description="all sessions of this person or key; the name alone means true"),
        ]
        | UnsetType
    ) = UNSET

    @property
    def ends_all(self) -> bool:
        return self.all in ("", "1", "true")


class OwnedGroup(Struct):
    """A group or supergroup that a person may write to. `size`: the number of its people, of a supergroup that of its
    groups.
    """

    id: Id
    title: str | None
    size: int


class Me(Struct):
    """Who is signed in. `id`, `name`: of the person, or of the API key. `rights`: what the console offers.

    `owns_all`: writes to every group, without owning it. `quota` is null for a key, which has none of its own.
    """

    kind: Literal["person", "key"]
    id: Id
    name: str
    tenant: str
    scopes: list[str]
    rights: list[Right]
    role: str | None
    locale: str | None
    owns_all: bool
    groups: list[OwnedGroup]
    supergroups: list[OwnedGroup]
    timezone: str
    quota: QuotaResponse | None
