"""The queue: stats, search, and the verbs on one task. A key without the scope operator reaches only the tasks of its
own tenant; others do not exist for it.
"""

from collections.abc import Sequence
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType, to_builtins

from core.errors import Forbidden, NotFound
from core.jobs.storage import job_id_of
from core.model.field_types import Name, ShortText
from core.model.history_key import HistoryKey
from core.model.json_form import JsonObject
from core.model.states import TaskState
from core.monitoring import BulkChanges, TaskChanges, TaskCount, check_selection, check_tube
from core.queue import TaskFilter, TaskPage, TaskView
from core.queue.task_ids import put_ms, split_id
from core.updates.events import TUBE as EVENTS
from delivery.http.context import ApiRequest, Request, Response, next_page_link
from delivery.http.fields import Limit, RequestModel, TaskCursor
from delivery.http.route import NEXT_PAGE, NoParameters, PlainRequest, Repeats, Route, Routes


class TaskCountQuery(RequestModel, frozen=True):
    """Selects the tasks to count; at least one field is needed."""

    tube: Name | UnsetType = UNSET
    state: TaskState | UnsetType = UNSET
    tenant: Name | UnsetType = UNSET
    user: Name | UnsetType = UNSET
    lane: Name | UnsetType = UNSET
    kind_prefix: ShortText | UnsetType = UNSET
    tag: ShortText | UnsetType = UNSET


class TaskQuery(TaskCountQuery, frozen=True):
    """The filter and the page of a list of tasks."""

    cursor: TaskCursor | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


class TaskCancellationRequest(TaskCountQuery, frozen=True):
    """The conditions for the tasks to cancel; at least one of user, tenant, lane, kind_prefix, tag."""


class ListedTasks(Struct):
    """A page of tasks of the queue. `next`: the cursor of the next page."""

    tasks: Sequence[JsonObject]
    next: str | None


class TaskChangeRequest(TaskCancellationRequest, frozen=True, kw_only=True):
    """Changes tasks: those put and buried by `before` (Unix ms), at most `expected`. `cursor`: where the call
    before has stopped.
    """

    before: Annotated[int, Meta(ge=0, le=2**52)]
    expected: Annotated[int, Meta(ge=1, le=2**40)]
    cursor: TaskCursor | UnsetType = UNSET


# Reads of the queue for one page. Beyond it the page ends early, with a cursor.
_MOST_READS = 1000
ChangeRequest = Request[TaskChangeRequest, NoParameters]
Selection = TaskCountQuery


async def stats(request: PlainRequest) -> Response:
    return Response(await request.services.core.queue.inspector.stats())


async def list_tasks(request: Request[None, TaskQuery]) -> Response:
    """Return one page of tasks: from the index of user, lane, kind or tag, else from those of the states."""
    selected, limit = await _filter(request.query, request), request.query.limit or 100
    cursor = request.query.cursor or None
    if not selected.has_mark:
        return _page(request, await request.services.core.queue.inspector.list(selected, cursor, limit))
    tasks: list[TaskView] = []
    for _ in range(_MOST_READS):
        page = await request.services.core.queue.inspector.page(selected, cursor, limit - len(tasks))
        tasks += page.tasks
        cursor = page.cursor
        if cursor is None or len(tasks) >= limit:
            break
    return _page(request, TaskPage(tasks, cursor))


def _page(request: Request[None, TaskQuery], page: TaskPage) -> Response:
    headers = next_page_link(request.http, page.cursor)
    return Response(ListedTasks(to_builtins(page.tasks), page.cursor), headers=headers)


async def peek(request: PlainRequest) -> Response:
    """Show one task, when it was put, and what it belongs to."""
    task = await _task(request)
    return Response({**to_builtins(task), "put": int(put_ms(split_id(task.id)[1]) or 0), "links": _links(task)})


def _links(task: TaskView) -> dict[str, str]:
    """Return what a task belongs to: `delivery`, `job`, `run` (their ids), `person` (whose runs it starts)."""
    links = {tag.partition(":")[0]: tag.partition(":")[2] for tag in task.tags or () if tag.startswith("run:")}
    if task.history:
        links["delivery"] = HistoryKey.of(split_id(task.id)[0], task.history).id
    if (task.tube or "").startswith("jobs.") and task.lane:
        job = job_id_of(task.lane)
        links["job"] = f"{job.kind}.{job.user}"
    if task.tube == EVENTS and task.lane:
        links["person"] = task.lane
    return links


async def bury(request: PlainRequest) -> Response:
    """Set a task aside until it is kicked."""
    return Response(await request.services.core.queue.bury((await _task(request)).id))


async def kick(request: PlainRequest) -> Response:
    """Make a buried task ready again."""
    return Response(await request.services.core.queue.kick((await _task(request)).id))


async def cancel(request: PlainRequest) -> Response:
    return Response(await request.services.core.queue.cancel((await _task(request)).id))


async def cancel_by(request: Request[TaskCancellationRequest, NoParameters]) -> Response:
    """Cancel all tasks that have something in common."""
    _chosen(request.body, request.body.tenant or "").index()  # the tenant of the key alone is no selection
    return Response(await request.services.core.queue.cancel_by(await _filter(request.body, request)))


async def count(request: Request[None, TaskCountQuery]) -> Response:
    check_selection(_chosen(request.query, request.query.tenant or ""))
    store = request.services.core.store
    now = store.now_ms()
    return Response(await BulkChanges(request.services.core.queue).count(await _filter(request.query, request), now))


async def kick_all(request: ChangeRequest) -> Response:
    """Make buried tasks ready again."""
    return await _change("kick", request)


async def bury_all(request: ChangeRequest) -> Response:
    """Set tasks aside."""
    return await _change("bury", request)


async def cancel_all(request: ChangeRequest) -> Response:
    return await _change("cancel", request)


async def _change(verb: str, request: ChangeRequest) -> Response:
    body = request.body
    check_selection(_chosen(body, body.tenant or ""))
    changes = BulkChanges(request.services.core.queue)
    selected = await _filter(body, request)
    return Response(await changes.change(verb, selected, body.before, body.expected, body.cursor or None))


async def _filter(given: Selection, request: ApiRequest) -> TaskFilter:
    """Return what the client selects, within what its key may reach. Raises `Forbidden` SCOPE_MISSING, `NotFound`
    TUBE_UNKNOWN.
    """
    if given.tube:
        await check_tube(request.services.core.store, given.tube)
    if request.reaches_all_tenants:
        return _chosen(given, given.tenant or "")
    if given.tenant and given.tenant != request.tenant:
        raise Forbidden("SCOPE_MISSING", "Tasks of another tenant need an API key with the scope operator.")
    return _chosen(given, request.tenant)


def _chosen(given: Selection, tenant: str) -> TaskFilter:
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
    task = await request.services.core.queue.inspector.peek(request.part("task_id"))
    if task.tenant != request.key.tenant and not request.reaches_all_tenants:
        raise NotFound("TASK_NOT_FOUND", "There is no such task.")
    return task


ROUTES: Routes = (
    Route("GET", "/v1/queue", "Numbers of tasks by tube and state", "operator", stats, 200, dict),
    Route("GET", "/v1/queue/tasks", "List tasks", "admin", list_tasks, 200, ListedTasks, query=TaskQuery,
          headers=NEXT_PAGE),
    Route("GET", "/v1/queue/tasks:count", "Count tasks: up to 10,000, those of a state all", "admin", count, 200,
          TaskCount, query=TaskCountQuery),
    Route("POST", "/v1/queue/tasks:kick", "Make all buried tasks of a filter ready again", "admin", kick_all, 200,
          TaskChanges, body=TaskChangeRequest, repeats=Repeats.STORED),
    Route("POST", "/v1/queue/tasks:bury", "Set all tasks of a filter aside", "admin", bury_all, 200, TaskChanges,
          body=TaskChangeRequest, repeats=Repeats.STORED),
    Route("POST", "/v1/queue/tasks:cancel", "Cancel all tasks of a filter", "admin", cancel_all, 200, TaskChanges,
          body=TaskChangeRequest, repeats=Repeats.STORED),
    Route("POST", "/v1/queue/cancellations", "Cancel all tasks that have something in common", "admin", cancel_by,
          200, dict, body=TaskCancellationRequest, repeats=Repeats.STORED),
    Route("GET", "/v1/queue/tasks/{task_id}", "Show one task", "admin", peek, 200, dict),
    Route("POST", "/v1/queue/tasks/{task_id}:bury", "Set a task aside until it is kicked", "admin", bury, 200, dict,
          repeats=Repeats.STORED),
    Route("POST", "/v1/queue/tasks/{task_id}:kick", "Make a buried task ready again", "admin", kick, 200, dict,
          repeats=Repeats.STORED),
    Route("POST", "/v1/queue/tasks/{task_id}:cancel", "Cancel a task", "admin", cancel, 200, dict,
          repeats=Repeats.STORED),
)  # fmt: skip
