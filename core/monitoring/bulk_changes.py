"""Kicks, buries or cancels all tasks that a filter selects, as many as the operator has seen and no later ones (W-12).

A call changes a bounded number and returns where it has stopped; each task is a step of its own, so other commands run
in between.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from core.errors import Conflict, Invalid, NotFound
from core.model.states import TaskState
from core.queue import Queue, TaskFilter, TaskPage, TaskView
from core.queue.task_ids import put_ms, split_id
from core.queue.tubes import JOBS

# Tasks that one call changes, and pages that it reads for that.
_STEP, _PAGES = 500, 100
# Tasks that are counted one by one.
MOST_COUNTED = 10_000
_PAGE = 500


class TaskCount(msgspec.Struct, frozen=True):
    """The number of tasks that a filter selects. `has_more`: there are more than were counted. `now`: the server's ms,
    up to which a change may reach.
    """

    count: int
    has_more: bool
    now: int


class TaskChanges(msgspec.Struct, frozen=True):
    """`changed`: tasks that this call has changed; `unchanged`: those that were in another state, or put later, and to
    be cancelled without the name of their tube: those of jobs (`core.queue.tubes.JOBS`). `next`: where a further call
    goes on; None if there are no more.
    """

    changed: int
    unchanged: int
    next: str | None


class BulkChanges:
    """Counts the tasks of a filter, and changes as many."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._verbs: dict[str, Callable[[str], Awaitable[Any]]] = {
            "kick": queue.kick,
            "bury": queue.bury,
            "cancel": queue.cancel,
        }

    async def count(self, selected: TaskFilter, now: int) -> TaskCount:
        """Count tasks: those of a state by its counters, others one by one. Raises Invalid SELECTION_EMPTY."""
        check_selection(selected)
        if selected.state and not selected.is_indexed and selected.state not in _ENDED:
            return TaskCount(await self._counted(selected), False, now)
        found, cursor = 0, None
        while found < MOST_COUNTED:
            page = await self._page(selected, cursor, _PAGE)
            found, cursor = found + len(page.tasks), page.cursor
            if cursor is None:
                return TaskCount(found, False, now)
        return TaskCount(found, True, now)

    async def _counted(self, selected: TaskFilter) -> int:
        states = await self._queue.inspector.sums_by_tube("states")
        tubes = [counts for tube, counts in states.items() if selected.tube in ("", tube)]
        found = sum(counts.get(selected.state, 0) for counts in tubes)
        if selected.state == TaskState.READY:  # the functions count locked tasks as ready ones, too
            found -= sum(counts.get(TaskState.LOCKED, 0) for counts in tubes)
        return found

    async def change(
        self, verb: str, selected: TaskFilter, before: int, expected: int, cursor: str | None
    ) -> TaskChanges:
        """Change tasks that were put, and buried, by `before` ms: at most `expected`, at most 500 in one call. Raises
        Invalid SELECTION_EMPTY, CURSOR_MALFORMED.
        """
        check_selection(selected)
        changed = unchanged = 0
        most = min(_STEP, expected)
        for _ in range(_PAGES):
            page = await self._page(selected, cursor, most - changed)
            spared = JOBS if verb == "cancel" and not selected.tube else ()
            chosen = [task for task in page.tasks if not (task.tube or "").startswith(spared)]
            done = await asyncio.gather(*(self._change_one(verb, task, before) for task in chosen))
            unchanged += len(page.tasks) - len(chosen)
            changed, unchanged, cursor = changed + sum(done), unchanged + done.count(False), page.cursor
            if cursor is None or changed >= most:
                break
        return TaskChanges(changed, unchanged, None if changed >= expected else cursor)

    async def _page(self, selected: TaskFilter, cursor: str | None, limit: int) -> TaskPage:
        return await (self._queue.inspector.page if selected.has_mark else self._queue.inspector.list)(
            selected, cursor, limit
        )

    async def _change_one(self, verb: str, task: TaskView, before: int) -> bool:
        """Return whether the task was changed."""
        if task.ended is not None or not _was_there(task, before) or (verb == "bury" and task.buried):
            return False
        try:
            await self._verbs[verb](task.id)
        except (NotFound, Conflict):
            return False
        return True


_ENDED = frozenset({TaskState.DONE, TaskState.FAILED, TaskState.CANCELLED, TaskState.EXPIRED})


def check_selection(selected: TaskFilter) -> None:
    """Check that something is chosen. Raises Invalid SELECTION_EMPTY."""
    if not (selected.is_indexed or selected.tube or selected.state):
        raise Invalid("SELECTION_EMPTY", "Choose tasks by state, tube, user, tag, lane, kind or tenant.")


def _was_there(task: TaskView, before: int) -> bool:
    put = put_ms(split_id(task.id)[1]) or 0
    return max(put, task.buried or 0) <= before
