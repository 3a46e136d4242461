"""Groups and their members, supergroups and their groups: the same operations on two kinds of collection."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from core.directory import Directory
from core.directory.collections import Groups, Supergroups
from core.model.people import Group, GroupChange, Supergroup, faults_of_group, faults_of_id
from delivery.endpoints.directory.reading import PAGE, check, given, location, optional, part
from delivery.http.context import Request, Response, next_page_link, no_content
from delivery.http.route import NoParameters
from delivery.schemas.directory import people as schemas

PlainRequest = Request[None, NoParameters]
PageRequest = Request[None, schemas.PageQuery]


@dataclass(frozen=True, slots=True)
class CollectionEndpoints:
    """The operations on one kind. `path`: the part of its addresses. `members`: the field of a new collection that
    lists its first members. `member`: the part of an address that names one.
    """

    path: str
    members: str
    member: str
    value: type[Group] | type[Supergroup]
    collections: Callable[[Directory], Groups | Supergroups]
    response: Callable[[Any, int], Any]
    page: Callable[[Any, str | None], Any]

    async def create(self, request: Request[Any, NoParameters]) -> Response:
        """Add a collection with its first members."""
        fields = given(request.body)
        members = fields.pop(self.members, [])
        value: Any = self.value(**fields)
        check(faults_of_group(value))
        check(fault for number, one in enumerate(members) for fault in faults_of_id(one, f"{self.members}.{number}"))
        created = await self._collections(request).create(request.tenant, value, members)
        return Response(await self._shown(request, created), 201, location(self.path, created.id))

    async def update(self, request: Request[Any, NoParameters]) -> Response:
        """Change some fields of a collection."""
        fields = given(request.body)
        check(faults_of_group(self.value(**{"id": 0, **fields})))
        collections = self._collections(request)
        changed = await collections.update(request.tenant, part(request, "id"), GroupChange(**fields))
        return Response(await self._shown(request, changed))

    async def show(self, request: PlainRequest) -> Response:
        """Show one collection."""
        found = await self._collections(request).find(request.tenant, part(request, "id"))
        return Response(await self._shown(request, found))

    async def delete(self, request: PlainRequest) -> Response:
        """Delete a collection; its members stay."""
        await self._collections(request).delete(request.tenant, part(request, "id"))
        return no_content()

    async def list_page(self, request: PageRequest) -> Response:
        """Return one page of collections."""
        cursor, limit = optional(request.query.cursor), request.query.limit or PAGE
        page = await self._collections(request).page(request.tenant, cursor=cursor, limit=limit)
        body = self.page(await self._all_shown(request, page.items), page.next)
        return Response(body, headers=next_page_link(request.http, page.next))

    async def add_member(self, request: PlainRequest) -> Response:
        """Add a member to a collection."""
        names = (part(request, "id"), part(request, self.member))
        await self._collections(request).add_member(request.tenant, *names)
        return no_content()

    async def remove_member(self, request: PlainRequest) -> Response:
        """Take a member out of a collection."""
        names = (part(request, "id"), part(request, self.member))
        await self._collections(request).remove_member(request.tenant, *names)
        return no_content()

    async def _shown(self, request: Request[Any, Any], value: Group | Supergroup) -> Any:
        return (await self._all_shown(request, [value]))[0]

    async def _all_shown(self, request: Request[Any, Any], values: Sequence[Group | Supergroup]) -> list[Any]:
        """Return the collections with their sizes."""
        sizes = await self._collections(request).sizes(request.tenant, [one.id for one in values])
        return [self.response(one, size) for one, size in zip(values, sizes, strict=True)]

    def _collections(self, request: Request[Any, Any]) -> Groups | Supergroups:
        return self.collections(request.services.core.directory)


groups = CollectionEndpoints(
    "groups",
    "members",
    "user",
    Group,
    lambda directory: directory.groups,
    schemas.GroupResponse.of,
    schemas.GroupPage,
)
supergroups = CollectionEndpoints(
    "supergroups",
    "groups",
    "group",
    Supergroup,
    lambda directory: directory.supergroups,
    schemas.SupergroupResponse.of,
    schemas.SupergroupPage,
)


async def list_members(request: PageRequest) -> Response:
    """Return one page of the people of a group."""
    cursor, limit = optional(request.query.cursor), request.query.limit or PAGE
    directory = request.services.core.directory
    page = await directory.groups.members(request.tenant, part(request, "id"), cursor=cursor, limit=limit)
    return Response(schemas.UserPage.of(page.items, page.next), headers=next_page_link(request.http, page.next))
