"""The queue, for operators: what is in it, and the verbs on one task."""

from core.queue.task import TaskFilter
from delivery.http.context import Call, Reply, next_page
from delivery.http.route import Nothing
from delivery.schemas import requests as schemas
from delivery.schemas import responses as answers

Anything = Call[None, Nothing]


async def stats(call: Anything) -> Reply:
    """How much there is of what."""
    return Reply(await call.services.queue.stats())


async def listing(call: Call[None, schemas.TaskListing]) -> Reply:
    """Tasks, a page at a time: through an index, or all that is there."""
    asked = call.query
    selection = _selection(asked)
    if asked.user or asked.lane or asked.kind_prefix or asked.tag:
        found, after = await call.services.queue.page(selection, asked.cursor or None, asked.limit or 100)
        return Reply(answers.Tasks(found, after), headers=next_page(call.request, after))
    tasks, cursor = await call.services.queue.list(
        tube=asked.tube or None,
        state=asked.state or None,
        tenant=asked.tenant or None,
        cursor=asked.cursor or None,
        limit=asked.limit or 100,
    )
    return Reply(answers.Tasks(tasks, cursor), headers=next_page(call.request, cursor))


async def peek(call: Anything) -> Reply:
    """One task."""
    return Reply(await call.services.queue.peek(_task_id(call)))


async def bury(call: Anything) -> Reply:
    """Put it aside until somebody looks."""
    return Reply(await call.services.queue.bury(_task_id(call)))


async def kick(call: Anything) -> Reply:
    """Take it up again."""
    return Reply(await call.services.queue.kick(_task_id(call)))


async def cancel(call: Anything) -> Reply:
    """End it."""
    return Reply(await call.services.queue.cancel(_task_id(call)))


async def cancel_by(call: Call[schemas.TaskCancellation, Nothing]) -> Reply:
    """End all that have something in common."""
    return Reply(await call.services.queue.cancel_by(_selection(call.body)))


def _selection(asked: schemas.TaskListing | schemas.TaskCancellation) -> TaskFilter:
    names = {
        "user": asked.user,
        "tenant": asked.tenant,
        "lane": asked.lane,
        "kind": asked.kind_prefix,
        "tag": asked.tag,
    }
    said = {**names, "tube": asked.tube, "state": asked.state}
    return TaskFilter(**{name: value for name, value in said.items() if value})


def _task_id(call: Anything) -> str:
    return call.request.match_info["task_id"]
