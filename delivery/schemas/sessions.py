"""The types of signing in to the console: bodies and responses."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from delivery.schemas.requests import Id, RequestModel
from delivery.schemas.responses import QuotaResponse

Secret = Annotated[str, Meta(min_length=1, max_length=256)]
Right = Literal["write", "read", "people", "operate", "inspect", "keys", "author"]


class SessionRequest(RequestModel, frozen=True):
    """How one proves who one is: by an API key."""

    key: Annotated[Secret, Meta(description="an API key")]


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
