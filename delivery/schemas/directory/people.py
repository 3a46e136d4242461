"""The bodies, queries and responses of the directory. Decoding, validation and the OpenAPI document use them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from core.deliveries import of_person
from core.directory.merging import Merge
from core.model import people
from core.model.history_key import Id
from core.model.people import Locale, ObjectKind, Role
from core.model.states import DeliveryState
from delivery.schemas import requests
from delivery.schemas.fields.timestamps import write_time
from delivery.schemas.requests import Address, Contacts, Cursor, Label, Name, RequestModel, ShortText
from delivery.schemas.responses import ListedRecipient, Outcome

Email = Annotated[str, Meta(min_length=3, max_length=254, description="name@example.org; kept in lower case")]
Channels = Annotated[list[ShortText], Meta(max_length=32)]
Limit = Annotated[int, Meta(ge=1, le=1000, extra_json_schema={"default": 100})]


class UserFields(RequestModel, frozen=True):
    """The fields of a person that can be changed. Addresses are stored in their canonical form, each once."""

    name: Label | UnsetType | None = UNSET
    email: Email | UnsetType | None = UNSET
    role: Role | UnsetType | None = UNSET
    locale: Annotated[Locale, Meta(extra_json_schema={"default": "ru"})] | UnsetType = UNSET
    contacts: Contacts | UnsetType = UNSET
    opt_out: Annotated[Channels, Meta(description="channels in which the person wants no messages")] | UnsetType = UNSET
    blocked: Annotated[bool, Meta(description="gets nothing, cannot sign in or send")] | UnsetType = UNSET


class UserRequest(UserFields, frozen=True, kw_only=True):
    """A new person."""

    id: requests.Id


class UserPatch(UserFields, frozen=True):
    """New values of a person's fields. A field that is given is replaced as a whole; the others stay."""


class UserQuery(RequestModel, frozen=True):
    """The filter and the page of a list of people. Several conditions must all be true."""

    name: (
        Annotated[str, Meta(min_length=1, max_length=256, description="beginnings of words of the name, in any case")]
        | UnsetType
    ) = UNSET
    email: Email | UnsetType = UNSET
    contact: (
        Annotated[
            str,
            Meta(
                min_length=3,
                max_length=321,
                description="channel:address",
                extra_json_schema={"pattern": "^[^:]+:[\\s\\S]+$"},
            ),
        ]
        | UnsetType
    ) = UNSET
    group: Name | UnsetType = UNSET
    role: Role | UnsetType = UNSET
    cursor: Cursor | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


class GroupRequest(RequestModel, frozen=True):
    """A new group. A virtual group is used to address people and is never shown as their origin."""

    id: requests.Id
    title: Label | UnsetType | None = UNSET
    virtual: Annotated[bool, Meta(extra_json_schema={"default": False})] | UnsetType = UNSET
    members: Annotated[list[requests.Id], Meta(max_length=500)] | UnsetType = UNSET


class GroupPatch(RequestModel, frozen=True):
    """New values of a group's fields; the others stay."""

    title: Label | UnsetType | None = UNSET
    virtual: bool | UnsetType = UNSET


class SupergroupRequest(RequestModel, frozen=True):
    """A new supergroup."""

    id: requests.Id
    title: Label | UnsetType | None = UNSET
    groups: Annotated[list[requests.Id], Meta(max_length=2000)] | UnsetType = UNSET


class SupergroupPatch(RequestModel, frozen=True):
    """A new title."""

    title: Label | UnsetType | None = UNSET


class PageQuery(RequestModel, frozen=True):
    """The page of a list."""

    cursor: Cursor | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


class OfUserQuery(RequestModel, frozen=True):
    """The person whose objects are listed."""

    user: Name


class ContactRequest(RequestModel, frozen=True):
    """A contact of a person."""

    user: requests.Id
    channel: ShortText
    address: Address


# responses


class UserResponse(Struct):
    """A person."""

    id: Id
    name: str | None
    email: str | None
    role: str | None
    locale: str
    contacts: Mapping[str, Sequence[str]]
    opt_out: Sequence[str]
    blocked: bool

    @classmethod
    def of(cls, user: people.User) -> "UserResponse":
        return cls(user.id, user.name, user.email, user.role, user.locale, user.contacts, user.opt_out, user.blocked)


class UserPage(Struct):
    """A page of people, sorted by id as text. `next`: the cursor of the next page."""

    users: list[UserResponse]
    next: str | None

    @classmethod
    def of(cls, users: Iterable[people.User], following: str | None) -> "UserPage":
        return cls([UserResponse.of(one) for one in users], following)


class MergeRequest(RequestModel, frozen=True):
    """The person that is merged into the one of the address, and deleted."""

    other: requests.Id


class MergeQuery(RequestModel, frozen=True):
    """Whether the merge is only shown."""

    dry_run: (
        Annotated[
            Literal["", "1", "true", "0", "false"], Meta(description="show what would be done, and write nothing")
        ]
        | UnsetType
    ) = UNSET

    @property
    def only_shows(self) -> bool:
        return self.dry_run in ("", "1", "true")


class Merged(Struct):
    """`user`: the person that stays, as it is or will be. `other`: the person that is deleted. `groups`: those that it
    brings along. `lost`: its fields that are given up. `jobs`: its jobs, which are stopped; its sign-ins end, too.
    """

    user: UserResponse
    other: UserResponse
    groups: Sequence[Id]
    lost: Mapping[str, str]
    jobs: Sequence[str]

    @classmethod
    def of(cls, merge: Merge, jobs: Sequence[str]) -> "Merged":
        return cls(UserResponse.of(merge.user), UserResponse.of(merge.other), merge.groups, merge.lost, jobs)


class PersonDelivery(Struct):
    """A delivery to a person, and what became of it for that person. `why`: why the person was not reached, if so."""

    id: str
    created_at: str
    sender: Mapping[str, Any]
    text: str
    state: DeliveryState
    outcomes: Mapping[str, Outcome]
    why: str | None

    @classmethod
    def of(cls, one: of_person.PersonDelivery) -> "PersonDelivery":
        history, recipient = one.history, ListedRecipient.of(one.recipient)
        known = history.key.id, write_time(history.created_at), history.sender, history.text, history.state
        return cls(*known, recipient.outcomes, recipient.why)


class PersonDeliveryPage(Struct):
    """A page of deliveries to a person, newest first. It may be short although there is a `next` one."""

    deliveries: list[PersonDelivery]
    next: str | None


class GroupResponse(Struct):
    """A group. `size`: how many members it has."""

    id: Id
    title: str | None
    virtual: bool
    size: int

    @classmethod
    def of(cls, group: people.Group, size: int) -> "GroupResponse":
        return cls(group.id, group.title, group.virtual, size)


class GroupPage(Struct):
    """A page of groups, sorted by id as text. `next`: the cursor of the next page."""

    groups: list[GroupResponse]
    next: str | None


class SupergroupResponse(Struct):
    """A supergroup with the ids of its groups. `size`: how many they are."""

    id: Id
    title: str | None
    groups: Sequence[Id]
    size: int

    @classmethod
    def of(cls, supergroup: people.Supergroup, size: int) -> "SupergroupResponse":
        return cls(supergroup.id, supergroup.title, supergroup.groups, size)


class SupergroupPage(Struct):
    """A page of supergroups, sorted by id as text. `next`: the cursor of the next page."""

    supergroups: list[SupergroupResponse]
    next: str | None


class OwnershipResponse(Struct):
    """The person `user` may write to the group or supergroup `id`."""

    user: Id
    kind: ObjectKind
    id: Id


class OwnershipList(Struct):
    """The groups, then the supergroups, that a person owns."""

    ownerships: list[OwnershipResponse]


class ContactResponse(Struct):
    """A contact of a person, its address in the canonical form."""

    user: Id
    channel: str
    address: str

    @classmethod
    def all_of(cls, user: people.User) -> "Iterator[ContactResponse]":
        for channel, addresses in user.contacts.items():
            for address in addresses:
                yield cls(user.id, channel, address)


class ContactList(Struct):
    """All contacts of a person."""

    contacts: list[ContactResponse]
