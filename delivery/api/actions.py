"""The action log of the caller's tenant: as a list, and as a file."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated

from aiohttp import web
from msgspec import UNSET, Meta, Struct, UnsetType

from core.admission import actions
from core.admission.actions import ActionFilter, LoggedAction
from core.model.field_types import Name, whole
from delivery.http.context import Request, Response, next_page_link
from delivery.http.fields import Limit, RequestModel, Time
from delivery.http.responses.downloads import CONTENT_TYPE, Rows, respond_csv
from delivery.http.route import NEXT_PAGE, Route, Routes

ActionCursor = Annotated[
    str,
    Meta(
        min_length=3,
        max_length=64,
        pattern=whole("[1-9][0-9]{0,14}-[0-9]{1,15}"),
        extra={"pattern": "CURSOR_MALFORMED"},
    ),
]


class ActionQuery(RequestModel, frozen=True):
    """Selection of actions. `what`: the beginning, such as DELETE or POST /v1/queue."""

    who: Name | UnsetType = UNSET
    what: Name | UnsetType = UNSET
    since: Time | UnsetType = UNSET
    cursor: ActionCursor | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


class LoggedActionView(Struct):
    """One change: who made it by which way, what it was, of how many things, and why. `filter`: by what they were
    selected, such as `tube=sms state=ready`; "" if they were named.
    """

    id: str
    at: datetime
    who: str
    name: str
    via: str
    what: str
    target: str
    count: int
    why: str
    filter: str

    @classmethod
    def of(cls, entry: actions.LoggedAction) -> "LoggedActionView":
        one = entry.action
        return cls(entry.id, entry.at, one.who, one.name, one.via, one.what, one.target, one.count, one.why, one.filter)


class ActionPage(Struct):
    """The newest first. `next`: the cursor of the next page."""

    actions: list[LoggedActionView]
    next: str | None


ActionRequest = Request[None, ActionQuery]
_COLUMNS = ("at", "who", "name", "via", "what", "target", "count", "why", "filter")


async def list_page(request: ActionRequest) -> Response:
    """Return a page, the newest first."""
    found, cursor = await _page(request, request.query.cursor or None, request.query.limit or 100)
    page = ActionPage([LoggedActionView.of(one) for one in found], cursor)
    return Response(page, headers=next_page_link(request.http, cursor))


async def export(request: ActionRequest) -> web.StreamResponse:
    """Return all actions as CSV, the newest first."""
    return await respond_csv(request, "actions.csv", _pages(request), for_excel=False)


async def _pages(request: ActionRequest) -> AsyncIterator[Rows]:
    rows: list[tuple[str, ...]] = [_COLUMNS]
    cursor = request.query.cursor or None
    while True:
        found, cursor = await _page(request, cursor, 1000)
        yield rows + [_row(one) for one in found]
        rows = []
        if cursor is None:
            return


async def _page(request: ActionRequest, cursor: str | None, limit: int) -> tuple[list[LoggedAction], str | None]:
    query = request.query
    since = request.time(query.since, "since")
    wanted = ActionFilter(query.who or None, query.what or None, since)
    return await request.services.actions.page(request.tenant, wanted, cursor, limit)


def _row(entry: LoggedAction) -> tuple[str, ...]:
    one = entry.action
    return (entry.at.isoformat(), one.who, one.name, one.via, one.what, one.target, str(one.count), one.why, one.filter)


ROUTES: Routes = (
    Route("GET", "/v1/actions", "List what was changed for others, newest first", "admin", list_page, 200, ActionPage,
          query=ActionQuery, headers=NEXT_PAGE),
    Route("GET", "/v1/actions.csv", "Export what was changed for others as CSV", "admin", export, 200, CONTENT_TYPE,
          query=ActionQuery),
)  # fmt: skip
