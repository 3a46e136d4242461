"""The queue: tasks in tubes, strict lanes, leases with fencing tokens. One method per verb, one Lua file per method.

Guarantee: every step is one script; a task that was claimed is held by its token alone, and an old token changes
nothing. Task ids on the outside carry their shard: `<shard>.<id>`.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from core.errors import Conflict
from core.model.compact_json import compact_json
from core.queue.inspector import Inspector
from core.queue.puts import PutBatcher
from core.queue.task import Claim, Extension, NewTask, Settlement, Task, TaskFilter, TaskIds, split_id
from core.queue.task_search import SearchPosition
from core.redis.keys import KEYS
from core.redis.store import Store

__all__ = ["Claim", "Extension", "NewTask", "Queue", "Settlement", "Task", "TaskFilter"]

# Tasks of one script call: so long nobody else is served.
_SETTLES = 100
_CANCELS = 100


class Queue(Inspector):
    """One per process. Looking without changing anything: `core.queue.inspector`."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.ids = TaskIds()
        self._puts = PutBatcher(store, self.ids.client)

    async def put(
        self,
        tube: str,
        body: str,
        *,
        tenant: str = "default",
        lane: str = "",
        priority: int = 5,
        due: datetime | None = None,
        expires: datetime | None = None,
        kind: str = "",
        attempts: int = 0,
        user: str = "",
        tags: Sequence[str] = (),
        reply: str = "",
        shard: int = 0,
    ) -> str:
        """Add a task; answers its id. Exactly once, also over a broken connection. Fields: `NewTask`."""
        draft = NewTask(body, tenant, lane, priority, due, expires, kind, attempts, user, tags, reply)
        row = draft.row(self.ids.next())
        await self._puts.put(shard, tube, row)
        return f"{shard}.{row[0]}"

    async def put_many(self, tube: str, drafts: Sequence[NewTask], *, shard: int = 0) -> list[str]:
        """Add tasks in their order; answers their ids. Of more than a page each page is there at once, or not at all.
        Raises Invalid before anything is written.
        """
        rows = [draft.row(self.ids.next()) for draft in drafts]
        await self._puts.put_many(shard, tube, rows)
        return [f"{shard}.{row[0]}" for row in rows]

    async def claim(
        self,
        tube: str,
        owner: str,
        *,
        shard: int,
        limit: int,
        lease: timedelta,
        floor: timedelta,
        account: str = "",
        budget: int = 0,
    ) -> Claim:
        """Take up to `limit` tasks, or fewer once they have `budget` entries. With limit 0 only time goes on."""
        lease_ms, floor_ms = (int(span.total_seconds() * 1000) for span in (lease, floor))
        reply = await self._store.run("claim", shard, tube, owner, account, limit, budget or limit, lease_ms, floor_ms)
        now, micros, next_at, keeper, waits, opens_at, *rows = reply
        tasks = [Task.of(shard, now, row) for row in rows]
        return Claim(now, now + micros / 1000, int(next_at), bool(keeper), waits, int(opens_at), tasks)

    async def extend(
        self, task: Task, lease: timedelta, outcomes: Sequence[Any] = (), checkpoint: str = ""
    ) -> Extension:
        """Hold a task longer and write what has become of it so far."""
        lease_ms = int(lease.total_seconds() * 1000)
        reply = await self._store.run(
            "extend", task.shard, task.id, task.token, lease_ms, checkpoint, compact_json(list(outcomes))
        )
        return extension(reply)

    async def settle(
        self,
        task: Task,
        *,
        result: str = "done",
        outcomes: Sequence[Any] = (),
        due: int = 0,
        checkpoint: str = "",
        unclear: Sequence[Any] = (),
        body: str = "",
        answer: str = "",
    ) -> str:
        """The end of an attempt: "done", "failed", "waiting", "ready", "buried", "cancelled"; "stale": an old token."""
        settlement = Settlement(result, outcomes, due, checkpoint, unclear, body, answer)
        return (await self.settle_many([(task, settlement)]))[0]

    async def settle_many(self, ends: Sequence[tuple[Task, Settlement]]) -> list[str]:
        """`settle` for many attempts, a page in one step; the answers in their order."""
        by_shard: dict[int, list[int]] = defaultdict(list)
        for n, (task, _) in enumerate(ends):
            by_shard[task.shard].append(n)
        answers = [""] * len(ends)
        for shard, numbers in by_shard.items():
            for start in range(0, len(numbers), _SETTLES):
                page = numbers[start : start + _SETTLES]
                flat = [word for n in page for word in ends[n][1].row(ends[n][0])]
                for n, answer in zip(page, await self._store.run("settle", shard, *flat), strict=True):
                    answers[n] = str(answer)
        return answers

    async def release(self, task: Task, due: int = 0, body: str = "") -> str:
        """Give a task back unattempted, with another body if one is given: "ready", "waiting", "cancelled" if it was
        meanwhile, or "stale".
        """
        return str(await self._store.run("release", task.shard, task.id, task.token, due, body))

    async def wait(self, task_id: str, client: str) -> tuple[str, str]:
        """Have `client` told of a task's end: ("live", ""), or what it was: (state, answer), ("gone", "")."""
        shard, name = split_id(task_id)
        state, *answer = await self._store.run("notify_end", shard, name, client)
        return state, answer[0] if answer else ""

    async def release_timer(self, owner: str, shard: int) -> None:
        """Give the timer up, so that another worker keeps it at once."""
        await self._store.run("release_timer", shard, owner)

    async def throttle(self, tube: str, scope: str, wait: timedelta) -> None:
        """A provider asked this scope to wait: nobody serves it before, in any process."""
        wait_ms = max(1, int(wait.total_seconds() * 1000))
        for shard in range(self._store.shards):
            await self._store.run("throttle", shard, tube, scope, wait_ms)

    async def throttles(self, tube: str, shard: int, scopes: Sequence[str]) -> dict[str, int]:
        """Scopes that must wait, and until which ms."""
        if not scopes:
            return {}
        scores = await self._store.command("ZMSCORE", KEYS["waits"].at(shard, tube), *scopes)
        return {scope: int(float(score)) for scope, score in zip(scopes, scores, strict=True) if score is not None}

    async def bury(self, task_id: str) -> dict[str, Any]:
        """Lay a task aside; its lane goes on. Raises NotFound, Conflict TASK_TAKEN, TASK_OVER."""
        return await self._operate("bury", task_id, "TASK_TAKEN", "The task is under way.")

    async def kick(self, task_id: str) -> dict[str, Any]:
        """Give a buried task another life. Raises NotFound, Conflict TASK_NOT_BURIED."""
        return await self._operate("kick", task_id, "TASK_NOT_BURIED", "Only a buried task can be kicked.")

    async def _operate(self, verb: str, task_id: str, code: str, detail: str) -> dict[str, Any]:
        shard, name = split_id(task_id)
        if "ended" in await self._describe(shard, name):
            raise Conflict("TASK_OVER", "The task has ended.")
        if not await self._store.run(verb, shard, name):
            raise Conflict(code, detail)
        return await self._describe(shard, name)

    async def kick_some(self, tube: str, count: int) -> int:
        """Another life for the `count` tasks of a tube that were buried first; answers for how many."""
        kicked = 0
        async for shard, name in self._names("buried", tube):
            if kicked >= count:
                break
            kicked += await self._store.run("kick", shard, name)
        return kicked

    async def purge(self, tube: str = "") -> int:
        """Forget the ended tasks that are kept, of one tube or of all; answers how many."""
        purged = 0
        names = [found async for found in self._names("finished", tube)]
        for shard in range(self._store.shards):
            mine = [name for at, name in names if at == shard]
            for start in range(0, len(mine), _CANCELS):
                purged += await self._store.run("purge", shard, *mine[start : start + _CANCELS])
        return purged

    async def cancel(self, task_id: str) -> dict[str, Any]:
        """End a task; one under way is flagged and hears of it at its next word. Raises NotFound."""
        shard, name = split_id(task_id)
        await self._describe(shard, name)
        ended, flagged = await self._store.run("cancel_tasks", shard, name)
        return {"cancelled": ended, "flagged": flagged}

    async def cancel_by(self, selection: TaskFilter) -> dict[str, int]:
        """End every task of a selection that was there when this was called, a page at a time: others are served
        between two pages. Raises Invalid SELECTION_EMPTY.
        """
        told = {"cancelled": 0, "flagged": 0}
        async for place, tasks in self._pages(selection, SearchPosition(), _CANCELS):
            names = [split_id(task["id"])[1] for task in tasks]
            ended, flagged = await self._store.run("cancel_tasks", place.shard, *names)
            told["cancelled"] += ended
            told["flagged"] += flagged
        return told


def extension(reply: Sequence[Any]) -> Extension:
    """An answer of `lua/queue/extend.lua`."""
    if reply[0] == "stale":
        return Extension(False)
    return Extension(True, bool(reply[1]), frozenset(filter(None, reply[2].split("\n"))))
