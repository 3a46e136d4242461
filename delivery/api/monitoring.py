"""Figures and the overview of the whole installation."""

import time
from datetime import datetime
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType, field

from core.model.field_types import Name
from core.monitoring import FigureReader, Figures, Overview, Overviews, SampleStep, check_tube
from delivery.http.context import Request, Response
from delivery.http.fields import RequestModel, Time
from delivery.http.route import PlainRequest, Route, Routes


class FigureQuery(RequestModel, frozen=True):
    """The time from which and until which figures are read; without one, all that is kept of this step."""

    begin: Time | UnsetType = field(name="from", default=UNSET)
    end: Time | UnsetType = field(name="to", default=UNSET)
    step: (
        Annotated[
            int,
            Meta(
                ge=10,
                le=86_400,
                description="seconds between two points; below 600 only the last hour is kept, else seven days. "
                "Without it the finest that is kept since `from`",
            ),
        ]
        | UnsetType
    ) = UNSET
    tube: Name | UnsetType = UNSET


FigureRequest = Request[None, FigureQuery]
_HOUR = 3600


async def show_figures(request: FigureRequest) -> Response:
    """Return what was recorded between two moments, of all tubes or of one. Raises NotFound TUBE_UNKNOWN."""
    core, query = request.services.core, request.query
    if query.tube:
        await check_tube(core.store, query.tube)
    begin, end = request.time(query.begin, "from"), request.time(query.end, "to")
    found = await FigureReader(core.store, core.queue).read(
        query.step or _step_since(begin),
        query.tube or "",
        int(begin.timestamp() * 1000) if begin else 0,
        int(end.timestamp() * 1000) if end else None,
    )
    return Response(found)


def _step_since(begin: datetime | None) -> SampleStep:
    """Return the finest step that is kept from this moment on."""
    return SampleStep.COARSE if begin and begin.timestamp() < time.time() - _HOUR else SampleStep.FINE


async def show_overview(request: PlainRequest) -> Response:
    """Return the health of the installation, and what needs attention."""
    core, options = request.services.core, request.options
    office = options.office, options.bot_tenant
    overviews = Overviews(core.store, core.queue, core.channels, request.services.webhooks, *office)
    return Response(await overviews.show(request.tenant))


ROUTES: Routes = (
    Route("GET", "/v1/overview", "Whether all is well, and what needs attention first", "operator", show_overview,
          200, Overview),
    Route("GET", "/v1/figures", "What happened in the last hour or week: rates, delays, outcomes by reason",
          "operator", show_figures, 200, Figures, query=FigureQuery),
)  # fmt: skip
