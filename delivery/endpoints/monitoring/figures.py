"""The figures of the last hour and week."""

from core.monitoring import FigureReader, Step
from delivery.http.context import Request, Response
from delivery.schemas.monitoring import FigureQuery

_STEPS = {"fine": Step.FINE, "coarse": Step.COARSE}


async def show(request: Request[None, FigureQuery]) -> Response:
    """Return what was recorded, of all tubes or of one."""
    core = request.services.core
    reader = FigureReader(core.store, core.queue)
    return Response(await reader.read(_STEPS[request.query.step], request.query.tube or ""))
