"""The longest lanes, and the tasks of one."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from core.model.field_types import Name
from core.monitoring import LanePage, Lanes, LongestLanes
from delivery.http.context import Request, Response, next_page_link
from delivery.http.fields import RequestModel, TaskCursor
from delivery.http.route import NEXT_PAGE, Route, Routes


class LaneQuery(RequestModel, frozen=True):
    """Of which tube, and how many lanes."""

    tube: Name | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=200)] = 50


class LanePageQuery(RequestModel, frozen=True):
    """The page of a lane."""

    cursor: TaskCursor | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=500)] = 100


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


ROUTES: Routes = (
    Route("GET", "/v1/queue/lanes", "The longest lanes", "operator", list_longest, 200, LongestLanes,
          query=LaneQuery),
    Route("GET", "/v1/queue/tubes/{tube}/lanes/{lane}", "List the tasks of a lane in its order", "operator", show,
          200, LanePage, query=LanePageQuery, headers=NEXT_PAGE),
)  # fmt: skip
