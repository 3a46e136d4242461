"""The tubes of the queue and their dead letters, for operators."""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core.monitoring import FigureReader
from core.queue import QueueStats, Tube, Tubes
from core.queue.dead_letters import DeadLetters
from core.queue.tubes import Pause
from delivery.endpoints.directory.reading import part
from delivery.http.context import Request, Response
from delivery.http.route import NoParameters
from delivery.schemas import queue as schemas

PlainRequest = Request[None, NoParameters]
GroupRequest = Request[schemas.DeadLetterChange, NoParameters]


async def list_all(request: PlainRequest) -> Response:
    """Return all tubes that have had a task or were created."""
    tubes, stats = _tubes(request), await request.services.core.queue.inspector.stats()
    known, pauses = {tube.name: tube for tube in await tubes.known()}, await tubes.pauses()
    names = sorted({*stats.tubes, *known, *pauses})
    rates = await _rates(request)
    views = [_view(known.get(name, Tube(name)), stats, pauses.get(name), rates.get(name)) for name in names]
    return Response(schemas.TubeList(views, await tubes.weights(), stats.overdue_ms))


async def pause(request: Request[schemas.PauseRequest, NoParameters]) -> Response:
    """Pause a tube. A tube that is paused keeps the note of who paused it first."""
    name = request.http.match_info["tube"]
    await _tubes(request).pause(name, request.key.name or request.key.id, request.body.reason)
    return await _one(request, name)


async def resume(request: PlainRequest) -> Response:
    """Resume a tube."""
    name = request.http.match_info["tube"]
    await _tubes(request).resume(name)
    return await _one(request, name)


async def change(request: Request[schemas.TubePatch, NoParameters]) -> Response:
    """Change the pace of a tube; its other options stay."""
    name, tubes = request.http.match_info["tube"], _tubes(request)
    await tubes.create(replace(await tubes.get(name), pace=request.body.pace))
    return await _one(request, name)


async def set_weight(request: Request[schemas.WeightRequest, NoParameters]) -> Response:
    """Set how many turns a tenant gets while another gets one."""
    tenant, weight = part(request, "tenant"), request.body.weight
    await _tubes(request).set_weight(tenant, weight)
    return Response(schemas.WeightView(tenant, weight))


async def _one(request: Request[Any, Any], name: str) -> Response:
    tubes = _tubes(request)
    stats, pauses = await request.services.core.queue.inspector.stats(), await tubes.pauses()
    return Response(_view(await tubes.get(name), stats, pauses.get(name), (await _rates(request)).get(name)))


async def _rates(request: Request[Any, Any]) -> Mapping[str, float]:
    core = request.services.core
    return await FigureReader(core.store, core.queue).rates()


def _view(tube: Tube, stats: QueueStats, paused: Pause | None, rate: float | None) -> schemas.TubeView:
    return schemas.TubeView(tube.name, stats.tubes.get(tube.name), tube.attempts, tube.pace, rate, paused)


def _tubes(request: Request[Any, Any]) -> Tubes:
    return request.services.core.client.tubes


async def list_dead_letters(request: PlainRequest) -> Response:
    """Return the groups of buried tasks, the largest first."""
    store = request.services.core.store
    groups = await DeadLetters(store).groups()
    return Response(schemas.DeadLetterList(groups, int(time.time() * 1000) + store.clock_offset_ms))


async def kick_dead_letters(request: GroupRequest) -> Response:
    """Make tasks of a group ready again."""
    letters, body = DeadLetters(request.services.core.store), request.body
    return Response(await letters.kick(_group(body), body.before, body.expected))


async def drop_dead_letters(request: GroupRequest) -> Response:
    """Cancel tasks of a group."""
    letters, body = DeadLetters(request.services.core.store), request.body
    return Response(await letters.drop(_group(body), body.before, body.expected))


def _group(body: schemas.DeadLetterChange) -> str:
    return "\t".join((body.tube, body.kind, body.error))
