"""Buried tasks in groups of one tube, kind and error, as operators see, kick and drop them.

Only what was buried by a given moment is touched, and at most as many tasks as the operator has seen; a call changes a
bounded number and returns how many are left. The groups are kept by `lua/queue/modules/dead_letters.lua`.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence

from msgspec import Struct

from core.redis.keys import KEYS
from core.redis.store import Store

# Tasks that one call changes; each is a step of its own, so other commands run in between.
_STEP = 500
_GROUPS = 200


class DeadLetterGroup(Struct, frozen=True):
    """Buried tasks with one tube, kind and error. `size`: how many. `since`: the ms of the first burial."""

    tube: str
    kind: str
    error: str
    size: int
    since: int

    @property
    def name(self) -> str:
        return "\t".join((self.tube, self.kind, self.error))


class ChangedLetters(Struct, frozen=True):
    """`changed`: tasks kicked or dropped by this call. `left`: of those that were to be changed."""

    changed: int
    left: int


class DeadLetters:
    """One per process."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def groups(self) -> list[DeadLetterGroup]:
        """Return the 200 largest groups of each shard, the largest first."""
        sizes: dict[str, int] = defaultdict(int)
        for shard in range(self._store.shards):
            key = KEYS["dead_letters"].at(shard)
            for name, size in await self._store.command("ZRANGE", key, 0, _GROUPS - 1, "REV", "WITHSCORES"):
                sizes[name] += int(size)
        names = sorted(sizes, key=lambda name: (-sizes[name], name))
        since = await asyncio.gather(*(self._since(name) for name in names))
        return [_group(name, sizes[name], at) for name, at in zip(names, since, strict=True)]

    async def _since(self, name: str) -> int:
        keys = [KEYS["dead_letter"].at(shard, name) for shard in range(self._store.shards)]
        heads = [await self._store.command("ZRANGE", key, 0, 0, "WITHSCORES") for key in keys]
        return min((int(head[0][1]) for head in heads if head), default=0)

    async def kick(self, group: str, before: int, expected: int) -> ChangedLetters:
        """Make tasks of a group ready again: those buried by `before` ms, at most `expected`."""
        return await self._change(group, before, expected, "kick")

    async def drop(self, group: str, before: int, expected: int) -> ChangedLetters:
        """Cancel tasks of a group: those buried by `before` ms, at most `expected`."""
        return await self._change(group, before, expected, "cancel_tasks")

    async def _change(self, group: str, before: int, expected: int, function: str) -> ChangedLetters:
        changed = there = 0
        for shard in range(self._store.shards):
            key = KEYS["dead_letter"].at(shard, group)
            names: Sequence[str] = await self._store.command(
                "ZRANGEBYSCORE", key, "-inf", before, "LIMIT", 0, max(0, min(_STEP, expected) - changed)
            )
            await asyncio.gather(*(self._store.run(function, shard, name) for name in names))
            changed += len(names)
            there += int(await self._store.command("ZCOUNT", key, "-inf", before))
        return ChangedLetters(changed, min(there, expected - changed))


def _group(name: str, size: int, since: int) -> DeadLetterGroup:
    tube, kind, error = name.split("\t", 2)
    return DeadLetterGroup(tube, kind, error, size, since)
