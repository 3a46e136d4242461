"""Proves the invariants on a live server without stopping it, and repairs what can be repaired safely (K-44).

    Audit.find ─▶ Violation, … ─▶ Audit.repair(violation) ─▶ what was changed

No step takes the server long: pages of at most 500 keys or 100 tasks. A verdict rests on one atomic read, or on two
equal ones; core/audit/invariants/conservation.py explains how counting is exact while tasks flow.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from core.audit.invariants.conservation import Counts, count_violations, numbers_of, recount_violations, uncertainty
from core.audit.invariants.invariant import Violation, parse_key
from core.audit.scanner import Scanner
from core.errors import FunctionFault
from core.redis.keys import KEYS
from core.redis.store import Store

_KEYS = 500

UNSEEN = {
    "I14": "that takeable work and an idle courier meet in time: measured by ./ada bench, checked by tests",
    "I15": "that each tenant gets its share over time: checked by tests; the ring itself is I4",
    "I17": "that the provider's user got one message: no server of Ada has this fact; checked by the couriers' tests",
}
"""Invariants that the data in Redis cannot show."""


@dataclass(slots=True)
class Summary:
    """The counts of a whole audit. `unread`: deliveries that changed during every read. `moving`: tubes that changed
    while they were counted; their count is exact except for this number of tasks.
    """

    keys: int = 0
    tasks: int = 0
    lanes: int = 0
    deliveries: int = 0
    events: int = 0
    unread: int = 0
    moving: dict[str, int] = field(default_factory=dict)


class Progress(NamedTuple):
    """The progress of a running audit. `all_keys`: the keys of the server now."""

    keys: int
    all_keys: int
    tasks: int
    deliveries: int


class Audit:
    """One pass over a whole server."""

    def __init__(self, store: Store) -> None:
        self._store = store
        placed: dict[str, str] = {}
        self._scanners = [Scanner(store, shard, placed) for shard in range(store.shards)]
        self._reported: set[tuple[str, str, str]] = set()
        self.summary = Summary()

    async def find(self) -> AsyncIterator[Violation]:
        """Yield every violation once. Read-only."""
        async for violation in self._find():
            mark = (violation.rule, violation.key, violation.wanted)
            if mark not in self._reported:
                self._reported.add(mark)
                yield violation

    async def _find(self) -> AsyncIterator[Violation]:
        for scanner in self._scanners:
            async for violation in self._events(scanner):
                yield violation
        before = [await self._counts(shard) for shard in range(self._store.shards)]
        async for violation in self._keys():
            yield violation
        after = [await self._counts(shard) for shard in range(self._store.shards)]
        for shard, scanner in enumerate(self._scanners):
            async for violation in self._indexes(scanner):
                yield violation
            async for violation in scanner.duplicate_numbers():
                yield violation
            for violation in self._conservation(scanner, before[shard], after[shard]):
                yield violation
            self._sum_up(scanner)

    async def progress(self) -> Progress:
        """Return how far `find` has come."""
        seen = [scanner.seen for scanner in self._scanners]
        return Progress(
            sum(one.keys for one in seen),
            sum(map(int, (await self._store.command_everywhere("DBSIZE")).values())),
            sum(len(one.tasks) for one in seen),
            sum(len(one.deliveries) for one in seen),
        )

    def _conservation(self, scanner: Scanner, before: Counts | None, after: Counts | None) -> Iterator[Violation]:
        if before is None or after is None:
            return
        yield from count_violations(scanner.shard, after)
        yield from recount_violations(scanner.shard, before, after, scanner.seen.recount)
        for tube, flow in uncertainty(before, after).items():
            self.summary.moving[tube] = self.summary.moving.get(tube, 0) + flow

    def _sum_up(self, scanner: Scanner) -> None:
        seen, summary = scanner.seen, self.summary
        summary.keys += seen.keys
        summary.tasks += len(seen.tasks)
        summary.lanes += len(seen.lanes)
        summary.deliveries += len(seen.deliveries)
        summary.events += seen.events.entries
        summary.unread += seen.unread

    async def _counts(self, shard: int) -> Counts | None:
        """Return the counts; None if one of the keys has another type, which is a violation of its own."""
        lease, buried = KEYS["lease"].at(shard), KEYS["buried"].at(shard)
        try:
            transitions, states, leases, graves = await self._store.run("audit_counts", shard, lease, buried)
        except FunctionFault:
            return None
        return Counts(numbers_of(transitions), numbers_of(states), leases, graves)

    async def _keys(self) -> AsyncIterator[Violation]:
        for homes in self._store.shard_map.primaries().values():
            async for violation in self._keys_of(homes[0]):
                yield violation

    async def _keys_of(self, home: int) -> AsyncIterator[Violation]:
        """Yield the violations in the keys of a primary. `home`: one that it has."""
        cursor = "0"
        while True:
            cursor, names = await self._store.command_at(home, "SCAN", cursor, "COUNT", _KEYS)
            for shard, page in self._by_shard(names).items():
                try:
                    async for violation in self._scanners[shard].page(page, home):
                        yield violation
                except FunctionFault as fault:
                    yield _unreadable(page[0], fault)
            if str(cursor) == "0":
                return

    async def _indexes(self, scanner: Scanner) -> AsyncIterator[Violation]:
        try:
            async for violation in scanner.indexes():
                yield violation
        except FunctionFault as fault:
            yield _unreadable(KEYS["due"].at(scanner.shard), fault)

    def _by_shard(self, names: Sequence[str]) -> dict[int, list[str]]:
        """Return the keys by their shard; keys that are not Ada's go to the first shard."""
        found = defaultdict(list)
        for name in names:
            parsed = parse_key(name)
            found[parsed[1] if parsed and parsed[1] < len(self._scanners) else 0].append(name)
        return found

    async def _events(self, scanner: Scanner) -> AsyncIterator[Violation]:
        """Yield the violations of I13: an outcome in the event log is in its history, or a later one is."""
        try:
            async for changes in scanner.seen.events.read_on():
                for suffix, recipient, channel, version in await scanner.snapshots.lost(changes):
                    key, why = KEYS["outcomes"].at(scanner.shard, suffix), "the event has only a part of the outcome"
                    found, wanted = (
                        f"{recipient}:{channel} is not of version {version}",
                        "the version of its event, or later",
                    )
                    yield Violation("I13", key, found, wanted, why=why)
        except FunctionFault as fault:
            key, why = KEYS["events"].at(scanner.shard), "its former content is unknown"
            yield Violation("I16", key, str(fault), "a stream", why=why)

    async def repair(self, violation: Violation) -> list[str]:
        """Repair a violation. Returns one line for each change; none if the key is right by now or cannot be repaired
        safely.
        """
        if violation.repair is None:
            return []
        parsed = parse_key(violation.key)
        shard = parsed[1] if parsed else 0
        return list(await self._store.run(violation.repair.script, shard, *violation.repair.arguments))


def _unreadable(key: str, fault: FunctionFault) -> Violation:
    found, why = f"unreadable beside others: {fault}", "its former content is unknown"
    return Violation("I16", key, found, "keys of their type", why=why)
