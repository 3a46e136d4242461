"""People: create, show, list, change, merge, delete; the types of their own fields."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from core.directory.records import Merge
from core.jobs import JobState
from core.model import people
from core.model.field_types import Contacts, IdField, Label, Name, ShortText
from core.model.history_key import Id
from core.model.own_fields import MOST_OPTIONS, FieldType, OwnField
from core.model.people import Locale, Role, User, UserChange, faults_of_user, id_text
from delivery.api.directory.departure import delete_person, merge_people
from delivery.http.context import ApiRequest, Request, Response, location, next_page_link, no_content
from delivery.http.decoding import check_faults
from delivery.http.fields import PAGE, Cursor, Limit, RequestModel, optional, sent_fields
from delivery.http.responses.problems import invalid_field
from delivery.http.route import NEW_OBJECT, NEXT_PAGE, NoParameters, People, PlainRequest, Repeats, Route, Routes

Email = Annotated[str, Meta(min_length=3, max_length=254, description="name@example.org; kept in lower case")]
Channels = Annotated[list[ShortText], Meta(max_length=32)]

FieldValues = Annotated[
    dict[Annotated[str, Meta(min_length=1, max_length=64)], Annotated[str, Meta(max_length=1024)]],
    Meta(max_length=50, description="fields of its own for personal texts: name → value"),
]


ExternalId = Annotated[str, Meta(min_length=3, max_length=256, description="system:id, such as `1c:00042`")]


Guardians = Annotated[list[IdField], Meta(max_length=16, description="ids of people of the directory")]


class UserFields(RequestModel, frozen=True):
    """The fields of a person that can be changed. Addresses are stored in their canonical form, each once.
    `guardians`: the people who get what concerns this child; `blocked_guardians`: those who get nothing of it.
    """

    name: Label | UnsetType | None = UNSET
    email: Email | UnsetType | None = UNSET
    role: Role | UnsetType | None = UNSET
    locale: Annotated[Locale, Meta(description="the language of the person; null: not known")] | UnsetType | None = (
        UNSET
    )
    contacts: Contacts | UnsetType = UNSET
    opt_out: Annotated[Channels, Meta(description="channels in which the person wants no messages")] | UnsetType = UNSET
    blocked: Annotated[bool, Meta(description="gets nothing, cannot sign in or send")] | UnsetType = UNSET
    fields: FieldValues | UnsetType = UNSET
    hours: (
        Annotated[
            str,
            Meta(
                max_length=80,
                description="in which the person wants messages, such as `08:00-22:00 Europe/Moscow`; two equal times: "
                "once a day; empty: at any time",
            ),
        ]
        | UnsetType
    ) = UNSET

    external_ids: (
        Annotated[list[ExternalId], Meta(max_length=16, description="what other systems call the person")] | UnsetType
    ) = UNSET
    guardians: Guardians | UnsetType = UNSET
    blocked_guardians: Guardians | UnsetType = UNSET


class UserRequest(UserFields, frozen=True, kw_only=True):
    """A new person. Without an id the person gets one; then a name, an e-mail address or a contact is needed."""

    id: IdField | UnsetType = UNSET


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
    external_id: ExternalId | UnsetType = UNSET
    group: Name | UnsetType = UNSET
    role: Role | UnsetType = UNSET
    guardian: Annotated[Name, Meta(description="the children of this person")] | UnsetType = UNSET
    where: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=1024,
                description="conditions for own fields, separated by semicolons, such as `course=2; mark>=4.5`",
            ),
        ]
        | UnsetType
    ) = UNSET
    sort: (
        Annotated[
            Literal["id", "name"], Meta(description="by id as text, the default, or by the first word of the name")
        ]
        | UnsetType
    ) = UNSET
    cursor: Cursor | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


class UserResponse(Struct):
    """A person. `locale`: null if its language is unknown. `fields`: of its own; absent if it has none.
    `hours`: absent if it wants messages at any time.
    `external_ids`: what other systems call it; absent if there are none. `guardians`,
    `blocked_guardians`: ids of people, as text; absent if there are none.
    """

    id: Id
    name: str | None
    email: str | None
    role: str | None
    locale: str | None
    contacts: Mapping[str, Sequence[str]]
    opt_out: Sequence[str]
    blocked: bool
    fields: Mapping[str, str] | UnsetType = UNSET
    hours: str | UnsetType = UNSET
    external_ids: Sequence[str] | UnsetType = UNSET
    guardians: Sequence[str] | UnsetType = UNSET
    blocked_guardians: Sequence[str] | UnsetType = UNSET

    @classmethod
    def of(cls, user: people.User) -> "UserResponse":
        known = user.id, user.name, user.email, user.role, user.locale, user.contacts, user.opt_out, user.blocked
        guardians = user.guardians or UNSET, user.blocked_guardians or UNSET
        return cls(*known, user.fields or UNSET, user.hours or UNSET, user.external_ids or UNSET, *guardians)


class UserPage(Struct):
    """A page of people, sorted by id as text. `next`: the cursor of the next page."""

    users: list[UserResponse]
    next: str | None

    @classmethod
    def of(cls, users: Iterable[people.User], following: str | None) -> "UserPage":
        return cls([UserResponse.of(one) for one in users], following)


class MergeRequest(RequestModel, frozen=True):
    """The person that is merged into the one of the address, and deleted."""

    other: IdField


class MergeQuery(RequestModel, frozen=True):
    """The query of a merge."""

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


async def create(request: Request[UserRequest, NoParameters]) -> Response:
    """Add a person. Raises `InvalidFields`, USER_UNNAMED if nothing says who it is."""
    fields = await _checked_fields(request, request.body)
    if "id" not in fields:
        if not any(fields.get(name) for name in ("name", "email", "contacts")):
            raise invalid_field("id", "USER_UNNAMED", "A person has an id, a name, an e-mail address or a contact.")
        fields["id"] = f"p-{secrets.token_hex(6)}"
    user = User(**fields)
    created = await request.services.core.directory.users.create(request.tenant, user)
    return Response(UserResponse.of(created), 201, location("users", created.id))


async def update(request: Request[UserPatch, NoParameters]) -> Response:
    """Change some fields of a person."""
    change = UserChange(**await _checked_fields(request, request.body))
    changed = await request.services.core.directory.users.update(request.tenant, request.part("id"), change)
    return Response(UserResponse.of(changed))


async def _checked_fields(request: ApiRequest, body: UserRequest | UserPatch) -> dict[str, Any]:
    """Return the fields that were sent. Raises `InvalidFields` with all their errors."""
    fields = sent_fields(body)
    if "contacts" in fields:
        fields["contacts"] = {
            name: [some] if isinstance(some, str) else some for name, some in fields["contacts"].items()
        }
    for name in ("guardians", "blocked_guardians"):
        if name in fields:
            fields[name] = [id_text(one) for one in fields[name]]
    register = await request.services.core.channels.current()
    check_faults(faults_of_user(User(**{"id": 0, **fields}), register.names))
    return fields


async def show(request: PlainRequest) -> Response:
    user = await request.services.core.directory.users.find(request.tenant, request.part("id"))
    return Response(UserResponse.of(user))


async def delete(request: PlainRequest) -> Response:
    """Delete a person with its contacts, memberships, ownerships and sign-ins; its jobs are stopped."""
    user = await request.services.core.directory.users.find(request.tenant, request.part("id"))
    await delete_person(request.services, request.tenant, user)
    return no_content()


async def merge(request: Request[MergeRequest, MergeQuery]) -> Response:
    """Make one person of two, or show what that would do."""
    core, kept, other = request.services.core, request.part("id"), id_text(request.body.other)
    jobs = [
        job.id.kind
        for job in await core.jobs.of_user(request.tenant, other)
        if job.record.state not in (JobState.STOPPED, JobState.FINISHED)
    ]
    if request.query.only_shows:
        merged = await core.directory.users.plan_merge(request.tenant, kept, other)
    else:
        merged = await merge_people(request.services, request.tenant, kept, other)
    return Response(Merged.of(merged, jobs))


async def list_page(request: Request[None, UserQuery]) -> Response:
    """Return one page of people, all of them or those that match the query."""
    query = request.query
    page = await request.services.core.directory.users.page(
        request.tenant,
        name=optional(query.name),
        email=optional(query.email),
        contact=_contact(query.contact) if query.contact else None,
        external_id=optional(query.external_id),
        group=optional(query.group),
        role=optional(query.role),
        guardian=optional(query.guardian),
        where=query.where or "",
        is_sorted_by_name=query.sort == "name",
        cursor=optional(query.cursor),
        limit=query.limit or PAGE,
    )
    return Response(UserPage.of(page.items, page.next), headers=next_page_link(request.http, page.next))


def _contact(text: str) -> tuple[str, str]:
    """Split a contact into channel and address. Raises `InvalidFields` CONTACT_MALFORMED."""
    channel, _, address = text.partition(":")
    if not channel or not address:
        raise invalid_field("contact", "CONTACT_MALFORMED", "A contact looks like telegram:100001.")
    return channel, address


class OwnFieldRequest(RequestModel, frozen=True):
    """The type of an own field."""

    type: FieldType
    choices: Annotated[
        Sequence[Annotated[str, Meta(min_length=1, max_length=256)]],
        Meta(max_length=MOST_OPTIONS, description="the options of a choice"),
    ] = ()


class OwnFieldView(Struct, frozen=True):
    """An own field. `choices`: the options of a choice, in their order."""

    name: str
    type: FieldType
    choices: Sequence[str]

    @classmethod
    def of(cls, one: OwnField) -> "OwnFieldView":
        return cls(one.name, one.type, one.choices)


class OwnFieldList(Struct, frozen=True):
    """All own fields that have a type, by name: at most 50. Every other field of a person is text."""

    fields: Sequence[OwnFieldView]


async def list_fields(request: PlainRequest) -> Response:
    found = await request.services.core.directory.own_fields.all(request.tenant)
    return Response(OwnFieldList([OwnFieldView.of(one) for one in found.values()]))


async def define_field(request: Request[OwnFieldRequest, NoParameters]) -> Response:
    """Give an own field a type, or another one."""
    field = OwnField(request.part("name"), request.body.type, request.body.choices)
    defined = await request.services.core.directory.own_fields.define(request.tenant, field)
    return Response(OwnFieldView.of(defined))


async def undefine_field(request: PlainRequest) -> Response:
    """Make an own field text again; the values of people stay."""
    await request.services.core.directory.own_fields.undefine(request.tenant, request.part("name"))
    return no_content()


ROUTES: Routes = (
    Route("POST", "/v1/users", "Add a person", "manage", create, 201, UserResponse, body=UserRequest,
          repeats=Repeats.STORED, headers=NEW_OBJECT, people=People.BY_SCOPE),
    Route("GET", "/v1/users", "List people: all, or by name, addresses, external id, group, role, guardian, own fields",
          "manage", list_page, 200, UserPage, query=UserQuery, headers=NEXT_PAGE, people=People.BY_SCOPE),
    Route("GET", "/v1/users/{id}", "Show one person", "manage", show, 200, UserResponse, people=People.BY_SCOPE),
    Route("PATCH", "/v1/users/{id}", "Change some fields of a person", "manage", update, 200, UserResponse,
          body=UserPatch, repeats=Repeats.STORED, people=People.BY_SCOPE),
    Route("DELETE", "/v1/users/{id}",
          "Delete a person with its contacts, memberships, ownerships, sign-ins; its jobs are stopped", "manage",
          delete, 204, repeats=Repeats.STORED, people=People.BY_SCOPE),
    Route("POST", "/v1/users/{id}:merge", "Make one person of two: the other one is deleted", "manage", merge, 200,
          Merged, body=MergeRequest, query=MergeQuery, repeats=Repeats.STORED, people=People.BY_SCOPE),
    Route("GET", "/v1/fields", "List the own fields of people that have a type", "manage", list_fields, 200,
          OwnFieldList, people=People.BY_SCOPE),
    Route("PUT", "/v1/fields/{name}", "Give an own field a type: text, number, date, choice", "manage", define_field,
          200, OwnFieldView, body=OwnFieldRequest, repeats=Repeats.STORED, people=People.BY_SCOPE),
    Route("DELETE", "/v1/fields/{name}", "Make an own field text again; its values stay", "manage", undefine_field, 204,
          repeats=Repeats.STORED, people=People.BY_SCOPE),
)  # fmt: skip
