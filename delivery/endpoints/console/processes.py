"""GET /v1/processes: what runs, what has failed and why, and what waits for a process."""

import time

from core.model.clock import from_ms
from core.processes import overview
from delivery.http.context import Request, Response
from delivery.http.route import NoParameters
from delivery.schemas.console import processes as schemas


async def list_all(request: Request[None, NoParameters]) -> Response:
    """Return all processes by kind and name."""
    core = request.services.core
    found = await overview(core.store, core.queue, core.channels)
    now = from_ms(int(time.time() * 1000) + core.store.clock_offset_ms)
    processes = [schemas.Process.of(view) for view in found.processes]
    faulty = [schemas.Part.of(part) for part in found.faulty]
    return Response(schemas.ProcessList(processes, found.unserved, faulty, now))
