"""Scans the directory: the entries of its keys in pages, each implication checked on one atomic read.

Called by core.audit.scanner; calls core.audit.invariants.directory. core.audit.jobs_scanner uses its parts.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import islice

from core.audit.invariants.directory import KINDS, Entries, Implication, implications, rule_of_ownership
from core.audit.invariants.invariant import Violation
from core.redis.keys import KEYS, Key
from core.redis.store import Store

# Implications of one function call: it takes the server less than a millisecond.
_PAGE = 100

ScanKey = Callable[[str, Key, Sequence[str]], Awaitable[list[Violation]]]
"""Checks a key, given its name, kind and parts."""


def directory_steps(store: Store, shard: int) -> Mapping[str, ScanKey]:
    """Return what checks a key of the directory, by its kind."""
    return dict.fromkeys(KINDS, DirectoryScanner(store, shard).scan)


class DirectoryScanner:
    """The directory of one shard."""

    def __init__(self, store: Store, shard: int) -> None:
        self._store = store
        self._shard = shard

    async def scan(self, name: str, key: Key, parts: Sequence[str]) -> list[Violation]:
        """Check all entries of one key."""
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
        cursor, flat = await store.command(command, name, cursor, "COUNT", _PAGE)
        yield list(zip(flat[::2], flat[1::2], strict=True))
        if str(cursor) == "0":
            return


async def check_implications(store: Store, shard: int, some: Iterable[Implication]) -> list[Violation]:
    """Check each on one atomic read."""
    found: list[Violation] = []
    rest = iter(some)
    while page := list(islice(rest, _PAGE)):
        words = [word for one in page for read in one.reads for word in read.words]
        values = iter(await store.run("audit_directory", shard, *words))
        checked = (one.violation([next(values) for _ in one.reads]) for one in page)
        found += [violation for violation in checked if violation]
    return found
