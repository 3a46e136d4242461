"""The runs of scenarios: what became of each action, and what released or dropped it."""

from core.errors import NotFound
from delivery.http.context import Request, Response, next_page_link
from delivery.http.route import NoParameters
from delivery.schemas import runs
from delivery.services import RunReader


async def show(request: Request[None, NoParameters]) -> Response:
    """Show one run. Raises NotFound RUN_NOT_FOUND."""
    view = await _reader(request.services.runs).read(request.tenant, request.http.match_info["id"])
    return Response(runs.Run.of(view))


async def list_page(request: Request[None, runs.RunQuery]) -> Response:
    """One page of a person's runs."""
    query = request.query
    reader = _reader(request.services.runs)
    found, cursor = await reader.newest(request.tenant, query.user, query.cursor or None, query.limit or 20)
    page = runs.RunPage([runs.Run.of(view) for view in found], cursor)
    return Response(page, headers=next_page_link(request.http, cursor))


def _reader(reader: RunReader | None) -> RunReader:
    if reader is None:
        raise NotFound("RUN_NOT_FOUND", "This installation has no scenarios.")
    return reader
