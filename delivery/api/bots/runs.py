"""The runs of scenarios: what became of each action, and what released or dropped it; to drop one, or drive it on."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType

from core.errors import NotFound
from delivery.http.context import Request, Response, next_page_link
from delivery.http.fields.timestamps import read_time, write_optional_time, write_time
from delivery.http.fields.types import Label, RequestModel, Time
from delivery.http.route import NEXT_PAGE, NoParameters, Repeats, Route, Routes
from delivery.services import RunReader

T = TypeVar("T", bound=Struct)
PersonName = Annotated[str, Meta(pattern="^[a-z0-9-]{1,32}:.{1,128}$", description="channel:user_id")]
RunCursor = Annotated[str, Meta(pattern="^[0-9]{1,15}-[0-9]{1,5}\\.[0-9a-f]{1,64}$")]


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


class Action(Struct):
    """One action of a run. `n` counts from 1; `node`: its id in the graph. `cause`, `by` and `why`: what
    released or dropped it, the action that did, and both in words. `given`: its fields with placeholders replaced,
    `send`: the message of a `send`, `results`: what it returned; secrets are hidden in all of them. `waits_for`: the
    delivery for which a parked run waits, or `slow`. `translations`: language → `error` in it, if it is known.
    """

    n: int
    node: str
    scenario: str
    type: str
    place: str
    state: str
    cause: str | None
    by: int | None
    why: str
    moved_at: str | None
    ended_at: str | None
    error: str
    given: Mapping[str, Any]
    send: Mapping[str, Any] | None
    results: Mapping[str, Any]
    waits_for: str | None
    translations: Mapping[str, Mapping[str, str]]

    @classmethod
    def of(cls, view: Any) -> "Action":
        moved_at, ended_at = write_optional_time(view.moved_at), write_optional_time(view.ended_at)
        return _shown(cls, view, moved_at=moved_at, ended_at=ended_at)


class RunFacts(Struct):
    """The facts shown of every run. `state`: running, over or dropped. `version`: that of the bot's files with which it
    began.
    """

    id: str
    person: str
    state: str
    version: str
    scenarios: Sequence[str]
    began: str
    ended: str | None


class Run(RunFacts):
    """All actions that one event has started."""

    event: Mapping[str, Any]
    actions: Sequence[Action]

    @classmethod
    def of(cls, view: Any) -> "Run":
        return _shown(cls, view, **_times(view), actions=[Action.of(action) for action in view.actions])


class RunSummary(RunFacts):
    """A run in a list. `faults`: how many of its actions failed or are unknown. `text`: what the person wrote or
    pressed.
    """

    faults: int
    text: str

    @classmethod
    def of(cls, view: Any) -> "RunSummary":
        return _shown(cls, view, **_times(view))


class RunPage(Struct):
    """Runs, the newest first. `next`: the cursor of the next page; a page with one may be short, or empty."""

    runs: Sequence[RunSummary]
    next: str | None


def _shown(shape: type[T], view: Any, **changed: Any) -> T:
    """Return a `shape` with the fields of a view that have the same names, and with the changed ones."""
    same = {name: getattr(view, name) for name in shape.__struct_fields__ if name not in changed}
    return shape(**same, **changed)


def _times(view: Any) -> dict[str, str | None]:
    return {"began": write_time(view.began), "ended": write_optional_time(view.ended)}


PlainRequest = Request[None, NoParameters]


async def show(request: PlainRequest) -> Response:
    """Show one run. Raises NotFound RUN_NOT_FOUND."""
    return Response(Run.of(await _reader(request).read(request.tenant, _id(request))))


async def list_page(request: Request[None, RunQuery]) -> Response:
    """Return one page of runs."""
    query, reader = request.query, _reader(request)
    since, until = _time(request, "since"), _time(request, "until")
    wanted = reader.filter(query.person or "", query.scenario or "", query.state or "", since, until)
    found, cursor = await reader.page(request.tenant, wanted, query.cursor or None, query.limit or 20)
    page = RunPage([RunSummary.of(view) for view in found], cursor)
    return Response(page, headers=next_page_link(request.http, cursor))


async def drop(request: PlainRequest) -> Response:
    """End a run without its remaining actions. Raises NotFound RUN_NOT_FOUND, Conflict RUN_OVER."""
    return Response(Run.of(await _reader(request).drop(request.tenant, _id(request))))


async def drive(request: PlainRequest) -> Response:
    """Have a run that waits driven on now. Raises NotFound RUN_NOT_FOUND, Conflict RUN_OVER, RUN_WITHOUT_TASK."""
    return Response(Run.of(await _reader(request).drive_on(request.tenant, _id(request))))


def _id(request: PlainRequest) -> str:
    return request.http.match_info["id"]


def _time(request: Request[None, RunQuery], name: str) -> datetime | None:
    given = getattr(request.query, name)
    return read_time(given, name, request.options.max_days_ahead) if given else None


def _reader(request: Request[Any, Any]) -> RunReader:
    reader = request.services.runs
    if reader is None:
        raise NotFound("RUN_NOT_FOUND", "This installation has no scenarios.")
    return reader


ROUTES: Routes = (
    Route("GET", "/v1/runs", "List the runs of scenarios, newest first", "read", list_page, 200, RunPage,
          query=RunQuery, headers=NEXT_PAGE),
    Route("GET", "/v1/runs/{id}", "Show a run of scenarios: for each action what released or dropped it, and when",
          "read", show, 200, Run),
    Route("POST", "/v1/runs/{id}:drop", "End a run without its remaining actions; its messages are sent", "manage",
          drop, 200, Run, repeats=Repeats.STORED),
    Route("POST", "/v1/runs/{id}:drive", "Have a run that waits driven on now", "manage", drive, 200, Run,
          repeats=Repeats.STORED),
)  # fmt: skip
