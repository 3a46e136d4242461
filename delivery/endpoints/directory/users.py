"""People: create, show, list, change, delete."""

from typing import Any

from core.model.people import User, UserChange, faults_of_user
from delivery.endpoints.directory.departure import delete_person
from delivery.endpoints.directory.reading import PAGE, check, given, lists_of, location, optional, part
from delivery.http.context import Request, Response, next_page_link, no_content
from delivery.http.responses.problems import invalid_field
from delivery.http.route import NoParameters
from delivery.schemas import directory as schemas


async def create(request: Request[schemas.UserRequest, NoParameters]) -> Response:
    """Add a person."""
    user = User(**await _checked_fields(request))
    created = await request.services.core.directory.users.create(request.tenant, user)
    return Response(schemas.UserResponse.of(created), 201, location("users", created.id))


async def update(request: Request[schemas.UserPatch, NoParameters]) -> Response:
    """Change some fields of a person."""
    change = UserChange(**await _checked_fields(request))
    changed = await request.services.core.directory.users.update(request.tenant, part(request, "id"), change)
    return Response(schemas.UserResponse.of(changed))


async def _checked_fields(request: Request[Any, NoParameters]) -> dict[str, Any]:
    """Return the fields that were sent. Raises `InvalidFields` with all their errors."""
    fields = given(request.body)
    if "contacts" in fields:
        fields["contacts"] = lists_of(fields["contacts"])
    register = await request.services.core.channels.current()
    check(faults_of_user(User(**{"id": 0, **fields}), register.names))
    return fields


async def show(request: Request[None, NoParameters]) -> Response:
    """Show one person."""
    user = await request.services.core.directory.users.find(request.tenant, part(request, "id"))
    return Response(schemas.UserResponse.of(user))


async def delete(request: Request[None, NoParameters]) -> Response:
    """Delete a person with its contacts, memberships, ownerships and sign-ins; its jobs are stopped."""
    user = await request.services.core.directory.users.find(request.tenant, part(request, "id"))
    await delete_person(request.services, request.tenant, user)
    return no_content()


async def list_page(request: Request[None, schemas.UserQuery]) -> Response:
    """Return one page of people, all of them or those with something in common."""
    query = request.query
    page = await request.services.core.directory.users.page(
        request.tenant,
        email=optional(query.email),
        contact=_contact(query.contact) if query.contact else None,
        group=optional(query.group),
        role=optional(query.role),
        cursor=optional(query.cursor),
        limit=query.limit or PAGE,
    )
    return Response(schemas.UserPage.of(page.items, page.next), headers=next_page_link(request.http, page.next))


def _contact(text: str) -> tuple[str, str]:
    """Channel and address. Raises `InvalidFields` CONTACT_MALFORMED."""
    channel, _, address = text.partition(":")
    if not channel or not address:
        raise invalid_field("contact", "CONTACT_MALFORMED", "A contact looks like telegram:100001.")
    return channel, address
