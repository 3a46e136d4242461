"""The lanes of the queue."""

from core.monitoring import Lanes
from delivery.http.context import Request, Response, next_page_link
from delivery.schemas.monitoring import LanePageQuery, LaneQuery


async def list_longest(request: Request[None, LaneQuery]) -> Response:
    """Return the longest lanes."""
    return Response(await _lanes(request).longest(request.query.tube or "", request.query.limit))


async def show(request: Request[None, LanePageQuery]) -> Response:
    """Return a page of one lane, in its order."""
    parts, query = request.http.match_info, request.query
    page = await _lanes(request).show(parts["tube"], parts["lane"], query.cursor or None, query.limit)
    return Response(page, headers=next_page_link(request.http, page.next))


def _lanes(request: Request[None, LaneQuery] | Request[None, LanePageQuery]) -> Lanes:
    core = request.services.core
    return Lanes(core.store, core.queue)
