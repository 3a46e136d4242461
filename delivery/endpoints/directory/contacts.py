"""The contacts of a person one by one: add, list, remove."""

from core.model.contacts.addresses import canonical
from core.model.people import faults_of_contacts
from delivery.endpoints.directory.reading import check, part
from delivery.http.context import Request, Response, no_content
from delivery.http.route import NoParameters
from delivery.schemas.directory import people as schemas


async def add(request: Request[schemas.ContactRequest, NoParameters]) -> Response:
    """Add a contact to a person, who may have it already."""
    body = request.body
    register = await request.services.core.channels.current()
    check(faults_of_contacts({body.channel: [body.address]}, register.names))
    user = await request.services.core.directory.users.add_contact(
        request.tenant, body.user, body.channel, body.address
    )
    address = canonical(body.channel, body.address)
    return Response(schemas.ContactResponse(user.id, body.channel, address), 201)


async def list_all(request: Request[None, schemas.OfUserQuery]) -> Response:
    """Return all contacts of a person."""
    user = await request.services.core.directory.users.find(request.tenant, request.query.user)
    return Response(schemas.ContactList(list(schemas.ContactResponse.all_of(user))))


async def remove(request: Request[None, NoParameters]) -> Response:
    """Remove this one contact of a person."""
    names = (part(request, name) for name in ("user", "channel", "address"))
    await request.services.core.directory.users.remove_contact(request.tenant, *names)
    return no_content()
