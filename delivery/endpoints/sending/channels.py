"""The channels by which a delivery can go out."""

from core.model.clock import from_ms
from delivery.http.context import Request, Response
from delivery.http.route import NoParameters
from delivery.schemas import channels as schemas
from delivery.schemas.fields.timestamps import write_time


async def list_all(request: Request[None, NoParameters]) -> Response:
    """Return all known channels, in the order in which a delivery without `channels` uses them."""
    core = request.services.core
    found = []
    for view in await core.channels.views():
        throttles = await core.queue.throttles_of(view.name)
        listed = [schemas.Throttle(scope, write_time(from_ms(until))) for scope, until in sorted(throttles.items())]
        found.append(schemas.Channel.of(view, listed))
    return Response(schemas.ChannelList(found))
