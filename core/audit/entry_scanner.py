"""Scans keys entry by entry, in pages: the directory, jobs, and what is left of tasks that are gone (I5, I16); the
record of one shard that a scan makes.

What an entry implies is checked on one atomic read. Called by core.audit.scanner.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

from core.audit.delivery_snapshot import EventLog
from core.audit.invariants.conservation import Recount
from core.audit.invariants.directory import DIRECTORY_KINDS, Entries, Implication, implications, rule_of_ownership
from core.audit.invariants.invariant import Repair, Violation
from core.audit.invariants.jobs import JOB_KINDS, JobStanding, Standings, count_violations, job_implications, record_of
from core.audit.invariants.threads import ThreadSnapshot, thread_violations, twice_violation
from core.redis.keys import KEYS, Key
from core.redis.store import BEGIN, Store, page_by_score

T = TypeVar("T")
PAGE = 100
"""Items of one function call: it blocks the server for about a millisecond."""


@dataclass(slots=True)
class SeenTasks:
    """The findings of a scan in one shard. `numbers`: (order or token, number) → the task that has it. `duplicates`:
    two tasks that have one number. `deliveries`: suffix → tenant. `broken`: tasks and deliveries that violate an
    invariant of indexes. `unread`: deliveries that changed during every read.
    """

    events: EventLog
    keys: int = 0
    tasks: set[str] = field(default_factory=set)
    lanes: set[str] = field(default_factory=set)
    deliveries: dict[str, str] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    unread: int = 0
    recount: Recount = field(default_factory=Recount)
    numbers: dict[tuple[str, str], str] = field(default_factory=dict)
    duplicates: list[tuple[str, str, str]] = field(default_factory=list)


def pages(items: Iterable[T], size: int = PAGE) -> Iterator[list[T]]:
    rest = iter(items)
    while page := list(islice(rest, size)):
        yield page


ScanKey = Callable[[str, Key, Sequence[str]], Awaitable[list[Violation]]]
"""Checks a key, given its name, kind and parts."""


def directory_steps(store: Store, shard: int) -> Mapping[str, ScanKey]:
    """Return the check of each kind of key of the directory."""
    return dict.fromkeys(DIRECTORY_KINDS, DirectoryScanner(store, shard).scan)


class DirectoryScanner:
    """The directory of one shard."""

    def __init__(self, store: Store, shard: int) -> None:
        self._store = store
        self._shard = shard

    async def scan(self, name: str, key: Key, parts: Sequence[str]) -> list[Violation]:
        found: list[Violation] = []
        async for entries in entries_of(self._store, name, key):
            found += await self._check(implications(key.name, self._shard, parts, entries))
            if key.name == "owned":
                found += await self._check_rule(parts[0], parts[1], entries)
        return found

    async def _check_rule(self, tenant: str, user: str, entries: Entries) -> list[Violation]:
        found: list[Violation] = []
        for owned, _ in entries:
            kind, _, supergroup = owned.partition(":")
            if kind == "supergroup":
                members = KEYS["members"].at(self._shard, tenant, "supergroup", supergroup)
                groups = await self._store.command("ZRANGE", members, 0, -1)
                found += await self._check(rule_of_ownership(self._shard, tenant, user, supergroup, groups))
        return found

    async def _check(self, some: Iterable[Implication]) -> list[Violation]:
        return await check_implications(self._store, self._shard, some)


async def entries_of(store: Store, name: str, key: Key) -> AsyncIterator[Entries]:
    """Emit the entries of a hash or a sorted set, in pages."""
    cursor, command = "0", "HSCAN" if key.type == "hash" else "ZSCAN"
    while True:
        cursor, flat = await store.command(command, name, cursor, "COUNT", PAGE)
        yield list(zip(flat[::2], flat[1::2], strict=True))
        if str(cursor) == "0":
            return


async def check_implications(store: Store, shard: int, some: Iterable[Implication]) -> list[Violation]:
    """Check implications, each on one atomic read."""
    found: list[Violation] = []
    for page in pages(some):
        words = [word for one in page for read in one.reads for word in read.words]
        values = iter(await store.run("audit_directory", shard, *words))
        checked = (one.violation([next(values) for _ in one.reads]) for one in page)
        found += [violation for violation in checked if violation]
    return found


def jobs_steps(store: Store, shard: int) -> Mapping[str, ScanKey]:
    """Return the check of each kind of key of jobs."""
    scanner = JobsScanner(store, shard)
    return {**dict.fromkeys(JOB_KINDS, scanner.scan), "job_counts": scanner.scan_counts}


class JobsScanner:
    """The jobs of one shard."""

    def __init__(self, store: Store, shard: int) -> None:
        self._store = store
        self._shard = shard

    async def scan(self, name: str, key: Key, parts: Sequence[str]) -> list[Violation]:
        found: list[Violation] = []
        async for entries in entries_of(self._store, name, key):
            implied = job_implications(key.name, self._shard, parts, entries)
            found += await check_implications(self._store, self._shard, implied)
        return found

    async def scan_counts(self, name: str, key: Key, parts: Sequence[str]) -> list[Violation]:
        """Compare the counts by state of a tenant with its jobs."""
        (tenant,) = parts
        before = await self._standings(tenant)
        stored = await self._store.command("HGETALL", name)
        after = await self._standings(tenant)
        return list(count_violations(self._shard, tenant, stored, before, after))

    async def _standings(self, tenant: str) -> Standings:
        listed, found = KEYS["jobs"].at(self._shard, tenant), dict[str, JobStanding]()
        after = BEGIN
        while page := await page_by_score(self._store, listed, after, PAGE):
            jobs = [job for job, _ in page]
            words = [word for job in jobs for word in ("HGET", KEYS["job"].at(self._shard, job), "record")]
            records = map(record_of, await self._store.run("audit_directory", self._shard, *words))
            found |= {
                job: JobStanding(record.generation, record.state)
                for job, record in zip(jobs, records, strict=True)
                if record is not None
            }
            after = page[-1][1]
        return found


def thread_steps(store: Store, placed: dict[str, str]) -> Mapping[str, ScanKey]:
    """Return the check of threads. `placed`: event → its thread, of all shards."""

    async def scan(name: str, key: Key, parts: Sequence[str]) -> list[Violation]:
        (thread,) = parts
        seen = ThreadSnapshot.read(await store.run("audit_thread", int(thread.partition(".")[0]), thread))
        if seen is None:
            return []
        found = list(thread_violations(name, seen))
        for event in seen.events:
            other = placed.setdefault(event, thread)
            if other != thread and await _still_has(store, other, event):
                found.append(twice_violation(event, thread, other))
        return found

    return {"thread": scan}


async def _still_has(store: Store, thread: str, event: str) -> bool:
    key = KEYS["thread"].at(int(thread.partition(".")[0]), thread)
    return bool(await store.command("HEXISTS", key, f"event:{event}"))


def orphan_steps(store: Store, shard: int, scanned: SeenTasks) -> Mapping[str, ScanKey]:
    """Return the checks of the keys of taken tasks and of progress."""

    async def taken(name: str, key: Key, parts: Sequence[str]) -> list[Violation]:
        found: list[Violation] = []
        async for entries in entries_of(store, name, key):
            found += await orphaned("I5", name, key, [task_id for task_id, _ in entries])
        return found

    async def progress(name: str, key: Key, parts: Sequence[str]) -> list[Violation]:
        return await orphaned("I16", name, key, parts)

    async def orphaned(rule: str, name: str, key: Key, ids: Sequence[str]) -> list[Violation]:
        """Return the violations of keys without a task. A key that was read with its task is not read again."""
        unread = [task_id for task_id in ids if task_id not in scanned.tasks]
        orphans = await store.run("audit_orphans", shard, key.name, *unread) if unread else []
        return [
            Violation(rule, name, f"of {orphan}, which is gone", "of a task", Repair("repair_orphan", (orphan,)))
            for orphan in orphans
        ]

    return {"taken": taken, "progress": progress}
