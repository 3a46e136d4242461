"""The audit's walk over one server: its keys and what they hold, in pages, each judged as it stood in one moment.

    SCAN ─▶ kind of key ─▶ its members in pages ─▶ lua/audit/*.lua: a page seen in one moment ─▶ core/*_laws.py

Whatever moves meanwhile: what is there all the time is seen, and nothing is put together from two moments.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from core.audit.conservation import Recount
from core.audit.delivery_snapshot import SnapshotReader
from core.audit.event_log import EventLog
from core.audit.history_invariants import HistorySnapshot, delivery_violations, version_of
from core.audit.history_invariants import history_index_violations as history_index_laws
from core.audit.invariant import LIVE, Violation, key_violations, taken_apart
from core.audit.lane_invariants import (
    LaneSnapshot,
    MemberSnapshot,
    TenantSnapshot,
    kind_violations,
    lane_violations,
    task_index_violations,
    tenant_violations,
)
from core.audit.task_invariants import Numbers, facts_of, task_snapshot, task_violations
from core.redis.keys import KEYS, Key
from core.redis.store import Store

# Of one script call: it blocks the server for about a millisecond.
PAGE = 100
_HISTORIES = 5
# Walks side by side: their calls go out together, and hold up the server for a few milliseconds at most.
_AT_ONCE = 8

Found = AsyncIterator[Violation]
# A key, its kind and its parts.
Place = tuple[str, Key, list[str]]


@dataclass(slots=True)
class Seen:
    """What a walk saw of one shard. `numbers`: (order or token, number) → the task that has it; `twice`: two have it.
    `unread`: deliveries that moved whenever they were looked at.
    """

    told: EventLog
    keys: int = 0
    tasks: set[str] = field(default_factory=set)
    lanes: set[str] = field(default_factory=set)
    deliveries: int = 0
    unread: int = 0
    recount: Recount = field(default_factory=Recount)
    numbers: dict[tuple[str, str], str] = field(default_factory=dict)
    twice: list[tuple[str, str, str]] = field(default_factory=list)


def pages(items: Iterable[str], size: int = PAGE) -> Iterator[list[str]]:
    rest = iter(items)
    while page := list(islice(rest, size)):
        yield page


async def _all(found: Found) -> list[Violation]:
    return [violation async for violation in found]


class Scanner:
    """One shard."""

    def __init__(self, store: Store, shard: int) -> None:
        self._store = store
        self.shard = shard
        self.contents = SnapshotReader(store, shard)
        self.seen = Seen(EventLog(store, shard))
        self._walks: dict[str, Callable[[str, Key, list[str]], Found]] = {
            **dict.fromkeys(("lease", "expires", "buried", "finished"), self._index),
            "lane": self._lane,
            "front": self._front,
            "ready": self._ready,
            "tenants": self._ring,
            "due": self._due,
            "by": self._by,
            "kinds": self._kinds,
            "listed": self._listed,
            "live": self._listed,
            "retained": self._retained,
            "outcomes": self._belongings,
            "reached": self._belongings,
        }

    async def page(self, names: Sequence[str]) -> Found:
        """Judge keys of this shard and all they hold."""
        self.seen.keys += len(names)
        rows = await self._store.run("audit_keys", self.shard, *names)
        sound: dict[str, list[Place]] = defaultdict(list)
        for name, (kind, ttl) in zip(names, rows, strict=True):
            for violation in key_violations(name, kind, ttl):
                yield violation
            apart = taken_apart(name)
            if apart is not None and kind == apart[0].type:
                sound[apart[0].name].append((name, apart[0], apart[2]))
        walks = self._all_of(sound)
        while some := list(islice(walks, _AT_ONCE)):
            for found in await asyncio.gather(*(_all(walk) for walk in some)):
                for violation in found:
                    yield violation

    def _all_of(self, sound: dict[str, list[Place]]) -> Iterator[Found]:
        for page in pages(parts[0] for _, _, parts in sound.pop("task", [])):
            yield self._tasks(page)
        for page in pages((parts[0] for _, _, parts in sound.pop("history", [])), _HISTORIES):
            yield self._histories("", page)
        for kind, places in sound.items():
            if kind in self._walks:
                yield from (self._walks[kind](*place) for place in places)

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
        for task in filter(None, map(task_snapshot, rows)):
            self._count(task.id, facts_of(task))
            for violation in task_violations(self.shard, task, numbers):
                yield violation

    def _count(self, task_id: str, facts: dict[str, str]) -> None:
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
                    self.seen.twice.append((name, other, task_id))

    async def doubles(self) -> Found:
        """I8. Those who seemed to have the same number are looked at together."""
        for name, one, other in self.seen.twice:
            _, _, _, *rows = await self._store.run("audit_tasks", self.shard, one, other)
            tasks = [facts_of(task) for task in map(task_snapshot, rows) if task is not None]
            given = {task.get(name) for task in tasks}
            if len(tasks) == 2 and len(given) == 1 and None not in given:
                key, why = KEYS["task"].at(self.shard, other), "which of them it was given to is not known"
                yield Violation("I8", key, f"{name} {given.pop()}, as {one}", "a number of its own", why=why)

    # indexes of tasks

    async def _index(self, name: str, key: Key, parts: list[str]) -> Found:
        async for page in self._members(name):
            async for violation in self._named(name, key, parts, page):
                yield violation

    async def _named(self, name: str, key: Key, parts: Sequence[str], ids: Sequence[str]) -> Found:
        if ids:
            for row in await self._store.run("audit_index", self.shard, name, *ids):
                for violation in task_index_violations(name, key, parts, MemberSnapshot(*row)):
                    yield violation

    async def _due(self, name: str, key: Key, parts: list[str]) -> Found:
        async for page in self._members(name):
            orders = [member.split(":", 2) for member in page if member.startswith("order:")]
            tasks = [member for member in page if not member.startswith("order:")]
            async for violation in self._named(name, key, parts, tasks):
                yield violation
            async for violation in self._only_indexes("", [f"{sender}:{ns}" for _, ns, sender in orders]):
                yield violation

    async def _by(self, name: str, key: Key, parts: list[str]) -> Found:
        async for violation in self._index(name, key, parts):
            yield violation
        if parts[0] == "kind":
            async for violation in self._kinds_of([parts[1]]):
                yield violation

    async def _kinds(self, name: str, key: Key, parts: list[str]) -> Found:
        async for page in self._members(name):
            async for violation in self._kinds_of(page):
                yield violation

    async def _kinds_of(self, names: Sequence[str]) -> Found:
        for row in await self._store.run("audit_kinds", self.shard, *names):
            for violation in kind_violations(self.shard, *row):
                yield violation

    # lanes, offers, tenants

    async def _lane(self, name: str, key: Key, parts: list[str]) -> Found:
        is_new = name not in self.seen.lanes  # SCAN may bring a key twice
        self.seen.lanes.add(name)
        async for violation in self._lanes(parts[0], "", [parts[1]], counted=is_new):
            yield violation
        async for violation in self._index(name, key, parts):
            yield violation

    async def _lanes(self, tube: str, tenant: str, names: Sequence[str], *, counted: bool = False) -> Found:
        for page in pages(names):
            for row in await self._store.run("audit_lanes", self.shard, tube, tenant, *page):
                lane = LaneSnapshot(*row)
                if counted:
                    self.seen.recount.add(tube, "locked", lane.behind)
                for violation in lane_violations(self.shard, tube, tenant, lane):
                    yield violation

    async def _front(self, name: str, key: Key, parts: list[str]) -> Found:
        async for page in self._members(name, "HSCAN"):
            async for violation in self._lanes(parts[0], "", page):
                yield violation

    async def _ready(self, name: str, key: Key, parts: list[str]) -> Found:
        tube, tenant = parts
        async for violation in self._tenants(tube, [tenant]):
            yield violation
        async for page in self._members(name):
            lanes = [member[1:] for member in page if member.startswith("@")]
            async for violation in self._lanes(tube, tenant, lanes):
                yield violation
            async for violation in self._named(name, key, parts, [one for one in page if not one.startswith("@")]):
                yield violation

    async def _ring(self, name: str, key: Key, parts: list[str]) -> Found:
        async for page in self._members(name):
            async for violation in self._tenants(parts[0], page):
                yield violation

    async def _tenants(self, tube: str, tenants: Sequence[str]) -> Found:
        for row in await self._store.run("audit_tenants", self.shard, tube, *tenants):
            for violation in tenant_violations(self.shard, tube, TenantSnapshot(*row)):
                yield violation

    # deliveries

    async def _histories(self, tenant: str, suffixes: Sequence[str]) -> Found:
        now, rows = await self.contents.look(tenant, suffixes)
        for row in rows:
            self.seen.deliveries += 1
            found = list(history_index_laws(self.shard, tenant, row, now))
            found += await self._content(row)
            for violation in found:
                yield violation

    async def _content(self, row: HistorySnapshot) -> list[Violation]:
        read = await self.contents.read(row)
        if read is None:
            self.seen.unread += 1
            return []
        seen, content, legs = read
        found = list(delivery_violations(self.shard, seen, content, legs))
        untold = self._untold(seen.suffix, content.outcomes)
        if untold:
            await self.seen.told.catch_up()
            untold = self._untold(seen.suffix, content.outcomes)
        key, why = KEYS["outcomes"].at(self.shard, seen.suffix), "who listened then has gone on"
        return found + [
            Violation("I13", key, f"{name} is {text}", "told by an event", why=why) for name, text in untold
        ]

    def _untold(self, suffix: str, outcomes: dict[str, str]) -> list[tuple[str, str]]:
        told = self.seen.told
        return [
            (name, text)
            for name, text in outcomes.items()
            if not told.covers(suffix, version_of(text), int(text.split("|", 3)[2]))
        ]

    async def _only_indexes(self, tenant: str, suffixes: Sequence[str]) -> Found:
        for page in pages(suffixes):
            now, rows = await self.contents.look(tenant, page)
            for row in rows:
                for violation in history_index_laws(self.shard, tenant, row, now):
                    yield violation

    async def _listed(self, name: str, key: Key, parts: list[str]) -> Found:
        async for page in self._members(name):
            async for violation in self._only_indexes(parts[0], page):
                yield violation

    async def _retained(self, name: str, key: Key, parts: list[str]) -> Found:
        async for page in self._members(name):
            for member in page:
                tenant, _, suffix = member.partition("|")
                async for violation in self._only_indexes(tenant, [suffix]):
                    yield violation

    async def _belongings(self, name: str, key: Key, parts: list[str]) -> Found:
        async for violation in self._only_indexes("", parts):
            yield violation
