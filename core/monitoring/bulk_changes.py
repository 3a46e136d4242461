"""Changes of many tasks at once: those that a filter selects (W-12), and those that were buried with one error.

As many tasks are changed as the operator has seen, and no later ones. A call changes a bounded number and returns where
it has stopped, or how many are left; each task is a step of its own, so other commands run in between. Groups of buried
tasks with one tube, kind and error are kept by `lua/queue/modules/dead_letters.lua`. `check_tube`: which names
of tubes an operator may use.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from core.deliveries.channels import Channels
from core.errors import Conflict, Invalid, NotFound
from core.jobs.notices import TUBE as NOTICES
from core.model.states import TaskState
from core.orders.series import TUBE as SERIES
from core.queue import Queue, TaskFilter, TaskPage, TaskView, Tubes
from core.queue.task_ids import put_ms, split_id
from core.queue.tubes import JOBS
from core.redis.keys import KEYS
from core.redis.store import Store
from core.updates.events import ANSWERS_TUBE, REPLIES_TUBE
from core.updates.events import TUBE as EVENTS
from core.webhooks.webhook import TUBE as WEBHOOKS

# Tasks that one call changes, and pages that it reads for that.
_STEP, _PAGES = 500, 100
# Tasks that are counted one by one.
MOST_COUNTED = 10_000
_PAGE = 500
_ENDED = frozenset({TaskState.DONE, TaskState.FAILED, TaskState.CANCELLED, TaskState.EXPIRED})
_GROUPS = 200


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


def check_selection(selected: TaskFilter) -> None:
    """Check that something is chosen. Raises Invalid SELECTION_EMPTY."""
    if not (selected.is_indexed or selected.tube or selected.state):
        raise Invalid("SELECTION_EMPTY", "Choose tasks by state, tube, user, tag, lane, kind or tenant.")


def _was_there(task: TaskView, before: int) -> bool:
    put = put_ms(split_id(task.id)[1]) or 0
    return max(put, task.buried or 0) <= before


class DeadLetterGroup(Struct, frozen=True):
    """Buried tasks with one tube, kind and error. `size`: how many. `since`: the ms of the first burial."""

    tube: str
    kind: str
    error: str
    size: int
    since: int

    @property
    def name(self) -> str:
        return "\t".join((self.tube, self.kind, self.error))


class ChangedLetters(Struct, frozen=True):
    """`changed`: tasks kicked or dropped by this call. `left`: of those that were to be changed."""

    changed: int
    left: int


class DeadLetters:
    """One per process."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def groups(self) -> list[DeadLetterGroup]:
        """Return the 200 largest groups of each shard, the largest first."""
        sizes: dict[str, int] = defaultdict(int)
        for shard in range(self._store.shards):
            key = KEYS["dead_letters"].at(shard)
            for name, size in await self._store.command("ZRANGE", key, 0, _GROUPS - 1, "REV", "WITHSCORES"):
                sizes[name] += int(size)
        names = sorted(sizes, key=lambda name: (-sizes[name], name))
        since = await asyncio.gather(*(self._since(name) for name in names))
        return [_group(name, sizes[name], at) for name, at in zip(names, since, strict=True)]

    async def _since(self, name: str) -> int:
        keys = self._store.keys_of_shards("dead_letter", name)
        heads = await self._store.command_each("ZRANGE", keys, 0, 0, "WITHSCORES")
        return min((int(head[0][1]) for head in heads if head), default=0)

    async def kick(self, group: str, before: int, expected: int) -> ChangedLetters:
        """Make tasks of a group ready again: those buried by `before` ms, at most `expected`."""
        return await self._change(group, before, expected, "kick")

    async def drop(self, group: str, before: int, expected: int) -> ChangedLetters:
        """Cancel tasks of a group: those buried by `before` ms, at most `expected`."""
        return await self._change(group, before, expected, "cancel_tasks")

    async def _change(self, group: str, before: int, expected: int, function: str) -> ChangedLetters:
        changed = there = 0
        for shard in range(self._store.shards):
            key = KEYS["dead_letter"].at(shard, group)
            names: Sequence[str] = await self._store.command(
                "ZRANGEBYSCORE", key, "-inf", before, "LIMIT", 0, max(0, min(_STEP, expected) - changed)
            )
            await asyncio.gather(*(self._store.run(function, shard, name) for name in names))
            changed += len(names)
            there += int(await self._store.command("ZCOUNT", key, "-inf", before))
        return ChangedLetters(changed, min(there, expected - changed))


def _group(name: str, size: int, since: int) -> DeadLetterGroup:
    tube, kind, error = name.split("\t", 2)
    return DeadLetterGroup(tube, kind, error, size, since)


_OWN = frozenset({EVENTS, ANSWERS_TUBE, REPLIES_TUBE, WEBHOOKS, SERIES, NOTICES})


async def check_tube(store: Store, name: str) -> None:
    """Check that a tube is Ada's own or that of a channel, has had a task, was created, or is paused. Raises NotFound
    TUBE_UNKNOWN.
    """
    names = {*_OWN, *await Queue(store).inspector.tubes(), *(await Channels(store).read()).names}
    await Tubes(store).check_name(name, names)
