"""Groups and their members."""

from core.model.people import Group, GroupChange, faults_of_group, faults_of_id
from delivery.endpoints.directory.reading import PAGE, check, given, location, optional, part
from delivery.http.context import Request, Response, next_page_link, no_content
from delivery.http.route import NoParameters
from delivery.schemas import directory as schemas


async def create(request: Request[schemas.GroupRequest, NoParameters]) -> Response:
    """Add a group with its first members."""
    fields = given(request.body)
    members = fields.pop("members", [])
    group = Group(**fields)
    check(faults_of_group(group))
    check(fault for number, one in enumerate(members) for fault in faults_of_id(one, f"members.{number}"))
    created = await request.services.core.directory.groups.create(request.tenant, group, members)
    return Response(schemas.GroupResponse.of(created), 201, location("groups", created.id))


async def update(request: Request[schemas.GroupPatch, NoParameters]) -> Response:
    """Change some fields of a group."""
    fields = given(request.body)
    check(faults_of_group(Group(**{"id": 0, **fields})))
    group_id = part(request, "id")
    changed = await request.services.core.directory.groups.update(request.tenant, group_id, GroupChange(**fields))
    return Response(schemas.GroupResponse.of(changed))


async def show(request: Request[None, NoParameters]) -> Response:
    """Show one group."""
    group = await request.services.core.directory.groups.find(request.tenant, part(request, "id"))
    return Response(schemas.GroupResponse.of(group))


async def delete(request: Request[None, NoParameters]) -> Response:
    """Delete a group; its members stay."""
    await request.services.core.directory.groups.delete(request.tenant, part(request, "id"))
    return no_content()


async def list_page(request: Request[None, schemas.PageQuery]) -> Response:
    """Return one page of groups."""
    cursor, limit = optional(request.query.cursor), request.query.limit or PAGE
    page = await request.services.core.directory.groups.page(request.tenant, cursor=cursor, limit=limit)
    body = schemas.GroupPage([schemas.GroupResponse.of(one) for one in page.items], page.next)
    return Response(body, headers=next_page_link(request.http, page.next))


async def list_members(request: Request[None, schemas.PageQuery]) -> Response:
    """Return one page of the members of a group."""
    cursor, limit = optional(request.query.cursor), request.query.limit or PAGE
    group = part(request, "id")
    page = await request.services.core.directory.groups.members(request.tenant, group, cursor=cursor, limit=limit)
    return Response(schemas.UserPage.of(page.items, page.next), headers=next_page_link(request.http, page.next))


async def add_member(request: Request[None, NoParameters]) -> Response:
    """Add a person to a group."""
    await request.services.core.directory.groups.add_member(request.tenant, part(request, "id"), part(request, "user"))
    return no_content()


async def remove_member(request: Request[None, NoParameters]) -> Response:
    """Take a person out of a group."""
    await request.services.core.directory.groups.remove_member(
        request.tenant, part(request, "id"), part(request, "user")
    )
    return no_content()
