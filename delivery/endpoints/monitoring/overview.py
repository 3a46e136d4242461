"""The endpoint of matters that need an operator, the most urgent first."""

from core.monitoring import Overviews
from delivery.http.context import Request, Response
from delivery.http.route import NoParameters


async def show(request: Request[None, NoParameters]) -> Response:
    """Return the health of the installation, and what needs attention."""
    core = request.services.core
    overviews = Overviews(core.store, core.queue, core.channels, request.services.webhooks)
    return Response(await overviews.show())
