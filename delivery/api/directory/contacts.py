"""The contacts of a person one by one: add, list, remove. Or link one by a mailed code, for systems with a way in of
their own; the bots do the same without HTTP.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from core.model import people
from core.model.contacts.addresses import canonical
from core.model.field_types import Address, IdField, Name, ShortText
from core.model.history_key import Id
from core.model.people import faults_of_contacts, faults_of_email
from delivery.http.context import Request, Response, no_content
from delivery.http.decoding import check_faults
from delivery.http.fields import Email, RequestModel
from delivery.http.route import NoParameters, People, PlainRequest, Repeats, Route, Routes


class OfUserQuery(RequestModel, frozen=True):
    """The person whose objects are listed."""

    user: Name


class ContactRequest(RequestModel, frozen=True):
    """A contact of a person."""

    user: IdField
    channel: ShortText
    address: Address


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


async def add(request: Request[ContactRequest, NoParameters]) -> Response:
    """Add a contact to a person, who may have it already."""
    body = request.body
    register = await request.services.core.channels.current()
    check_faults(faults_of_contacts({body.channel: [body.address]}, register.names))
    user = await request.services.core.directory.users.add_contact(
        request.tenant, body.user, body.channel, body.address
    )
    address = canonical(body.channel, body.address)
    return Response(ContactResponse(user.id, body.channel, address), 201)


async def list_all(request: Request[None, OfUserQuery]) -> Response:
    user = await request.services.core.directory.users.find(request.tenant, request.query.user)
    return Response(ContactList(list(ContactResponse.all_of(user))))


async def remove(request: PlainRequest) -> Response:
    """Remove this one contact of a person."""
    names = (request.part(name) for name in ("user", "channel", "address"))
    await request.services.core.directory.users.remove_contact(request.tenant, *names)
    return no_content()


class LinkBody(RequestModel, frozen=True):
    """The contact to link, and the e-mail address of the person whose contact it is."""

    email: Email
    channel: ShortText
    address: Address


class LinkCodeBody(RequestModel, frozen=True):
    """The code from the mail."""

    code: Annotated[str, Meta(min_length=1, max_length=64, description="spaces and small letters do not matter")]


class LinkRequested(Struct):
    """A code was mailed. `id`: of the link to confirm; `expires_at`: until when the code is valid."""

    id: str
    expires_at: datetime


class Linked(Struct):
    """The contact belongs to this user now."""

    user: IdField
    channel: str
    address: str


async def request_link(request: Request[LinkBody, NoParameters]) -> Response:
    """Mail a code to the person with this e-mail address."""
    body = request.body
    register = await request.services.core.channels.current()
    check_faults([*faults_of_email(body.email), *faults_of_contacts({body.channel: [body.address]}, register.names)])
    link = await request.services.linking.request(request.tenant, body.channel, body.address, body.email)
    return Response(LinkRequested(link.id, link.expires_at), 202)


async def confirm_link(request: Request[LinkCodeBody, NoParameters]) -> Response:
    """Link the contact, if the code is the one that was mailed."""
    linked = await request.services.linking.confirm_id(request.tenant, request.part("link_id"), request.body.code)
    return Response(Linked(linked.user, linked.channel, linked.address))


ROUTES: Routes = (
    Route("POST", "/v1/contacts", "Add a contact to a person", "manage", add, 201, ContactResponse,
          body=ContactRequest, repeats=Repeats.STORED, people=People.BY_SCOPE),
    Route("GET", "/v1/contacts", "List the contacts of a person", "manage", list_all, 200, ContactList,
          query=OfUserQuery, people=People.BY_SCOPE),
    Route("DELETE", "/v1/contacts/{user}/{channel}/{address}", "Remove one contact of a person", "manage", remove,
          204, repeats=Repeats.STORED, people=People.BY_SCOPE),
    Route("POST", "/v1/links", "Mail a code that links a contact to the person with this e-mail address", "manage",
          request_link, 202, LinkRequested, body=LinkBody, repeats=Repeats.STORED),
    Route("POST", "/v1/links/{link_id}/confirm", "Link the contact, if the code is right", "manage", confirm_link,
          200, Linked, body=LinkCodeBody, repeats=Repeats.STORED),
)  # fmt: skip
