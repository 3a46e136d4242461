"""The preview of a delivery: what a send of the same body would do, and what each person will see."""

from core.deliveries.channels import ChannelView
from core.errors import NotFound
from core.model.delivery import Recipient
from core.model.display import Display
from core.orders.preview import Preview
from couriers.sending.content.shown import Shown, shown_in
from delivery.endpoints.sending.order_validation import ValidationContext, make_order
from delivery.http.context import Request, Response
from delivery.schemas import previews, requests


async def preview(request: Request[requests.DeliveryRequest, previews.PreviewQuery]) -> Response:
    """Return what a send would do. Nothing is written."""
    order = make_order(request.body, await ValidationContext.of(request))
    found = await request.services.core.sending.preview(order, request.caller)
    person = _person(found, request.query.recipient or None)
    wanted = found.delivery.channels if person is None else found.channels_of(person)
    views = {view.name: view for view in await request.services.core.channels.views()}
    shown = {name: _shown(found, views.get(name)) for name in wanted}
    displays = {name: view.display or Display() for name, view in views.items()}
    return Response(previews.PreviewResponse.of(found, shown, displays, person))


def _person(found: Preview, recipient: str | None) -> Recipient | None:
    """Return the person whose messages are shown. Raises NotFound RECIPIENT_NOT_FOUND."""
    if recipient is None:
        return None
    if (person := found.find(recipient)) is None:
        raise NotFound("RECIPIENT_NOT_FOUND", f"The delivery has no recipient {recipient!r}.")
    return person


def _shown(found: Preview, view: ChannelView | None) -> Shown:
    """Return what a channel shows. A channel that has never had a courier shows the text alone, as far as is known."""
    display = view.display if view and view.display else Display()
    return shown_in(display, found.delivery.text, found.delivery.content)
