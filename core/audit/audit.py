"""The audit: proves the invariants on a live server, without stopping it, and mends what can be mended safely (K-44).

    Audit.find ─▶ Violation, … ─▶ Audit.mend(violation) ─▶ what was done

Nothing is read that takes the server long: pages of at most 500 keys or 100 tasks. What is compared is of one moment,
or was looked at twice; core/audit/conservation.py says how counting is exact while tasks flow. Redis does not show
I14 and I15
(they are about time: `./ada bench`, tests) and I17 (it is about what the provider's user got: the couriers' tests).

Before: an operator, `./ada audit`. After: lua/repair/*.lua, which look again before they write.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field

from core.audit.conservation import Counts, blindness, count_violations, numbers_of, recount_violations
from core.audit.invariant import Violation, taken_apart
from core.audit.scanner import Scanner
from core.errors import ScriptFault
from core.redis.keys import KEYS
from core.redis.store import Store

_KEYS = 500

# What Redis alone cannot show.
UNSEEN = {
    "I14": "that work and an idle courier meet in time: measured by ./ada bench, held by tests",
    "I15": "that each tenant gets its share over time: held by tests; the ring itself is I4",
    "I17": "that the provider's user got one message: no server of ours knows; held by the couriers' tests",
}


@dataclass(slots=True)
class Summary:
    """What was looked at. `unread`: deliveries that moved whenever they were looked at; `moving`: tubes whose count is
    exact but for so many tasks that were put or ended meanwhile.
    """

    keys: int = 0
    tasks: int = 0
    lanes: int = 0
    deliveries: int = 0
    events: int = 0
    unread: int = 0
    moving: dict[str, int] = field(default_factory=dict)


class Audit:
    """One look at a whole server."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._walks = [Scanner(store, shard) for shard in range(store.shards)]
        self._told: set[tuple[str, str, str]] = set()
        self.summary = Summary()

    async def find(self) -> AsyncIterator[Violation]:
        """Everything that is not as it must be, each once. Read-only."""
        async for violation in self._find():
            mark = (violation.rule, violation.key, violation.wanted)
            if mark not in self._told:
                self._told.add(mark)
                yield violation

    async def _find(self) -> AsyncIterator[Violation]:
        for walk in self._walks:
            async for violation in self._events(walk):
                yield violation
        before = [await self._counts(shard) for shard in range(self._store.shards)]
        async for violation in self._keys():
            yield violation
        after = [await self._counts(shard) for shard in range(self._store.shards)]
        for shard, walk in enumerate(self._walks):
            async for violation in walk.doubles():
                yield violation
            for violation in self._conservation(walk, before[shard], after[shard]):
                yield violation
            self._sum_up(walk)

    def _conservation(self, walk: Scanner, before: Counts | None, after: Counts | None) -> Iterator[Violation]:
        if before is None or after is None:
            return
        yield from count_violations(walk.shard, after)
        yield from recount_violations(walk.shard, before, after, walk.seen.recount)
        for tube, flow in blindness(before, after).items():
            self.summary.moving[tube] = self.summary.moving.get(tube, 0) + flow

    def _sum_up(self, walk: Scanner) -> None:
        seen, summary = walk.seen, self.summary
        summary.keys += seen.keys
        summary.tasks += len(seen.tasks)
        summary.lanes += len(seen.lanes)
        summary.deliveries += seen.deliveries
        summary.events += seen.told.entries
        summary.unread += seen.unread

    async def _counts(self, shard: int) -> Counts | None:
        """None: one of them is of another type, which the law of keys tells."""
        lease, buried = KEYS["lease"].at(shard), KEYS["buried"].at(shard)
        try:
            transitions, states, taken, held = await self._store.run("audit_counts", shard, lease, buried)
        except ScriptFault:
            return None
        return Counts(numbers_of(transitions), numbers_of(states), taken, held)

    async def _keys(self) -> AsyncIterator[Violation]:
        cursor = "0"
        while True:
            cursor, names = await self._store.command("SCAN", cursor, "COUNT", _KEYS)
            for shard, page in self._by_shard(names).items():
                try:
                    async for violation in self._walks[shard].page(page):
                        yield violation
                except ScriptFault as fault:
                    why = "what it held is not known"
                    yield Violation("I16", page[0], f"unreadable beside others: {fault}", "keys of their type", why=why)
            if str(cursor) == "0":
                return

    def _by_shard(self, names: Sequence[str]) -> dict[int, list[str]]:
        """Keys that are not ours are judged with the first shard's."""
        found = defaultdict(list)
        for name in names:
            apart = taken_apart(name)
            found[apart[1] if apart and apart[1] < len(self._walks) else 0].append(name)
        return found

    # events

    async def _events(self, walk: Scanner) -> AsyncIterator[Violation]:
        """I13. What the stream told is kept, as told or superseded."""
        try:
            async for changes in walk.seen.told.read_on():
                for suffix, recipient, channel, version in await walk.contents.lost(changes):
                    key, why = KEYS["outcomes"].at(walk.shard, suffix), "the event has only a part of it"
                    found, wanted = f"{recipient}:{channel} is not of version {version}", "what an event told, or later"
                    yield Violation("I13", key, found, wanted, why=why)
        except ScriptFault as fault:
            yield Violation(
                "I16", KEYS["events"].at(walk.shard), str(fault), "a stream", why="what it held is not known"
            )

    async def mend(self, violation: Violation) -> list[str]:
        """What was done; nothing if it was in order when looked at again, or nothing can be done safely."""
        if violation.mend is None:
            return []
        shard = self._shard_of(violation)
        return list(await self._store.run(violation.mend.script, shard, *violation.mend.arguments))

    @staticmethod
    def _shard_of(violation: Violation) -> int:
        apart = taken_apart(violation.key)
        return apart[1] if apart else 0
