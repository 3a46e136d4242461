"""Groups and their members, supergroups and their groups: the same operations on two kinds of collection. Ownerships:
who may write to which group or supergroup.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Generic, Literal, TypeVar, cast

from msgspec import UNSET, Meta, Struct, UnsetType

from core.directory import Directory
from core.directory.collections import C, Collections, M
from core.directory.name_search import members_by_name
from core.model import people
from core.model.field_types import IdField, Title
from core.model.history_key import Id
from core.model.people import OBJECT_KINDS, Group, GroupChange, ObjectKind, Supergroup, faults_of_group, faults_of_id
from delivery.api.directory.contacts import OfUserQuery
from delivery.api.directory.users import UserPage
from delivery.http.context import ApiRequest, Request, Response, location, next_page_link, no_content
from delivery.http.decoding import check_faults
from delivery.http.fields import PAGE, PageQuery, RequestModel, optional, sent_fields
from delivery.http.responses.problems import invalid_field
from delivery.http.route import NEW_OBJECT, NEXT_PAGE, NoParameters, People, PlainRequest, Repeats, Route, Routes


class GroupRequest(RequestModel, frozen=True):
    """A new group. A virtual group is used to address people and is never shown as their origin."""

    id: IdField
    title: Title | UnsetType | None = UNSET
    virtual: Annotated[bool, Meta(extra_json_schema={"default": False})] | UnsetType = UNSET
    members: Annotated[list[IdField], Meta(max_length=500)] | UnsetType = UNSET


class GroupPatch(RequestModel, frozen=True):
    """New values of a group's fields; the others stay."""

    title: Title | UnsetType | None = UNSET
    virtual: bool | UnsetType = UNSET


class SupergroupRequest(RequestModel, frozen=True):
    """A new supergroup."""

    id: IdField
    title: Title | UnsetType | None = UNSET
    groups: Annotated[list[IdField], Meta(max_length=2000)] | UnsetType = UNSET


class SupergroupPatch(RequestModel, frozen=True):
    """A new title."""

    title: Title | UnsetType | None = UNSET


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


NewRequest = Request[GroupRequest, NoParameters] | Request[SupergroupRequest, NoParameters]
PatchRequest = Request[GroupPatch, NoParameters] | Request[SupergroupPatch, NoParameters]
PageRequest = Request[None, PageQuery]

S = TypeVar("S", GroupResponse, SupergroupResponse)


@dataclass(frozen=True, slots=True)
class CollectionEndpoints(Generic[C, M, S]):
    """The operations on one kind. `path`: the part of its addresses. `members`: the field of a new collection that
    lists its first members. `member`: the part of an address that names one.
    """

    path: str
    members: str
    member: str
    value: type[C]
    collections: Callable[[Directory], Collections[C, M]]
    response: Callable[[C, int], S]
    page: Callable[[list[S], str | None], GroupPage | SupergroupPage]

    async def create(self, request: NewRequest) -> Response:
        """Add a collection with its first members."""
        fields = sent_fields(request.body)
        members = fields.pop(self.members, [])
        value = self.value(**fields)
        check_faults(faults_of_group(value))
        check_faults(
            fault for number, one in enumerate(members) for fault in faults_of_id(one, f"{self.members}.{number}")
        )
        created = await self._collections(request).create(request.tenant, value, members)
        return Response(await self._shown(request, created), 201, location(self.path, created.id))

    async def update(self, request: PatchRequest) -> Response:
        """Change some fields of a collection."""
        fields = sent_fields(request.body)
        check_faults(faults_of_group(self.value(**{"id": 0, **fields})))
        collections = self._collections(request)
        changed = await collections.update(request.tenant, request.part("id"), GroupChange(**fields))
        return Response(await self._shown(request, changed))

    async def show(self, request: PlainRequest) -> Response:
        found = await self._collections(request).find(request.tenant, request.part("id"))
        return Response(await self._shown(request, found))

    async def delete(self, request: PlainRequest) -> Response:
        """Delete a collection; its members stay."""
        await self._collections(request).delete(request.tenant, request.part("id"))
        return no_content()

    async def list_page(self, request: PageRequest) -> Response:
        cursor, limit = optional(request.query.cursor), request.query.limit or PAGE
        page = await self._collections(request).page(request.tenant, cursor=cursor, limit=limit)
        body = self.page(await self._all_shown(request, page.items), page.next)
        return Response(body, headers=next_page_link(request.http, page.next))

    async def add_member(self, request: PlainRequest) -> Response:
        names = (request.part("id"), request.part(self.member))
        await self._collections(request).add_member(request.tenant, *names)
        return no_content()

    async def remove_member(self, request: PlainRequest) -> Response:
        names = (request.part("id"), request.part(self.member))
        await self._collections(request).remove_member(request.tenant, *names)
        return no_content()

    async def _shown(self, request: ApiRequest, value: C) -> S:
        return (await self._all_shown(request, [value]))[0]

    async def _all_shown(self, request: ApiRequest, values: Sequence[C]) -> list[S]:
        sizes = await self._collections(request).sizes(request.tenant, [one.id for one in values])
        return [self.response(one, size) for one, size in zip(values, sizes, strict=True)]

    def _collections(self, request: ApiRequest) -> Collections[C, M]:
        return self.collections(request.services.core.directory)


groups = CollectionEndpoints(
    "groups",
    "members",
    "user",
    Group,
    lambda directory: directory.groups,
    GroupResponse.of,
    GroupPage,
)
supergroups = CollectionEndpoints(
    "supergroups",
    "groups",
    "group",
    Supergroup,
    lambda directory: directory.supergroups,
    SupergroupResponse.of,
    SupergroupPage,
)


class MembersQuery(PageQuery, frozen=True):
    """The page of members, their order, and beginnings of words of their names."""

    sort: Annotated[Literal["id", "name"], Meta(extra_json_schema={"default": "id"})] | UnsetType = UNSET
    name: Annotated[str, Meta(min_length=1, max_length=256)] | UnsetType = UNSET


async def list_members(request: Request[None, MembersQuery]) -> Response:
    query, groups = request.query, request.services.core.directory.groups
    given, cursor, limit = request.part("id"), optional(query.cursor), query.limit or PAGE
    if query.sort == "name" or query.name:
        page = await members_by_name(groups, request.tenant, given, query.name or "", cursor=cursor, limit=limit)
    else:
        page = await groups.members(request.tenant, given, cursor=cursor, limit=limit)
    return Response(UserPage.of(page.items, page.next), headers=next_page_link(request.http, page.next))


async def list_groups(request: PlainRequest) -> Response:
    directory, user = request.services.core.directory, request.part("id")
    await directory.users.find(request.tenant, user)
    groups = await directory.groups.with_member(request.tenant, user)
    sizes = await directory.groups.sizes(request.tenant, [one.id for one in groups])
    listed = [GroupResponse.of(one, size) for one, size in zip(groups, sizes, strict=True)]
    return Response(GroupPage(listed, None))


class OwnershipResponse(Struct):
    """The person `user` may write to the group or supergroup `id`."""

    user: Id
    kind: ObjectKind
    id: Id


class OwnershipList(Struct):
    """The groups, then the supergroups, that a person owns."""

    ownerships: list[OwnershipResponse]


async def add_ownership(request: PlainRequest) -> Response:
    await request.services.core.directory.ownerships.own(
        request.tenant, request.part("user"), _kind(request), request.part("id")
    )
    return no_content()


async def remove_ownership(request: PlainRequest) -> Response:
    """Withdraw an ownership; for a group also the person's supergroups that contain it."""
    await request.services.core.directory.ownerships.disown(
        request.tenant, request.part("user"), _kind(request), request.part("id")
    )
    return no_content()


async def list_ownerships(request: Request[None, OfUserQuery]) -> Response:
    found = await request.services.core.directory.ownerships.of(request.tenant, request.query.user)
    return Response(OwnershipList([OwnershipResponse(one.user, one.kind, one.id) for one in found]))


def _kind(request: PlainRequest) -> ObjectKind:
    """Read the kind of an owned thing. Raises `InvalidFields` WRONG_VALUE."""
    kind = request.part("kind")
    if kind not in OBJECT_KINDS:
        raise invalid_field("kind", "WRONG_VALUE", f"Allowed values: {', '.join(OBJECT_KINDS)}.")
    return cast(ObjectKind, kind)


ROUTES: Routes = (
    Route("GET", "/v1/users/{id}/groups", "List the groups of a person", "manage", list_groups, 200, GroupPage,
          people=People.BY_SCOPE),
    Route("POST", "/v1/groups", "Add a group with its first members", "manage", groups.create, 201, GroupResponse,
          body=GroupRequest, repeats=Repeats.STORED, headers=NEW_OBJECT, people=People.BY_SCOPE),
    Route("GET", "/v1/groups", "List groups", "manage", groups.list_page, 200, GroupPage, query=PageQuery,
          headers=NEXT_PAGE, people=People.BY_SCOPE),
    Route("GET", "/v1/groups/{id}", "Show one group", "manage", groups.show, 200, GroupResponse,
          people=People.BY_SCOPE),
    Route("PATCH", "/v1/groups/{id}", "Change some fields of a group", "manage", groups.update, 200, GroupResponse,
          body=GroupPatch, repeats=Repeats.STORED, people=People.BY_SCOPE),
    Route("DELETE", "/v1/groups/{id}", "Delete a group; its members stay", "manage", groups.delete, 204,
          repeats=Repeats.STORED, people=People.BY_SCOPE),
    Route("GET", "/v1/groups/{id}/members", "List the members of a group", "manage", list_members, 200, UserPage,
          query=MembersQuery, headers=NEXT_PAGE, people=People.BY_SCOPE),
    Route("PUT", "/v1/groups/{id}/members/{user}", "Add a person to a group", "manage", groups.add_member, 204,
          repeats=Repeats.STORED, people=People.BY_SCOPE),
    Route("DELETE", "/v1/groups/{id}/members/{user}", "Take a person out of a group", "manage", groups.remove_member,
          204, repeats=Repeats.STORED, people=People.BY_SCOPE),
    Route("POST", "/v1/supergroups", "Add a supergroup of existing groups", "manage", supergroups.create, 201,
          SupergroupResponse, body=SupergroupRequest, repeats=Repeats.STORED, headers=NEW_OBJECT,
          people=People.BY_SCOPE),
    Route("GET", "/v1/supergroups", "List supergroups", "manage", supergroups.list_page, 200, SupergroupPage,
          query=PageQuery, headers=NEXT_PAGE, people=People.BY_SCOPE),
    Route("GET", "/v1/supergroups/{id}", "Show one supergroup with its groups", "manage", supergroups.show, 200,
          SupergroupResponse, people=People.BY_SCOPE),
    Route("PATCH", "/v1/supergroups/{id}", "Change the title of a supergroup", "manage", supergroups.update, 200,
          SupergroupResponse, body=SupergroupPatch, repeats=Repeats.STORED, people=People.BY_SCOPE),
    Route("DELETE", "/v1/supergroups/{id}", "Delete a supergroup; its groups stay", "manage", supergroups.delete, 204,
          repeats=Repeats.STORED, people=People.BY_SCOPE),
    Route("PUT", "/v1/supergroups/{id}/groups/{group}",
          "Add a group to a supergroup; each of its owners must own the group", "manage", supergroups.add_member, 204,
          repeats=Repeats.STORED, people=People.BY_SCOPE),
    Route("DELETE", "/v1/supergroups/{id}/groups/{group}", "Take a group out of a supergroup", "manage",
          supergroups.remove_member, 204, repeats=Repeats.STORED, people=People.BY_SCOPE),
    Route("GET", "/v1/ownerships", "List what a person owns", "manage", list_ownerships, 200, OwnershipList,
          query=OfUserQuery, people=People.BY_SCOPE),
    Route("PUT", "/v1/ownerships/{user}/{kind}/{id}", "Let a person write to a group or supergroup", "manage",
          add_ownership, 204, repeats=Repeats.STORED, people=People.BY_SCOPE),
    Route("DELETE", "/v1/ownerships/{user}/{kind}/{id}",
          "Withdraw an ownership; for a group also supergroups that contain it", "manage", remove_ownership, 204,
          repeats=Repeats.STORED, people=People.BY_SCOPE),
)  # fmt: skip
