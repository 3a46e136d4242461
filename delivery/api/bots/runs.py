"""The runs of scenarios: what became of each action, and what released or dropped it; to drop one, or drive it on."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from core.errors import NotFound
from core.model.field_types import Label, whole
from delivery.http.context import ApiRequest, Request, Response, next_page_link
from delivery.http.fields import RequestModel, Time, read_time
from delivery.http.route import NEXT_PAGE, NoParameters, Repeats, Route, Routes
from scenarios.inspection.run_listing import RunFilter, RunSummary
from scenarios.inspection.runs import RunReader, RunView

PersonName = Annotated[str, Meta(pattern=whole("[a-z0-9-]{1,32}:.{1,128}"), description="channel:user_id")]
RunCursor = Annotated[str, Meta(pattern=whole("[0-9]{1,15}-[0-9]{1,5}\\.[0-9a-f]{1,64}"))]


class RunQuery(RequestModel, frozen=True):
    """The filter and the page of a list of runs. `person`: `<channel>:<user_id>`; `scenario`: the full name of a
    scenario that the event has started; `with_faults`: an action failed or is unknown.
    """

    person: PersonName | UnsetType = UNSET
    scenario: Label | UnsetType = UNSET
    state: Literal["running", "over", "dropped", "with_faults"] | UnsetType = UNSET
    since: Time | UnsetType = UNSET
    until: Time | UnsetType = UNSET
    cursor: RunCursor | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=100, extra_json_schema={"default": 20})] | UnsetType = UNSET


class RunPage(Struct):
    """Runs, the newest first. `next`: the cursor of the next page; a page with one may be short, or empty."""

    runs: Sequence[RunSummary]
    next: str | None


PlainRequest = Request[None, NoParameters]


async def show(request: PlainRequest) -> Response:
    """Show one run. Raises NotFound RUN_NOT_FOUND."""
    run = await _reader(request).read(request.tenant, _id(request))
    return Response(replace(run, name=await name_in_directory(request, run.person)))


async def list_page(request: Request[None, RunQuery]) -> Response:
    """Return one page of runs."""
    query, reader = request.query, _reader(request)
    since, until = _time(request, "since"), _time(request, "until")
    wanted = RunFilter(query.person or "", query.scenario or "", query.state or "", since, until)
    found, cursor = await reader.page(request.tenant, wanted, query.cursor or None, query.limit or 20)
    people = list({one.person for one in found})
    found_names = await asyncio.gather(*(name_in_directory(request, one) for one in people))
    names = dict(zip(people, found_names, strict=True))
    page = RunPage([replace(one, name=names[one.person]) for one in found], cursor)
    return Response(page, headers=next_page_link(request.http, cursor))


async def drop(request: PlainRequest) -> Response:
    """End a run without its remaining actions. Raises NotFound RUN_NOT_FOUND, Conflict RUN_OVER."""
    return Response(await _reader(request).drop(request.tenant, _id(request)))


async def drive(request: PlainRequest) -> Response:
    """Have a run that waits driven on now. Raises NotFound RUN_NOT_FOUND, Conflict RUN_OVER, RUN_WITHOUT_TASK."""
    return Response(await _reader(request).drive_on(request.tenant, _id(request)))


async def name_in_directory(request: ApiRequest, person: str) -> str | None:
    """Return the name of `<channel>:<user_id>`; None if the directory does not know this contact."""
    channel, _, address = person.partition(":")
    user = await request.services.core.directory.users.by_contact(request.tenant, channel, address)
    return user.name if user else None


def _id(request: PlainRequest) -> str:
    return request.http.match_info["id"]


def _time(request: Request[None, RunQuery], name: str) -> datetime | None:
    given = getattr(request.query, name)
    return read_time(given, name, request.options.max_days_ahead) if given else None


def _reader(request: ApiRequest) -> RunReader:
    reader = request.services.runs
    if reader is None:
        raise NotFound("RUN_NOT_FOUND", "This installation has no scenarios.")
    return reader


ROUTES: Routes = (
    Route("GET", "/v1/runs", "List the runs of scenarios, newest first", "read", list_page, 200, RunPage,
          query=RunQuery, headers=NEXT_PAGE),
    Route("GET", "/v1/runs/{id}", "Show a run of scenarios: for each action what released or dropped it, and when",
          "read", show, 200, RunView),
    Route("POST", "/v1/runs/{id}:drop", "End a run without its remaining actions; its messages are sent", "manage",
          drop, 200, RunView, repeats=Repeats.STORED),
    Route("POST", "/v1/runs/{id}:drive", "Have a run that waits driven on now", "manage", drive, 200, RunView,
          repeats=Repeats.STORED),
)  # fmt: skip
