"""The tubes of the queue and their dead letters, for operators."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from core.model.field_types import Name
from core.monitoring import FigureReader, LanePage, Lanes, LongestLanes, check_tube
from core.monitoring.bulk_changes import ChangedLetters, DeadLetterGroup, DeadLetters
from core.queue import QueueStats, Tube, Tubes, TubeStats
from core.queue.tubes import TubePause
from delivery.http.context import ApiRequest, Request, Response, next_page_link
from delivery.http.fields import RequestModel, TaskCursor
from delivery.http.route import NEXT_PAGE, NoParameters, PlainRequest, Repeats, Route, Routes


class TubeView(Struct, frozen=True):
    """A tube. `stats`: its tasks by state and what has happened. `attempts` 0: the installation's setting. `pace`:
    tasks per second. `rate`: tasks ended per second in the last minute, null if it was not recorded. `paused`: who
    paused it, why and when.
    """

    name: str
    stats: TubeStats | None
    attempts: int
    pace: float | None
    rate: float | None
    paused: TubePause | None


class TubeList(Struct, frozen=True):
    """`weights`: of the tenants whose turns are not 1. `overdue_ms`: how long due tasks have waited for any worker."""

    tubes: Sequence[TubeView]
    weights: dict[str, int]
    overdue_ms: int


class PauseRequest(RequestModel, frozen=True):
    """The reason of a pause, for other operators."""

    reason: Annotated[str, Meta(min_length=1, max_length=300)]


class TubePatch(RequestModel, frozen=True):
    """`pace`: tasks per second over all processes; null for as many as there are workers."""

    pace: Annotated[float, Meta(ge=0.01, le=1_000_000)] | None


class WeightRequest(RequestModel, frozen=True):
    """`weight`: how many turns a tenant gets while another gets one."""

    weight: Annotated[int, Meta(ge=1, le=100)]


class WeightView(Struct, frozen=True):
    """The weight of a tenant."""

    tenant: str
    weight: int


class DeadLetterList(Struct, frozen=True):
    """`now`: the server's ms, up to which a change of a group may reach."""

    groups: Sequence[DeadLetterGroup]
    now: int


class DeadLetterChange(RequestModel, frozen=True):
    """A group of buried tasks, the ms of the newest burial to change, and how many tasks were seen: not more change."""

    tube: Annotated[str, Meta(min_length=1, max_length=300)]
    kind: Annotated[str, Meta(max_length=300)]
    error: Annotated[str, Meta(max_length=500)]
    before: Annotated[int, Meta(ge=0, le=2**52)]
    expected: Annotated[int, Meta(ge=1, le=2**40)]


GroupRequest = Request[DeadLetterChange, NoParameters]


async def list_all(request: PlainRequest) -> Response:
    """Return all tubes that have had a task or were created."""
    tubes, stats = _tubes(request), await request.services.core.queue.inspector.stats()
    known, pauses = {tube.name: tube for tube in await tubes.known()}, await tubes.pauses()
    names = sorted({*stats.tubes, *known, *pauses})
    rates = await _rates(request)
    views = [_view(known.get(name, Tube(name)), stats, pauses.get(name), rates.get(name)) for name in names]
    return Response(TubeList(views, await tubes.weights(), stats.overdue_ms))


async def pause(request: Request[PauseRequest, NoParameters]) -> Response:
    """Pause a tube. A tube that is paused keeps the note of who paused it first. Raises NotFound TUBE_UNKNOWN."""
    name = await _known(request)
    await _tubes(request).pause(name, request.key.name or request.key.id, request.body.reason)
    return await _one(request, name)


async def resume(request: PlainRequest) -> Response:
    """Resume a tube. Raises NotFound TUBE_UNKNOWN."""
    name = await _known(request)
    await _tubes(request).resume(name)
    return await _one(request, name)


async def change(request: Request[TubePatch, NoParameters]) -> Response:
    """Change the pace of a tube; its other options stay. Raises NotFound TUBE_UNKNOWN."""
    name, tubes = await _known(request), _tubes(request)
    await tubes.create(replace(await tubes.get(name), pace=request.body.pace))
    return await _one(request, name)


async def set_weight(request: Request[WeightRequest, NoParameters]) -> Response:
    """Set how many turns a tenant gets while another gets one."""
    tenant, weight = request.part("tenant"), request.body.weight
    await _tubes(request).set_weight(tenant, weight)
    return Response(WeightView(tenant, weight))


async def _known(request: ApiRequest) -> str:
    """Return the tube of the path."""
    name = request.part("tube")
    await check_tube(request.services.core.store, name)
    return name


async def _one(request: ApiRequest, name: str) -> Response:
    tubes = _tubes(request)
    stats, pauses = await request.services.core.queue.inspector.stats(), await tubes.pauses()
    return Response(_view(await tubes.get(name), stats, pauses.get(name), (await _rates(request)).get(name)))


async def _rates(request: ApiRequest) -> Mapping[str, float]:
    core = request.services.core
    return await FigureReader(core.store, core.queue).rates()


def _view(tube: Tube, stats: QueueStats, paused: TubePause | None, rate: float | None) -> TubeView:
    return TubeView(tube.name, stats.tubes.get(tube.name), tube.attempts, tube.pace, rate, paused)


def _tubes(request: ApiRequest) -> Tubes:
    return request.services.core.client.tubes


async def list_dead_letters(request: PlainRequest) -> Response:
    """Return the groups of buried tasks, the largest first."""
    store = request.services.core.store
    groups = await DeadLetters(store).groups()
    return Response(DeadLetterList(groups, store.now_ms()))


async def kick_dead_letters(request: GroupRequest) -> Response:
    """Make tasks of a group ready again."""
    letters, body = DeadLetters(request.services.core.store), request.body
    return Response(await letters.kick(_group(body), body.before, body.expected))


async def drop_dead_letters(request: GroupRequest) -> Response:
    """Cancel tasks of a group."""
    letters, body = DeadLetters(request.services.core.store), request.body
    return Response(await letters.drop(_group(body), body.before, body.expected))


def _group(body: DeadLetterChange) -> str:
    return "\t".join((body.tube, body.kind, body.error))


class LaneQuery(RequestModel, frozen=True):
    """Of which tube, and how many lanes."""

    tube: Name | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=200)] = 50


class LanePageQuery(RequestModel, frozen=True):
    """The page of a lane."""

    cursor: TaskCursor | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=500)] = 100


async def list_longest(request: Request[None, LaneQuery]) -> Response:
    """Return the longest lanes. Raises NotFound TUBE_UNKNOWN."""
    if request.query.tube:
        await check_tube(request.services.core.store, request.query.tube)
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
    Route("GET", "/v1/queue/tubes", "The tubes: tasks by state, options, pauses", "operator", list_all, 200,
          TubeList),
    Route("PATCH", "/v1/queue/tubes/{tube}", "Change the pace of a tube", "operator", change, 200, TubeView,
          body=TubePatch, repeats=Repeats.STORED),
    Route("PUT", "/v1/queue/weights/{tenant}", "Set how many turns a tenant gets while another gets one", "operator",
          set_weight, 200, WeightView, body=WeightRequest, repeats=Repeats.STORED),
    Route("POST", "/v1/queue/tubes/{tube}:pause", "Let no task of a tube be claimed until it is resumed", "operator",
          pause, 200, TubeView, body=PauseRequest, repeats=Repeats.STORED),
    Route("POST", "/v1/queue/tubes/{tube}:resume", "Let the tasks of a paused tube be claimed again", "operator",
          resume, 200, TubeView, repeats=Repeats.STORED),
    Route("GET", "/v1/queue/dead-letters", "Buried tasks, grouped by tube, kind and error", "operator",
          list_dead_letters, 200, DeadLetterList),
    Route("POST", "/v1/queue/dead-letters:kick", "Make the buried tasks of a group ready again", "operator",
          kick_dead_letters, 200, ChangedLetters, body=DeadLetterChange, repeats=Repeats.STORED),
    Route("POST", "/v1/queue/dead-letters:cancel", "Cancel the buried tasks of a group", "operator",
          drop_dead_letters, 200, ChangedLetters, body=DeadLetterChange, repeats=Repeats.STORED),
    Route("GET", "/v1/queue/lanes", "The longest lanes", "operator", list_longest, 200, LongestLanes,
          query=LaneQuery),
    Route("GET", "/v1/queue/tubes/{tube}/lanes/{lane}", "List the tasks of a lane in its order", "operator", show,
          200, LanePage, query=LanePageQuery, headers=NEXT_PAGE),
)  # fmt: skip
