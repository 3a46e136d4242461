"""The runs of scenarios: what became of each action, and what released or dropped it; to drop one, or drive it on."""

from datetime import datetime
from typing import Any

from core.errors import NotFound
from delivery.http.context import Request, Response, next_page_link
from delivery.http.input.timestamps import read_time
from delivery.http.route import NoParameters
from delivery.schemas.bots import runs
from delivery.services import RunReader

PlainRequest = Request[None, NoParameters]


async def show(request: PlainRequest) -> Response:
    """Show one run. Raises NotFound RUN_NOT_FOUND."""
    return Response(runs.Run.of(await _reader(request).read(request.tenant, _id(request))))


async def list_page(request: Request[None, runs.RunQuery]) -> Response:
    """Return one page of runs."""
    query, reader = request.query, _reader(request)
    since, until = _time(request, "since"), _time(request, "until")
    wanted = reader.filter(query.person or "", query.scenario or "", query.state or "", since, until)
    found, cursor = await reader.page(request.tenant, wanted, query.cursor or None, query.limit or 20)
    page = runs.RunPage([runs.RunSummary.of(view) for view in found], cursor)
    return Response(page, headers=next_page_link(request.http, cursor))


async def drop(request: PlainRequest) -> Response:
    """End a run without its remaining actions. Raises NotFound RUN_NOT_FOUND, Conflict RUN_OVER."""
    return Response(runs.Run.of(await _reader(request).drop(request.tenant, _id(request))))


async def drive(request: PlainRequest) -> Response:
    """Have a run that waits driven on now. Raises NotFound RUN_NOT_FOUND, Conflict RUN_OVER, RUN_WITHOUT_TASK."""
    return Response(runs.Run.of(await _reader(request).drive_on(request.tenant, _id(request))))


def _id(request: PlainRequest) -> str:
    return request.http.match_info["id"]


def _time(request: Request[None, runs.RunQuery], name: str) -> datetime | None:
    given = getattr(request.query, name)
    return read_time(given, name, request.options.max_days_ahead) if given else None


def _reader(request: Request[Any, Any]) -> RunReader:
    reader = request.services.runs
    if reader is None:
        raise NotFound("RUN_NOT_FOUND", "This installation has no scenarios.")
    return reader
