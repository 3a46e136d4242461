"""What happens to the primary: killed, frozen, cut off, promoted without its last writes; each time it returns."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable

from tests.support.replica_set import Node, ReplicaSet
from tests.system.soak.nemesis import Log, ShuffledCycle

_HELD = 0.5
"""Seconds for which no write reaches a replica, before the primary is killed."""

OnPromotion = Callable[[float], None]
"""Gets the moment of a promotion, by time.time."""


class Blows:
    """`counts`: how often each was struck."""

    def __init__(self, servers: ReplicaSet, seed: int, log: Log, on_promotion: OnPromotion) -> None:
        self.counts: Counter[str] = Counter()
        self._servers = servers
        self._log = log
        self._on_promotion = on_promotion
        blows = (self._kill, self._freeze, self._cut_off, self._lose_last_writes, self._kill_replica_and_sentinel)
        self._cycle = ShuffledCycle(blows, random.Random(seed))

    async def strike(self) -> None:
        """One blow; returns when everything runs again and two replicas follow the primary."""
        await self._cycle.next()()
        await asyncio.to_thread(self._servers.repair)

    async def lose_last_writes(self) -> None:
        """The worst one, then the repair."""
        await self._lose_last_writes()
        await asyncio.to_thread(self._servers.repair)

    async def _kill(self) -> None:
        old = self._primary("kill")
        old.kill()
        await self._promotion(old)

    async def _freeze(self) -> None:
        old = self._primary("freeze")
        old.freeze()
        await self._promotion(old)

    async def _cut_off(self) -> None:
        old = self._primary("cut off")
        self._servers.cut_off(old)
        await self._promotion(old)

    async def _lose_last_writes(self) -> None:
        old = self._primary("promote without the last writes")
        replicas = self._servers.replicas
        self._servers.hold_replication()
        await asyncio.sleep(_HELD)
        old.kill()
        for replica in replicas:
            replica.resume()
        await self._promotion(old)

    async def _kill_replica_and_sentinel(self) -> None:
        self.counts["kill a replica and a Sentinel"] += 1
        self._log("kill a replica and a Sentinel")
        self._servers.replicas[0].kill()
        self._servers.sentinels[0].kill()

    def _primary(self, blow: str) -> Node:
        self.counts[blow] += 1
        self._log(blow)
        return self._servers.primary

    async def _promotion(self, old: Node) -> None:
        began = time.monotonic()
        most = await asyncio.to_thread(lambda: max(node.offset for node in self._servers.nodes if node is not old))
        new = await asyncio.to_thread(self._servers.await_promotion, old)
        self._on_promotion(time.time())
        missing = most + 1 - int(new.facts().get("second_repl_offset", 0))
        behind = f", {missing} bytes behind the other replica" if missing > 0 else ""
        self._log(f"promoted after {time.monotonic() - began:.1f} s{behind}")
