"""The figures of the last hour and week."""

import time
from datetime import datetime

from core.monitoring import FigureReader, Step
from delivery.http.context import Request, Response
from delivery.http.input.timestamps import read_time
from delivery.schemas.monitoring import FigureQuery

FigureRequest = Request[None, FigureQuery]
_HOUR = 3600


async def show(request: FigureRequest) -> Response:
    """Return what was recorded between two moments, of all tubes or of one."""
    core, query = request.services.core, request.query
    begin, end = _time(request, "begin", "from"), _time(request, "end", "to")
    found = await FigureReader(core.store, core.queue).read(
        query.step or _step_since(begin),
        query.tube or "",
        int(begin.timestamp() * 1000) if begin else 0,
        int(end.timestamp() * 1000) if end else None,
    )
    return Response(found)


def _time(request: FigureRequest, field: str, name: str) -> datetime | None:
    given = getattr(request.query, field)
    return read_time(given, name, request.options.max_days_ahead) if given else None


def _step_since(begin: datetime | None) -> Step:
    """Return the finest step that is kept from this moment on."""
    return Step.COARSE if begin and begin.timestamp() < time.time() - _HOUR else Step.FINE
