"""The queue: tasks in tubes, strict lanes, leases with fencing tokens. One method per verb, one Lua file per method.

Guarantee: every step is one script; a task that was claimed is held by its token alone, and an old token changes
nothing. Task ids on the outside carry their shard: `<shard>.<id>`.
"""

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from core.channels import pairs_of
from core.errors import Conflict, Invalid, NotFound
from core.keys import KEYS, kind_of
from core.orders import unix_ms
from core.parcels import compact
from core.store import Store
from core.words import TaskState

_TASK_FIELDS = (
    *("state", "tube", "tenant", "lane", "kind", "priority", "order", "due", "expires"),
    *("attempts", "owner", "history", "left", "body"),
)


@dataclass(frozen=True, slots=True)
class Task:
    """A claimed task. `started` ms: the first claim since it was last returned in order; earlier than `claimed` after a
    crash.
    """

    shard: int
    id: str
    token: str
    attempts: int
    started: int
    claimed: int
    body: str
    checkpoint: str
    left: int
    kind: str
    lane: str
    expires: int
    history: str
    parcel: str
    text: str
    closed: bool

    @property
    def crashed(self) -> bool:
        """Whether an earlier holder was lost without a word."""
        return self.started < self.claimed or self.attempts > 1


@dataclass(frozen=True, slots=True)
class Claim:
    """What a claim brought. All times are the server's ms; -1 means never.

    `clock`: `now` with its fraction, for those who sleep until a moment. `next_at`: when time brings something about;
    only the `keeper` need look then. `opens_at`: when a held account may go on.
    """

    now: int
    clock: float
    next_at: int
    keeper: bool
    waits: int
    opens_at: int
    tasks: Sequence[Task]


@dataclass(frozen=True, slots=True)
class Extension:
    """`held` False: the lease was lost, and the task belongs to somebody else or to nobody. Stop, and write nothing."""

    held: bool
    cancelled: bool = False
    skip: frozenset[str] = frozenset()


class Queue:
    """One per process."""

    def __init__(self, store: Store) -> None:
        self._store = store

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
        shard: int = 0,
    ) -> str:
        """Add a task; answers its id. `attempts` 0: as many as the installation's `max_attempts`."""
        task_id = f"{time.time_ns()}.{secrets.token_hex(4)}"
        due_ms = unix_ms(due) if due else 0
        expires_ms = unix_ms(expires) if expires else 0
        await self._store.run(
            "put", shard, task_id, tube, tenant, lane, priority, due_ms, expires_ms, kind, attempts, body
        )
        return f"{shard}.{task_id}"

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
        tasks = [_task(shard, now, row) for row in rows]
        return Claim(now, now + micros / 1000, int(next_at), bool(keeper), waits, int(opens_at), tasks)

    async def extend(
        self, task: Task, lease: timedelta, outcomes: Sequence[Any] = (), checkpoint: str = ""
    ) -> Extension:
        """Hold a task longer and write what has become of it so far."""
        lease_ms = int(lease.total_seconds() * 1000)
        reply = await self._store.run(
            "extend", task.shard, task.id, task.token, lease_ms, checkpoint, compact(list(outcomes))
        )
        if reply[0] == "stale":
            return Extension(False)
        return Extension(True, bool(reply[1]), frozenset(filter(None, reply[2].split("\n"))))

    async def settle(
        self,
        task: Task,
        *,
        result: str = "done",
        outcomes: Sequence[Any] = (),
        due: int = 0,
        checkpoint: str = "",
        unclear: bool = False,
    ) -> str:
        """The end of an attempt: "done", "failed", "waiting", "ready", "cancelled"; "stale" for an old token."""
        arguments = (task.id, task.token, result, due, checkpoint, int(unclear), compact(list(outcomes)))
        return str((await self._store.run("settle", task.shard, *arguments))[-1])

    async def release(self, task: Task, due: int = 0) -> str:
        """Give a task back unattempted: "ready", "waiting", "cancelled" if it was meanwhile, or "stale"."""
        return str(await self._store.run("release", task.shard, task.id, task.token, due))

    async def resign(self, owner: str, shard: int) -> None:
        """Give the timer up, so that another worker keeps it at once."""
        await self._store.run("resign", shard, owner)

    async def hold(self, tube: str, scope: str, wait: timedelta) -> None:
        """A provider asked this scope to wait: nobody serves it before, in any process."""
        wait_ms = max(1, int(wait.total_seconds() * 1000))
        for shard in range(self._store.shards):
            await self._store.run("hold", shard, tube, scope, wait_ms)

    async def waits(self, tube: str, shard: int, scopes: Sequence[str]) -> dict[str, int]:
        """Scopes that must wait, and until which ms."""
        if not scopes:
            return {}
        scores = await self._store.command("ZMSCORE", KEYS["waits"].at(shard, tube), *scopes)
        return {scope: int(float(score)) for scope, score in zip(scopes, scores, strict=True) if score is not None}

    async def stats(self) -> dict[str, Any]:
        """Counts by tube: transitions since the beginning, and what is due, leased, buried now."""
        totals: dict[str, int] = {"due": 0, "taken": 0, "buried": 0}
        transitions: dict[str, dict[str, int]] = {}
        for shard in range(self._store.shards):
            for name, index in (("due", "due"), ("taken", "lease"), ("buried", "buried")):
                totals[name] += await self._store.command("ZCARD", KEYS[index].at(shard))
            counters = await self._store.command("HGETALL", KEYS["counters"].at(shard))
            for name, value in pairs_of(counters).items():
                tube, colon, transition = name.rpartition(":")
                if colon:
                    counts = transitions.setdefault(tube, {})
                    counts[transition] = counts.get(transition, 0) + int(value)
        return {
            **totals,
            "tubes": {tube: {**counts, "live": _live(counts)} for tube, counts in sorted(transitions.items())},
        }

    async def peek(self, task_id: str) -> dict[str, Any]:
        """A task as it stands; `locked` with the task it waits for. Changes nothing. Raises NotFound TASK_NOT_FOUND."""
        shard, name = _split(task_id)
        return await self._describe(shard, name)

    async def _describe(self, shard: int, name: str) -> dict[str, Any]:
        values = await self._store.command("HMGET", KEYS["task"].at(shard, name), *_TASK_FIELDS)
        facts = dict(zip(_TASK_FIELDS, values, strict=True))
        if facts["state"] is None:
            raise NotFound("TASK_NOT_FOUND", "There is no such task.")
        found: dict[str, Any] = {"id": f"{shard}.{name}"}
        found |= {field: _number(field, value) for field, value in facts.items() if value is not None}
        if facts["lane"] and facts["state"] == TaskState.READY:
            found |= await self._lock(shard, name, str(facts["tube"]), facts["lane"])
        return found

    async def _lock(self, shard: int, name: str, tube: str, lane: str) -> dict[str, str]:
        """`locked` is derived: the lane is held, or another task is its head."""
        holder = await self._store.command("HGET", KEYS["held"].at(shard, tube), lane)
        head = holder or (await self._store.command("ZRANGE", KEYS["lane"].at(shard, tube, lane), 0, 0))[0]
        return {} if head == name else {"state": TaskState.LOCKED, "waits_for": f"{shard}.{head}"}

    async def list(
        self, *, tube: str | None, state: str | None, tenant: str | None, cursor: str | None, limit: int
    ) -> tuple[list[dict[str, Any]], str | None]:
        """Tasks in pages, in no order; a page may hold fewer than `limit`. Raises Invalid CURSOR_MALFORMED."""
        shard, position = _cursor(cursor, self._store.shards)
        pattern = KEYS["task"].at(shard, "*").replace("{", "[{]")
        position, names = await self._store.command("SCAN", position, "MATCH", pattern, "COUNT", max(limit, 10))
        prefix = len(KEYS["task"].at(shard, ""))
        found = [await self._seen(shard, name[prefix:]) for name in names if kind_of(name) is KEYS["task"]]
        wanted = {"tube": tube, "state": state, "tenant": tenant}
        kept = [task for task in found if task and all(task.get(k) == v for k, v in wanted.items() if v is not None)]
        return kept, _next_cursor(shard, int(position), self._store.shards)

    async def _seen(self, shard: int, name: str) -> dict[str, Any] | None:
        """None: it ended meanwhile."""
        try:
            return await self._describe(shard, name)
        except NotFound:
            return None

    async def bury(self, task_id: str) -> dict[str, Any]:
        """Lay a task aside; its lane goes on. Raises NotFound, Conflict TASK_TAKEN."""
        return await self._operate("bury", task_id, "TASK_TAKEN", "The task is under way.")

    async def kick(self, task_id: str) -> dict[str, Any]:
        """Give a buried task another life. Raises NotFound, Conflict TASK_NOT_BURIED."""
        return await self._operate("kick", task_id, "TASK_NOT_BURIED", "Only a buried task can be kicked.")

    async def _operate(self, verb: str, task_id: str, code: str, detail: str) -> dict[str, Any]:
        shard, name = _split(task_id)
        await self._describe(shard, name)
        if not await self._store.run(verb, shard, name):
            raise Conflict(code, detail)
        return await self._describe(shard, name)

    async def cancel(self, task_id: str) -> dict[str, Any]:
        """End a task; one under way is flagged and hears of it at its next word. Raises NotFound."""
        shard, name = _split(task_id)
        await self._describe(shard, name)
        ended, flagged = await self._store.run("cancel_tasks", shard, name)
        return {"cancelled": ended, "flagged": flagged}


def _task(shard: int, now: int, row: Sequence[Any]) -> Task:
    task_id, token, attempts, started, body, checkpoint, left, kind, lane, expires, history, *parcel = row
    blob, text, closed = parcel or ("", "", "")
    times = int(started), now
    entries = int(left or 0)
    return Task(
        shard,
        task_id,
        str(token),
        attempts,
        *times,
        body,
        checkpoint,
        entries,
        kind,
        lane,
        int(expires or 0),
        history,
        blob,
        text,
        bool(closed),
    )


def _split(task_id: str) -> tuple[int, str]:
    shard, dot, name = task_id.partition(".")
    if not dot or not shard.isdecimal() or len(shard) > 5 or not name:
        raise NotFound("TASK_NOT_FOUND", "There is no such task.")
    return int(shard), name


def _number(field: str, value: str) -> str | int:
    return int(value) if field in {"priority", "order", "due", "expires", "attempts", "left"} else value


def _live(counts: dict[str, int]) -> int:
    """By conservation (I7): what was put and has not ended."""
    return counts.get("put", 0) - sum(counts.get(end, 0) for end in ("done", "failed", "cancelled", "expired"))


def _cursor(cursor: str | None, shards: int) -> tuple[int, int]:
    if cursor is None:
        return 0, 0
    shard, _, position = cursor.partition("-")
    if not (
        shard.isdecimal()
        and position.isdecimal()
        and len(cursor) < 30
        and int(shard) < shards
        and int(position) < 2**64
    ):
        raise Invalid("CURSOR_MALFORMED", "A cursor is taken from `next` of the page before.", "cursor")
    return int(shard), int(position)


def _next_cursor(shard: int, position: int, shards: int) -> str | None:
    if position:
        return f"{shard}-{position}"
    return f"{shard + 1}-0" if shard + 1 < shards else None
