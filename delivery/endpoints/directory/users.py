"""People: create, show, list, change, delete."""

from typing import Any

from core.jobs import JobState
from core.model.people import User, UserChange, faults_of_user, id_text
from delivery.endpoints.directory.departure import delete_person, merge_people
from delivery.endpoints.directory.reading import PAGE, check, given, lists_of, location, optional, part
from delivery.http.context import Request, Response, next_page_link, no_content
from delivery.http.responses.problems import invalid_field
from delivery.http.route import NoParameters
from delivery.schemas.directory import people as schemas

_DELIVERIES = 20
"""Deliveries of a page whose `limit` is not given."""


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


async def merge(request: Request[schemas.MergeRequest, schemas.MergeQuery]) -> Response:
    """Make one person of two, or show what that would do."""
    core, kept, other = request.services.core, part(request, "id"), id_text(request.body.other)
    jobs = [
        job.id.kind
        for job in await core.jobs.of_user(request.tenant, other)
        if job.record.state not in (JobState.STOPPED, JobState.FINISHED)
    ]
    if request.query.only_shows:
        merged = await core.directory.users.plan_merge(request.tenant, kept, other)
    else:
        merged = await merge_people(request.services, request.tenant, kept, other)
    return Response(schemas.Merged.of(merged, jobs))


async def list_groups(request: Request[None, NoParameters]) -> Response:
    """Return the groups of a person."""
    directory, user = request.services.core.directory, part(request, "id")
    await directory.users.find(request.tenant, user)
    groups = await directory.groups.with_member(request.tenant, user)
    sizes = await directory.groups.sizes(request.tenant, [one.id for one in groups])
    listed = [schemas.GroupResponse.of(one, size) for one, size in zip(groups, sizes, strict=True)]
    return Response(schemas.GroupPage(listed, None))


async def list_deliveries(request: Request[None, schemas.PageQuery]) -> Response:
    """Return a page of what was sent to a person, newest first; a person who asks sees only its own."""
    query, identity = request.query, request.identity
    found, cursor = await request.services.core.deliveries.of_person.page(
        request.tenant,
        part(request, "id"),
        optional(query.cursor),
        query.limit or _DELIVERIES,
        lambda position: identity.may_see_deliveries_of(position.key.sender),
    )
    page = schemas.PersonDeliveryPage([schemas.PersonDelivery.of(one) for one in found], cursor)
    return Response(page, headers=next_page_link(request.http, cursor))


async def list_page(request: Request[None, schemas.UserQuery]) -> Response:
    """Return one page of people, all of them or those that match the query."""
    query = request.query
    page = await request.services.core.directory.users.page(
        request.tenant,
        name=optional(query.name),
        email=optional(query.email),
        contact=_contact(query.contact) if query.contact else None,
        group=optional(query.group),
        role=optional(query.role),
        cursor=optional(query.cursor),
        limit=query.limit or PAGE,
    )
    return Response(schemas.UserPage.of(page.items, page.next), headers=next_page_link(request.http, page.next))


def _contact(text: str) -> tuple[str, str]:
    """Split a contact into channel and address. Raises `InvalidFields` CONTACT_MALFORMED."""
    channel, _, address = text.partition(":")
    if not channel or not address:
        raise invalid_field("contact", "CONTACT_MALFORMED", "A contact looks like telegram:100001.")
    return channel, address
