"""The queue: tasks in tubes, strict lanes, leases with fencing tokens. Each verb is one method and one Lua function.

Guarantee: every step is one function. A claimed task belongs to the worker with its token; an old token changes
nothing. The task ids that methods take and return carry their shard: `<shard>.<id>`.
"""

import asyncio
import itertools
import random
import secrets
import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec

from core.errors import Conflict
from core.model.json_form import compact_json
from core.queue.batcher import Batcher
from core.queue.checks import check_texts
from core.queue.inspector import Inspector
from core.queue.task import (
    CancelResult,
    Claim,
    ClaimRequest,
    Extension,
    NewTask,
    Settled,
    Settlement,
    SettleResult,
    Task,
    TaskFilter,
    TaskView,
)
from core.queue.task_ids import TaskIds, split_id
from core.queue.task_search import SearchPosition
from core.queue.tubes import JOBS
from core.redis.keys import KEYS
from core.redis.store import Store

# Tasks of one function call. While a function runs, the server does nothing else.
_PUTS = 200
_CANCELS = 100
# Seconds. A reply that takes longer was delayed or repeated, so it is no measure of the server's clock.
_LATENCY = 1.0

Row = Sequence[str | int]


class Queue:
    """One per process. `inspector` has the methods that only read."""

    def __init__(self, store: Store) -> None:
        self.inspector = Inspector(store)
        self._store = store
        self.ids = TaskIds()
        self.puts: Batcher[tuple[int, str], Row, None] = Batcher(self._put_rows, _PUTS)
        self._caller = secrets.token_hex(16)  # a second queue of this name within an hour would put nothing
        self._calls = itertools.count(1)
        self._unanswered: dict[int, None] = {}
        self._batch_shard: int | None = None

    async def put(self, tube: str, task: NewTask, *, shard: int | None = None) -> str:
        """Add a task and return its id: exactly once, also over a broken connection. A task with a lane stands in the
        shard of its lane (I19), another one in `shard`, or in any: the same for all that are put at once, so that a
        worker finds full pages. Raises Invalid.
        """
        check_texts("task", tube=tube)
        row = task.row(self.ids.next(self._store.clock_offset_ms))
        place = self._shard_for(task, self._shard_of_batch() if shard is None else shard)
        await self.puts.add((place, tube), row)
        return f"{place}.{row[0]}"

    def _shard_for(self, task: NewTask, shard: int) -> int:
        return self._store.shard_of(task.lane) if task.lane else shard

    def _shard_of_batch(self) -> int:
        """Return the shard of the tasks without a lane that are put in this turn of the event loop."""
        if self._batch_shard is None:
            self._batch_shard = random.randrange(self._store.shards)
            asyncio.get_running_loop().call_soon(self._end_batch)
        return self._batch_shard

    def _end_batch(self) -> None:
        self._batch_shard = None

    async def put_once(self, tube: str, task: NewTask, *, source: str, name: str) -> bool:
        """Add a task unless `source` has put one under the same name within a day, also if that has ended. Returns
        whether it was added. It stands in the shard of its lane, without one in that of the name. Raises Invalid.
        """
        check_texts("task", tube=tube, source=source, name=name)
        row = task.row(self.ids.next(self._store.clock_offset_ms))
        shard = self._store.shard_of(task.lane or name)
        return bool(await self._store.run("put_once", shard, source, name, tube, *row) != "known")

    async def put_many(self, tube: str, tasks: Sequence[NewTask], *, shard: int | None = None) -> list[str]:
        """Add tasks in this order, and return their ids. Each stands where `put` places it; those without a lane change
        the shard every 200 tasks. Of more than 200 tasks of a shard, each page of 200 is put as a whole or not at all.
        Raises Invalid before anything is written.
        """
        check_texts("task", tube=tube)
        first = random.randrange(self._store.shards)
        places = [(first + n // _PUTS) % self._store.shards if shard is None else shard for n in range(len(tasks))]
        made = [task.row(self.ids.next(self._store.clock_offset_ms)) for task in tasks]
        rows = [(self._shard_for(task, place), row) for place, task, row in zip(places, tasks, made, strict=True)]
        by_shard: dict[int, list[Row]] = defaultdict(list)
        for place, row in rows:
            by_shard[place].append(row)
        for place, page in by_shard.items():
            await self.puts.send_all((place, tube), page)
        return [f"{place}.{row[0]}" for place, row in rows]

    async def _put_rows(self, place: tuple[int, str], rows: Sequence[Row]) -> Sequence[None]:
        """Put in one step. The call carries its number and the lowest unanswered one, so that the server recognises its
        repetition after a lost connection: docs/decisions/0014.
        """
        shard, tube = place
        call = next(self._calls)
        self._unanswered[call] = None
        answered = next(iter(self._unanswered))
        try:
            flat = itertools.chain.from_iterable(rows)
            await self._store.run("put", shard, self._caller, call, answered, tube, *flat)
        finally:
            del self._unanswered[call]
        return [None] * len(rows)

    async def claim(self, shard: int, request: ClaimRequest) -> Claim:
        """Take up to `limit` tasks, or fewer once they have `budget` entries. What has fallen due happens first, also
        with limit 0.
        """
        requested_at = time.monotonic()
        return claim_of(shard, await self._store.run("claim", shard, *request.words()), requested_at)

    async def turn(self, shard: int, ends: Sequence[Row], request: ClaimRequest) -> tuple[list[Settled], Claim]:
        """Settle attempts of one shard and claim the next tasks, in one step. `ends`: `Settlement.row` of each."""
        requested_at = time.monotonic()
        flat = itertools.chain.from_iterable(ends)
        states, reply = await self._store.run("turn", shard, *request.words(), *flat)
        return [Settled(state) for state in states], claim_of(shard, reply, requested_at)

    async def extend(
        self,
        task: Task,
        lease: timedelta,
        outcomes: Sequence[Any] = (),
        checkpoint: str = "",
        *,
        replicated: bool = False,
    ) -> Extension:
        """Extend the lease of a task and write a parcel's outcomes so far. `replicated`: `Store.run_replicated`."""
        lease_ms = int(lease.total_seconds() * 1000)
        run = self._store.run_replicated if replicated else self._store.run
        reply = await run("extend", task.shard, task.id, task.token, lease_ms, checkpoint, compact_json(list(outcomes)))
        return extension(reply)

    async def settle(
        self,
        task: Task,
        *,
        result: SettleResult = SettleResult.DONE,
        outcomes: Sequence[Any] = (),
        due: int = 0,
        checkpoint: str = "",
        unclear: Sequence[Any] = (),
        body: str = "",
        answer: str = "",
        error: str = "",
    ) -> Settled:
        """End an attempt and return the task's new state. The fields are those of `Settlement`."""
        settlement = Settlement(result, outcomes, due, checkpoint, unclear, body, answer, error)
        return (await self.settle_page(task.shard, [settlement.row(task)]))[0]

    async def settle_page(self, shard: int, ends: Sequence[Row]) -> list[Settled]:
        """Settle attempts of one shard in one step. `ends`: `Settlement.row` of each."""
        flat = itertools.chain.from_iterable(ends)
        return [Settled(state) for state in await self._store.run("settle", shard, *flat)]

    async def release(self, task: Task, due: int = 0, body: str = "") -> Settled:
        """Return a task without counting the attempt. `due`: the server's ms, 0: ready at once; `body`, unless "",
        replaces the task's body. Returns READY, WAITING, CANCELLED or STALE.
        """
        return Settled(await self._store.run("release", task.shard, task.id, task.token, due, body))

    async def suspend(self, task: Task, due: int, *, leaves_lane: bool = False, checkpoint: str = "") -> Settled:
        """Return a task until it is woken, at the latest until `due`, the server's ms, without counting the attempt. It
        does not expire any more. `leaves_lane`: its lane goes on, and the task enters it as the last one when it is
        woken. Returns WAITING, or READY if it was woken while it was taken; CANCELLED or STALE.
        """
        words = (task.id, task.token, due, int(leaves_lane), checkpoint)
        return Settled(await self._store.run("suspend", task.shard, *words))

    async def wake(self, task_id: str) -> bool:
        """Have a waiting task attempted now; a taken one again, if it is suspended after this attempt. Returns whether
        it was waiting or taken. Raises NotFound.
        """
        shard, name = split_id(task_id)
        return bool(await self._store.run("wake", shard, name))

    async def notify_end(self, task_id: str, client: str) -> tuple[str, str]:
        """Have `client` notified when a task ends. Returns ("live", ""); (state, answer) if it has ended and is kept;
        ("gone", "") if it is not there.
        """
        shard, name = split_id(task_id)
        state, *answer = await self._store.run("notify_end", shard, name, client)
        return state, answer[0] if answer else ""

    async def release_timer(self, owner: str, shard: int) -> None:
        """Release the timer, so that another worker keeps it at once."""
        await self._store.run("release_timer", shard, owner)

    async def throttle(self, tube: str, scope: str, wait: timedelta) -> bool:
        """Throttle a scope (an account, a method, a chat) for this time, in every process. Returns whether it was
        throttled before.
        """
        wait_ms = max(1, int(wait.total_seconds() * 1000))
        shards = range(self._store.shards)
        replies = [await self._store.run("throttle", shard, tube, scope, wait_ms) for shard in shards]
        return any(was_throttled for _, was_throttled in replies)

    async def learn_rate(self, tube: str, account: str, calls: int) -> None:
        """Slow an account down in every process, after its provider refused it for its speed. `calls`: how many of this
        process were accepted in the second before.
        """
        await self._store.run("learn_rate", self._store.shard_of_account(tube, account), tube, account, calls)

    async def reserve_call(self, tube: str, account: str) -> tuple[int, int]:
        """Reserve the next moment for a call of an account. Returns (ms until its throttle ends or 0, ms until the call
        or -1 if its rate is not limited).
        """
        shard = self._store.shard_of_account(tube, account)
        throttled, wait = await self._store.run("reserve_call", shard, tube, account)
        return throttled, wait

    async def throttles(self, tube: str, shard: int, scopes: Sequence[str]) -> dict[str, int]:
        """Return scope → the server's ms until which it is throttled, for those of `scopes` that are."""
        if not scopes:
            return {}
        scores = await self._store.command("ZMSCORE", KEYS["throttles"].at(shard, tube), *scopes)
        return {scope: int(float(score)) for scope, score in zip(scopes, scores, strict=True) if score is not None}

    async def throttles_of(self, tube: str) -> dict[str, int]:
        """Return scope → the server's ms until which it is throttled, for accounts and methods that are now."""
        found: dict[str, int] = {}
        for shard in range(self._store.shards):
            page = await self._store.command(
                "ZRANGEBYSCORE", KEYS["throttles"].at(shard, tube), int(self.inspector.now_ms()), "+inf", "WITHSCORES"
            )
            rows = [(scope, int(float(until))) for scope, until in page if not scope.startswith("chat:")]
            found |= {scope: max(found.get(scope, 0), until) for scope, until in rows}
        return found

    async def bury(self, task_id: str) -> TaskView:
        """Set a task aside; its lane goes on. Raises NotFound, Conflict TASK_TAKEN, TASK_OVER."""
        return await self._operate("bury", task_id, "TASK_TAKEN", "The task is under way.")

    async def kick(self, task_id: str) -> TaskView:
        """Make a buried task ready again, with all its attempts. Raises NotFound, Conflict TASK_NOT_BURIED."""
        return await self._operate("kick", task_id, "TASK_NOT_BURIED", "Only a buried task can be kicked.")

    async def _operate(self, verb: str, task_id: str, code: str, detail: str) -> TaskView:
        shard, name = split_id(task_id)
        if (await self.inspector.view(shard, name)).ended is not None:
            raise Conflict("TASK_OVER", "The task has ended.")
        if not await self._store.run(verb, shard, name):
            raise Conflict(code, detail)
        return await self.inspector.view(shard, name)

    async def kick_some(self, tube: str, count: int) -> int:
        """Kick up to `count` tasks of a tube, those buried first. Returns how many."""
        kicked = 0
        async for shard, name in self.inspector.names("buried", tube):
            if kicked >= count:
                break
            kicked += await self._store.run("kick", shard, name)
        return kicked

    async def purge(self, tube: str = "") -> int:
        """Delete the ended tasks that are kept, of one tube or of all. Returns how many."""
        purged = 0
        names = [found async for found in self.inspector.names("finished", tube)]
        for shard in range(self._store.shards):
            of_shard = [name for found_in, name in names if found_in == shard]
            for start in range(0, len(of_shard), _CANCELS):
                purged += await self._store.run("purge", shard, *of_shard[start : start + _CANCELS])
        return purged

    async def cancel(self, task_id: str) -> CancelResult:
        """End a task; a running one is flagged, and its worker is notified when it next extends or settles. Raises
        NotFound.
        """
        shard, name = split_id(task_id)
        await self.inspector.view(shard, name)
        return await self._cancel_page(shard, [name])

    async def cancel_by(self, selected: TaskFilter) -> CancelResult:
        """End all tasks that the filter selects and that were there at the call, a page at a time, so that other
        commands run between two pages. With a tube and no other mark than the tenant these are the parcels of
        deliveries, too. Tasks of jobs, and parcels of a tenant, are left and counted unless the tube is named. Raises
        Invalid SELECTION_EMPTY.
        """
        selected.index()  # something besides the tube is chosen
        if not selected.has_mark:
            return await self._cancel_standing(selected)
        total = CancelResult(0, 0)
        async for position, tasks in self.inspector.pages(selected, SearchPosition(), _CANCELS):
            total += await self._cancel_selected(selected, position.shard, tasks)
        return total

    async def _cancel_standing(self, selected: TaskFilter) -> CancelResult:
        """Cancel by tenant. A task that changes its state while the states are read is missed: repeat this until
        nothing is left to be done.
        """
        orders, total, is_repeat = await self.inspector.orders(), CancelResult(0, 0), False
        while True:
            before, total = total, msgspec.structs.replace(total, left=0, left_parcels=0)
            async for shard, tasks in self.inspector.standing(selected):
                there = [task for task in tasks if (task.order or 0) <= orders[shard]]
                wanted = [task for task in there if selected.tube or task.history is None]
                new = [task for task in wanted if not (is_repeat and task.cancel)]
                total += await self._cancel_selected(selected, shard, new)
                total += CancelResult(0, 0, left_parcels=len(there) - len(wanted))
            if total == before:
                return total
            is_repeat = True

    async def _cancel_selected(self, selected: TaskFilter, shard: int, tasks: Sequence[TaskView]) -> CancelResult:
        of_jobs = [task for task in tasks if not selected.tube and (task.tube or "").startswith(JOBS)]
        names = [split_id(task.id)[1] for task in tasks if task not in of_jobs]
        return await self._cancel_page(shard, names) + CancelResult(0, 0, len(of_jobs))

    async def _cancel_page(self, shard: int, names: Sequence[str]) -> CancelResult:
        """Cancel all of these tasks; the function leaves some to a further call if that is much work."""
        cancelled = flagged = 0
        while names:
            ended, running, left = await self._store.run("cancel_tasks", shard, *names)
            cancelled += ended
            flagged += running
            names = names[len(names) - left :]
        return CancelResult(cancelled, flagged)


def claim_of(shard: int, reply: Sequence[Any], requested_at: float) -> Claim:
    """Read the reply of `lua/queue/functions/claim.lua`. `requested_at`: when the claim was sent, by time.monotonic."""
    now, micros, next_at, keeper, throttles, opens_at, *rows = reply
    requested_at = max(requested_at, time.monotonic() - _LATENCY)
    tasks = [Task.of(shard, now, row) for row in rows]
    return Claim(now, now + micros / 1000, int(next_at), bool(keeper), throttles, int(opens_at), tasks, requested_at)


def extension(reply: Sequence[Any]) -> Extension:
    """Read the reply of `lua/queue/functions/extend.lua`."""
    if reply[0] == "stale":
        return Extension(False)
    return Extension(True, bool(reply[1]), frozenset(filter(None, reply[2].split("\n"))))
