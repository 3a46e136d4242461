"""Linking a contact by a mailed code, for systems with a way in of their own. The bots do the same without HTTP."""

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from core.model.field_types import Address, IdField, ShortText
from core.model.people import faults_of_contacts, faults_of_email
from delivery.http.context import Request, Response
from delivery.http.fields import Email, RequestModel
from delivery.http.input.reading import check
from delivery.http.route import NoParameters, Repeats, Route, Routes


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
    check([*faults_of_email(body.email), *faults_of_contacts({body.channel: [body.address]}, register.names)])
    link = await request.services.linking.request(request.tenant, body.channel, body.address, body.email)
    return Response(LinkRequested(link.id, link.expires_at), 202)


async def confirm_link(request: Request[LinkCodeBody, NoParameters]) -> Response:
    """Link the contact, if the code is the one that was mailed."""
    linked = await request.services.linking.confirm_id(
        request.tenant, request.http.match_info["link_id"], request.body.code
    )
    return Response(Linked(linked.user, linked.channel, linked.address))


ROUTES: Routes = (
    Route("POST", "/v1/links", "Mail a code that links a contact to the person with this e-mail address", "manage",
          request_link, 202, LinkRequested, body=LinkBody, repeats=Repeats.STORED),
    Route("POST", "/v1/links/{link_id}/confirm", "Link the contact, if the code is right", "manage", confirm_link,
          200, Linked, body=LinkCodeBody, repeats=Repeats.STORED),
)  # fmt: skip
