"""The queue: stats, search, and the verbs on one task. A key without the scope operator reaches only the tasks of its
own tenant; others do not exist for it.
"""

from typing import Any

from msgspec import to_builtins

from core.errors import Forbidden, NotFound
from core.queue import TaskFilter, TaskPage, TaskView
from delivery.http.context import Request, Response, next_page_link
from delivery.http.route import NoParameters
from delivery.schemas import requests, responses

# Reads of the queue for one page. Beyond it the page ends early, with a cursor.
_MOST_READS = 1000

PlainRequest = Request[None, NoParameters]


async def stats(request: PlainRequest) -> Response:
    """Numbers of tasks by tube and state."""
    return Response(await request.services.core.queue.stats())


async def list_tasks(request: Request[None, requests.TaskQuery]) -> Response:
    """Return one page of tasks: from the index of user, lane, kind or tag, else from those of the states."""
    selected, limit = _filter(request.query, request), request.query.limit or 100
    cursor = request.query.cursor or None
    if not (selected.user or selected.lane or selected.kind or selected.tag):
        return _page(request, await request.services.core.queue.list(selected, cursor, limit))
    tasks: list[TaskView] = []
    for _ in range(_MOST_READS):
        page = await request.services.core.queue.page(selected, cursor, limit - len(tasks))
        tasks += page.tasks
        cursor = page.cursor
        if cursor is None or len(tasks) >= limit:
            break
    return _page(request, TaskPage(tasks, cursor))


def _page(request: Request[None, requests.TaskQuery], page: TaskPage) -> Response:
    headers = next_page_link(request.http, page.cursor)
    return Response(responses.TaskPage(to_builtins(page.tasks), page.cursor), headers=headers)


async def peek(request: PlainRequest) -> Response:
    """Show one task."""
    return Response(await _task(request))


async def bury(request: PlainRequest) -> Response:
    """Set a task aside until it is kicked."""
    return Response(await request.services.core.queue.bury((await _task(request)).id))


async def kick(request: PlainRequest) -> Response:
    """Make a buried task ready again."""
    return Response(await request.services.core.queue.kick((await _task(request)).id))


async def cancel(request: PlainRequest) -> Response:
    """Cancel a task."""
    return Response(await request.services.core.queue.cancel((await _task(request)).id))


async def cancel_by(request: Request[requests.TaskCancellationRequest, NoParameters]) -> Response:
    """Cancel all tasks that have something in common."""
    _chosen(request.body, request.body.tenant or "").index()  # the tenant of the key alone is no selection
    return Response(await request.services.core.queue.cancel_by(_filter(request.body, request)))


def _filter(given: requests.TaskQuery | requests.TaskCancellationRequest, request: Request[Any, Any]) -> TaskFilter:
    """Return what the client selects, within what its key may reach. Raises `Forbidden` SCOPE_MISSING."""
    if request.reaches_all_tenants:
        return _chosen(given, given.tenant or "")
    if given.tenant and given.tenant != request.tenant:
        raise Forbidden("SCOPE_MISSING", "Tasks of another tenant need an API key with the scope operator.")
    return _chosen(given, request.tenant)


def _chosen(given: requests.TaskQuery | requests.TaskCancellationRequest, tenant: str) -> TaskFilter:
    return TaskFilter(
        user=given.user or "",
        tenant=tenant,
        lane=given.lane or "",
        kind=given.kind_prefix or "",
        tag=given.tag or "",
        tube=given.tube or "",
        state=given.state or "",
    )


async def _task(request: PlainRequest) -> TaskView:
    """Return the task that the address names. Raises `NotFound` TASK_NOT_FOUND, also for a task of another tenant."""
    task = await request.services.core.queue.peek(request.http.match_info["task_id"])
    if task.tenant != request.key.tenant and not request.reaches_all_tenants:
        raise NotFound("TASK_NOT_FOUND", "There is no such task.")
    return task
