"""The action log of the caller's tenant: as a list, and as a file."""

from collections.abc import AsyncIterator

from aiohttp import web

from core.admission.actions import ActionFilter, LoggedAction
from delivery.http.context import Request, Response, next_page_link
from delivery.http.input.timestamps import read_time
from delivery.http.responses.csv import Rows, respond_csv
from delivery.schemas.console import actions as schemas

ActionRequest = Request[None, schemas.ActionQuery]
_COLUMNS = ("at", "who", "name", "via", "what", "target", "count", "why")


async def list_page(request: ActionRequest) -> Response:
    """Return a page, the newest first."""
    found, cursor = await _page(request, request.query.cursor or None, request.query.limit or 100)
    page = schemas.ActionPage([schemas.ActionView.of(one) for one in found], cursor)
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
    since = read_time(query.since, "since", request.options.max_days_ahead) if query.since else None
    wanted = ActionFilter(query.who or None, query.what or None, since)
    return await request.services.actions.page(request.tenant, wanted, cursor, limit)


def _row(entry: LoggedAction) -> tuple[str, ...]:
    one = entry.action
    return (entry.at.isoformat(), one.who, one.name, one.via, one.what, one.target, str(one.count), one.why)
