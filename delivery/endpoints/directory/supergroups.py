"""Supergroups and their groups."""

from core.model.people import GroupChange, Supergroup, faults_of_group, faults_of_id
from delivery.endpoints.directory.reading import PAGE, check, given, location, optional, part
from delivery.http.context import Request, Response, next_page_link, no_content
from delivery.http.route import NoParameters
from delivery.schemas import directory as schemas


async def create(request: Request[schemas.SupergroupRequest, NoParameters]) -> Response:
    """Add a supergroup of existing groups."""
    supergroup = Supergroup(**given(request.body))
    check(faults_of_group(supergroup))
    check(fault for number, one in enumerate(supergroup.groups) for fault in faults_of_id(one, f"groups.{number}"))
    created = await request.services.core.directory.supergroups.create(request.tenant, supergroup)
    return Response(schemas.SupergroupResponse.of(created), 201, location("supergroups", created.id))


async def update(request: Request[schemas.SupergroupPatch, NoParameters]) -> Response:
    """Change the title of a supergroup."""
    fields = given(request.body)
    check(faults_of_group(Supergroup(**{"id": 0, **fields})))
    supergroup_id = part(request, "id")
    changed = await request.services.core.directory.supergroups.update(
        request.tenant, supergroup_id, GroupChange(**fields)
    )
    return Response(schemas.SupergroupResponse.of(changed))


async def show(request: Request[None, NoParameters]) -> Response:
    """Show one supergroup with its groups."""
    supergroup = await request.services.core.directory.supergroups.find(request.tenant, part(request, "id"))
    return Response(schemas.SupergroupResponse.of(supergroup))


async def delete(request: Request[None, NoParameters]) -> Response:
    """Delete a supergroup; its groups stay."""
    await request.services.core.directory.supergroups.delete(request.tenant, part(request, "id"))
    return no_content()


async def list_page(request: Request[None, schemas.PageQuery]) -> Response:
    """Return one page of supergroups with their groups."""
    cursor, limit = optional(request.query.cursor), request.query.limit or PAGE
    page = await request.services.core.directory.supergroups.page(request.tenant, cursor=cursor, limit=limit)
    body = schemas.SupergroupPage([schemas.SupergroupResponse.of(one) for one in page.items], page.next)
    return Response(body, headers=next_page_link(request.http, page.next))


async def add_group(request: Request[None, NoParameters]) -> Response:
    """Add a group to a supergroup; every owner of the supergroup must own it."""
    names = (part(request, name) for name in ("id", "group"))
    await request.services.core.directory.supergroups.add_member(request.tenant, *names)
    return no_content()


async def remove_group(request: Request[None, NoParameters]) -> Response:
    """Take a group out of a supergroup."""
    names = (part(request, name) for name in ("id", "group"))
    await request.services.core.directory.supergroups.remove_member(request.tenant, *names)
    return no_content()
