"""Linking a contact by a mailed code, for systems with a way in of their own. The bots do the same without HTTP."""

from core.model.people import faults_of_contacts, faults_of_email
from delivery.endpoints.directory.reading import check
from delivery.http.context import Request, Response
from delivery.http.route import NoParameters
from delivery.schemas.directory import links


async def request_link(request: Request[links.LinkBody, NoParameters]) -> Response:
    """Mail a code to the person with this e-mail address."""
    body = request.body
    register = await request.services.core.channels.current()
    check([*faults_of_email(body.email), *faults_of_contacts({body.channel: [body.address]}, register.names)])
    link = await request.services.linking.request(request.tenant, body.channel, body.address, body.email)
    return Response(links.LinkRequested(link.id, link.expires_at), 202)


async def confirm_link(request: Request[links.LinkCodeBody, NoParameters]) -> Response:
    """Link the contact, if the code is the one that was mailed."""
    linked = await request.services.linking.confirm_id(
        request.tenant, request.http.match_info["link_id"], request.body.code
    )
    return Response(links.Linked(linked.user, linked.channel, linked.address))
