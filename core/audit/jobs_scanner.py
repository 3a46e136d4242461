"""Scans jobs: their records and indexes in pages, and their counts. Called by core.audit.scanner."""

from collections.abc import Mapping, Sequence

from core.audit.directory_scanner import ScanKey, check_implications, entries_of
from core.audit.invariants.invariant import Violation
from core.audit.invariants.jobs import KINDS, JobStanding, Standings, count_violations, job_implications, record_of
from core.redis.keys import KEYS, Key
from core.redis.store import Store

_PAGE = 100


def jobs_steps(store: Store, shard: int) -> Mapping[str, ScanKey]:
    """Return what checks a key of jobs, by its kind."""
    scanner = JobsScanner(store, shard)
    return {**dict.fromkeys(KINDS, scanner.scan), "job_counts": scanner.scan_counts}


class JobsScanner:
    """The jobs of one shard."""

    def __init__(self, store: Store, shard: int) -> None:
        self._store = store
        self._shard = shard

    async def scan(self, name: str, key: Key, parts: Sequence[str]) -> list[Violation]:
        """Check all entries of one key."""
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
        start = 0
        while jobs := await self._store.command("ZRANGE", listed, start, start + _PAGE - 1):
            words = [word for job in jobs for word in ("HGET", KEYS["job"].at(self._shard, job), "record")]
            records = map(record_of, await self._store.run("audit_directory", self._shard, *words))
            found |= {
                job: JobStanding(record.generation, record.state)
                for job, record in zip(jobs, records, strict=True)
                if record is not None
            }
            start += _PAGE
        return found
