"""The queue, for operators: stats, search, and the verbs on one task."""

from msgspec import to_builtins

from core.queue import TaskFilter
from delivery.http.context import Request, Response, next_page_link
from delivery.http.route import NoParameters
from delivery.schemas import requests, responses

PlainRequest = Request[None, NoParameters]


async def stats(request: PlainRequest) -> Response:
    """Numbers of tasks by tube and state."""
    return Response(await request.services.queue.stats())


async def list_tasks(request: Request[None, requests.TaskQuery]) -> Response:
    """One page of tasks: from an index if a field of the query has one, else from a scan of all tasks."""
    query, queue = request.query, request.services.queue
    cursor, limit = query.cursor or None, query.limit or 100
    if query.user or query.lane or query.kind_prefix or query.tag:
        page = await queue.page(_filter(query), cursor, limit)
    else:
        tube, state, tenant = query.tube or None, query.state or None, query.tenant or None
        page = await queue.list(tube=tube, state=state, tenant=tenant, cursor=cursor, limit=limit)
    body = responses.TaskPage(to_builtins(page.tasks), page.cursor)
    return Response(body, headers=next_page_link(request.http, page.cursor))


async def peek(request: PlainRequest) -> Response:
    """Show one task."""
    return Response(await request.services.queue.peek(_task_id(request)))


async def bury(request: PlainRequest) -> Response:
    """Set a task aside until it is kicked."""
    return Response(await request.services.queue.bury(_task_id(request)))


async def kick(request: PlainRequest) -> Response:
    """Make a buried task ready again."""
    return Response(await request.services.queue.kick(_task_id(request)))


async def cancel(request: PlainRequest) -> Response:
    """Cancel a task."""
    return Response(await request.services.queue.cancel(_task_id(request)))


async def cancel_by(request: Request[requests.TaskCancellationRequest, NoParameters]) -> Response:
    """Cancel all tasks that have something in common."""
    return Response(await request.services.queue.cancel_by(_filter(request.body)))


def _filter(given: requests.TaskQuery | requests.TaskCancellationRequest) -> TaskFilter:
    return TaskFilter(
        user=given.user or "",
        tenant=given.tenant or "",
        lane=given.lane or "",
        kind=given.kind_prefix or "",
        tag=given.tag or "",
        tube=given.tube or "",
        state=given.state or "",
    )


def _task_id(request: PlainRequest) -> str:
    return request.http.match_info["task_id"]
