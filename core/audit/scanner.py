"""Scans one shard: its keys and their contents, in pages, each checked on one atomic read.

    SCAN ─▶ kind of key ─▶ its members in pages ─▶ lua/audit/*.lua: one atomic read ─▶ core/audit/*_invariants.py

Whatever moves meanwhile, a task or delivery that is there all the time is seen. A task or delivery is read with all
indexes that may name it, so the indexes come last, and of them only what names anything else is read once more.
Called by core.audit.audit.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

from core.audit.delivery_snapshot import EventLog, Read, SnapshotReader
from core.audit.entry_scanner import PAGE, SeenTasks, directory_steps, jobs_steps, orphan_steps, pages, thread_steps
from core.audit.invariants.histories import delivery_violations, history_index_violations, time_of, version_of
from core.audit.invariants.invariant import LIVE, Violation, key_violations, parse_key
from core.audit.invariants.tasks import (
    LaneSnapshot,
    MemberSnapshot,
    Numbers,
    TenantSnapshot,
    dead_letter_violations,
    kind_violations,
    lane_violations,
    task_index_violations,
    task_snapshot,
    task_violations,
    tenant_violations,
)
from core.redis.keys import KEYS, Key
from core.redis.store import Store

_HISTORIES = 20
# Steps at the same time: their calls go out together and take the server a few milliseconds at most.
_AT_ONCE = 8

Found = list[Violation]
Step = Awaitable[Found]
# A key, its kind and its parts.
Place = tuple[str, Key, Sequence[str]]
# Checked after all tasks and deliveries.
_LATER = frozenset(
    {
        *("lease", "expires", "buried", "finished", "due", "taken", "progress", "dead_letters"),
        *("listed", "live", "retained"),
    }
)


class Scanner:
    """One shard. `placed`: the thread of each event, which the scanners of all shards share."""

    def __init__(self, store: Store, shard: int, placed: dict[str, str] | None = None) -> None:
        self._store = store
        self.shard = shard
        self.snapshots = SnapshotReader(store, shard)
        self.seen = SeenTasks(EventLog(store, shard))
        self._later: list[Place] = []
        self._orphans: set[str] = set()  # suffixes of keys whose history was not seen before
        self._steps: dict[str, Callable[[str, Key, Sequence[str]], Step]] = {
            **dict.fromkeys(("lease", "expires", "buried", "finished"), self._index),
            "lane": self._lane,
            "head": self._heads,
            "ready": self._ready,
            "tenants": self._ring,
            "due": self._due,
            "by": self._by,
            "kinds": self._kinds,
            "dead_letter": self._index,
            "dead_letters": self._dead_letters,
            "listed": self._listed,
            "live": self._listed,
            "retained": self._retained,
            **directory_steps(store, shard),
            **jobs_steps(store, shard),
            **orphan_steps(store, shard, self.seen),
            **thread_steps(store, {} if placed is None else placed),
        }

    async def _types(self, names: Sequence[str], home: int) -> Sequence[tuple[str, int]]:
        """Return the type and the TTL of each key, in one atomic read. In a cluster keys of other slots are read one by
        one.
        """
        if not self._store.shard_map.cluster or all(f"{{{self.shard}}}" in name for name in names):
            return list(await self._store.run("audit_keys", self.shard, *names))
        read = self._store.command_at
        return [(await read(home, "TYPE", name), await read(home, "PTTL", name)) for name in names]

    async def page(self, names: Sequence[str], home: int) -> AsyncIterator[Violation]:
        """Check keys of this shard and their contents, except what `indexes` checks. The keys without a shard and those
        that are not Ada's come with the first shard; they are on the primary of `home`.
        """
        self.seen.keys += len(names)
        rows = await self._types(names, home)
        places: dict[str, list[Place]] = defaultdict(list)
        for name, (kind, ttl) in zip(names, rows, strict=True):
            for violation in key_violations(name, kind, ttl):
                yield violation
            parsed = parse_key(name)
            if parsed is not None and kind == parsed[0].type:
                places[parsed[0].name].append((name, parsed[0], parsed[2]))
        for kind in _LATER & places.keys():
            self._later += places.pop(kind)
        for kind in ("outcomes", "reached"):
            self._orphans.update(
                parts[0] for _, _, parts in places.pop(kind, []) if parts[0] not in self.seen.deliveries
            )
        async for violation in self._run(self._steps_for(places)):
            yield violation

    async def indexes(self) -> AsyncIterator[Violation]:
        """Check the indexes, and the keys that belong to a history, once all pages are checked."""
        orphans = [self._history_indexes("", sorted(self._orphans - self.seen.deliveries.keys()))]
        steps = (self._steps[key.name](name, key, parts) for name, key, parts in self._later)
        async for violation in self._run(chain(orphans, steps)):
            yield violation

    async def _run(self, steps: Iterator[Step]) -> AsyncIterator[Violation]:
        """Run the steps. While one is checked here, the server reads for the next ones."""
        running: deque[asyncio.Future[Found]] = deque(map(asyncio.ensure_future, islice(steps, _AT_ONCE)))
        try:
            while running:
                for violation in await running[0]:
                    yield violation
                running.popleft()
                running.extend(map(asyncio.ensure_future, islice(steps, 1)))
        finally:
            for step in running:
                step.cancel()

    def _steps_for(self, places: dict[str, list[Place]]) -> Iterator[Step]:
        for page in pages(parts[0] for _, _, parts in places.pop("task", [])):
            yield self._tasks(page)
        for page in pages((parts[0] for _, _, parts in places.pop("history", [])), _HISTORIES):
            yield self._histories(page)
        for kind, some in places.items():
            if kind in self._steps:
                yield from (self._steps[kind](*place) for place in some)

    async def _members(self, name: str, scan: str = "ZSCAN") -> AsyncIterator[list[str]]:
        cursor = "0"
        while True:
            cursor, flat = await self._store.command(scan, name, cursor, "COUNT", PAGE)
            for page in pages(flat[::2]):
                yield page
            if str(cursor) == "0":
                return

    # tasks

    async def _tasks(self, ids: Sequence[str]) -> Found:
        now, order, token, *rows = await self._store.run("audit_tasks", self.shard, *ids)
        numbers = Numbers(int(now), int(order), int(token))
        found: Found = []
        for task in filter(None, map(task_snapshot, rows)):
            self._count(task.id, task.facts)
            violations = list(task_violations(self.shard, task, numbers))
            if violations:
                self.seen.broken.add(task.id)
            found += violations
        return found

    def _count(self, task_id: str, facts: Mapping[str, str]) -> None:
        if task_id in self.seen.tasks:
            return
        self.seen.tasks.add(task_id)
        if facts.get("state") not in LIVE:
            return
        self.seen.recount.add(facts.get("tube", ""), facts["state"])
        for name in ("order", "token"):
            if number := facts.get(name):
                other = self.seen.numbers.setdefault((name, number), task_id)
                if other != task_id:
                    self.seen.duplicates.append((name, other, task_id))

    async def duplicate_numbers(self) -> AsyncIterator[Violation]:
        """Yield the violations of I8: two tasks that seemed to have one number are read again together."""
        for name, one, other in self.seen.duplicates:
            _, _, _, *rows = await self._store.run("audit_tasks", self.shard, one, other)
            tasks = [task.facts for task in map(task_snapshot, rows) if task is not None]
            given = {task.get(name) for task in tasks}
            if len(tasks) == 2 and len(given) == 1 and None not in given:
                key, why = KEYS["task"].at(self.shard, other), "to which task it was given is unknown"
                yield Violation("I8", key, f"{name} {given.pop()}, as {one}", "a number of its own", why=why)

    # indexes of tasks

    async def _index(self, name: str, key: Key, parts: Sequence[str]) -> Found:
        return [v async for page in self._members(name) for v in await self._indexed(name, key, parts, page)]

    def _unseen(self, ids: Iterable[str]) -> list[str]:
        """Return the members of an index of all tasks that were not read, and found right, with their task."""
        return [one for one in ids if one not in self.seen.tasks or one in self.seen.broken]

    async def _indexed(self, name: str, key: Key, parts: Sequence[str], ids: Sequence[str]) -> Found:
        if key.name in _LATER:
            ids = self._unseen(ids)
        rows = await self._store.run("audit_index", self.shard, name, *ids) if ids else []
        return [v for row in rows for v in task_index_violations(name, key, parts, MemberSnapshot(*row))]

    async def _due(self, name: str, key: Key, parts: Sequence[str]) -> Found:
        found: Found = []
        async for page in self._members(name):
            orders = [member.split(":", 2) for member in page if member.startswith("order:")]
            tasks = [member for member in page if not member.startswith("order:")]
            found += await self._indexed(name, key, parts, tasks)
            found += await self._history_indexes("", [f"{sender}:{ns}" for _, ns, sender in orders])
        return found

    async def _by(self, name: str, key: Key, parts: Sequence[str]) -> Found:
        found = await self._index(name, key, parts)
        return found + (await self._kinds_of([parts[1]]) if parts[0] == "kind" else [])

    async def _kinds(self, name: str, key: Key, parts: Sequence[str]) -> Found:
        return [v async for page in self._members(name) for v in await self._kinds_of(page)]

    async def _dead_letters(self, name: str, key: Key, parts: Sequence[str]) -> Found:
        found: Found = []
        async for page in self._members(name):
            rows = await self._store.run("audit_dead_letters", self.shard, *page)
            found += [v for row in rows for v in dead_letter_violations(self.shard, *row)]
        return found

    async def _kinds_of(self, names: Sequence[str]) -> Found:
        rows = await self._store.run("audit_kinds", self.shard, *names)
        return [v for row in rows for v in kind_violations(self.shard, *row)]

    # lanes, offers, tenants

    async def _lane(self, name: str, key: Key, parts: Sequence[str]) -> Found:
        is_new = name not in self.seen.lanes  # SCAN may return a key twice
        self.seen.lanes.add(name)
        return await self._lanes(parts[0], "", [parts[1]], counted=is_new) + await self._index(name, key, parts)

    async def _lanes(self, tube: str, tenant: str, names: Sequence[str], *, counted: bool = False) -> Found:
        found: Found = []
        for page in pages(names):
            for row in await self._store.run("audit_lanes", self.shard, tube, tenant, *page):
                lane = LaneSnapshot(*row)
                if counted:
                    self.seen.recount.add(tube, "locked", lane.behind)
                found += lane_violations(self.shard, tube, tenant, lane)
        return found

    async def _heads(self, name: str, key: Key, parts: Sequence[str]) -> Found:
        return [v async for page in self._members(name, "HSCAN") for v in await self._lanes(parts[0], "", page)]

    async def _ready(self, name: str, key: Key, parts: Sequence[str]) -> Found:
        tube, tenant = parts
        found = await self._tenants(tube, [tenant])
        async for page in self._members(name):
            lanes = [member[1:] for member in page if member.startswith("@")]
            found += await self._lanes(tube, tenant, lanes)
            found += await self._indexed(name, key, parts, [one for one in page if not one.startswith("@")])
        return found

    async def _ring(self, name: str, key: Key, parts: Sequence[str]) -> Found:
        return [v async for page in self._members(name) for v in await self._tenants(parts[0], page)]

    async def _tenants(self, tube: str, tenants: Sequence[str]) -> Found:
        rows = await self._store.run("audit_tenants", self.shard, tube, *tenants)
        return [v for row in rows for v in tenant_violations(self.shard, tube, TenantSnapshot(*row))]

    # deliveries

    async def _histories(self, suffixes: Sequence[str]) -> Found:
        now, rows, reads = await self.snapshots.deliveries(suffixes)
        found: Found = []
        for row, read in zip(rows, reads, strict=True):
            violations = list(history_index_violations(self.shard, "", row, now))
            if violations:
                self.seen.broken.add(row.suffix)
            if row.facts[0] is not None:
                self.seen.deliveries[row.suffix] = row.facts[0]
            found += violations + await self._delivery(read)
        return found

    async def _delivery(self, read: Read | None) -> Found:
        if read is None:
            self.seen.unread += 1
            return []
        history, content, plans = read
        found = list(delivery_violations(self.shard, history, content, plans))
        if not self._without_event(history.suffix, content.outcomes):
            return found
        await self.seen.events.catch_up()
        key, why = KEYS["outcomes"].at(self.shard, history.suffix), "its listeners have gone on"
        return found + [
            Violation("I13", key, f"{name} is {text}, without an event", "an event for each outcome", why=why)
            for name, text in self._without_event(history.suffix, content.outcomes)
        ]

    def _without_event(self, suffix: str, outcomes: dict[str, str]) -> list[tuple[str, str]]:
        covers = self.seen.events.covers
        return [(name, text) for name, text in outcomes.items() if not covers(suffix, version_of(text), time_of(text))]

    async def _history_indexes(self, tenant: str, suffixes: Iterable[str]) -> Found:
        """Check the indexes of deliveries. A delivery that was read itself, and found right, is not read again.
        `tenant` "": the delivery's own.
        """
        found: Found = []
        for page in pages(one for one in suffixes if not self._was_seen(one, tenant)):
            now, rows = await self.snapshots.histories(tenant, page)
            found += [v for row in rows for v in history_index_violations(self.shard, tenant, row, now)]
        return found

    def _was_seen(self, suffix: str, tenant: str) -> bool:
        owner = self.seen.deliveries.get(suffix)
        return owner is not None and tenant in ("", owner) and suffix not in self.seen.broken

    async def _listed(self, name: str, key: Key, parts: Sequence[str]) -> Found:
        return [v async for page in self._members(name) for v in await self._history_indexes(parts[0], page)]

    async def _retained(self, name: str, key: Key, parts: Sequence[str]) -> Found:
        found: Found = []
        async for page in self._members(name):
            by_tenant: dict[str, list[str]] = defaultdict(list)
            for member in page:
                tenant, _, suffix = member.partition("|")
                by_tenant[tenant].append(suffix)
            for tenant, suffixes in by_tenant.items():
                found += await self._history_indexes(tenant, suffixes)
        return found
