"""The blows at a primary with two replicas and three Sentinels: it is also cut off, and a Sentinel is killed. Where the
Sentinels have their default periods it is frozen for 2 to 5 s, and wakes before, while or after it is replaced.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from tests.support.replica_set import Node, ReplicaSet
from tests.system.failover.blows import Blows, OnPromotion, Target
from tests.system.soak.nemesis import Log, ShuffledCycle

_FROZEN = 2.0, 5.0
_SETTLED = 4.0
"""Seconds after which a promotion that was underway is over."""


class ReplicaSetBlows(Blows[Node]):
    """`frozen`: the only blows are freezes of so many seconds, each once in random order."""

    def __init__(
        self, servers: ReplicaSet, seed: int, log: Log, on_promotion: OnPromotion, frozen: Sequence[float] = ()
    ) -> None:
        self._servers = servers
        super().__init__(seed, log, on_promotion)
        if frozen:
            self._cycle = ShuffledCycle([partial(self._freeze_and_wake, seconds) for seconds in frozen], self._chance)

    def _others(self) -> Sequence[Callable[[], Awaitable[None]]]:
        usual = (self._freeze_and_wake,) if self._servers.is_usual else ()
        return self._cut_off, self._kill_replica_and_sentinel, *usual

    def _choose(self) -> Target[Node]:
        return Target(self._servers.primary, self._servers.replicas, {0})

    def _hold_replication(self, target: Target[Node]) -> None:
        self._servers.hold_replication()

    def _await_promotion(self, target: Target[Node]) -> str:
        most = max(node.offset for node in self._servers.nodes if node is not target.primary)
        before = self._servers.delays
        new = self._servers.await_promotion(target.primary)
        missing = most + 1 - int(new.facts().get("second_repl_offset", 0))
        behind = f", {missing} bytes behind the other replica" if missing > 0 else ""
        return behind + "".join(f", {delay}" for delay in self._servers.delays - before)

    def _repair(self) -> None:
        self._servers.repair()

    async def _cut_off(self) -> None:
        target = self._target("cut off")
        self._servers.cut_off(target.primary)
        await self._promotion(target)

    async def _freeze_and_wake(self, seconds: float = 0) -> None:
        seconds = seconds or self._chance.uniform(*_FROZEN)
        target = self._target("freeze and wake")
        self._log(f"  after {seconds:.2f} s")
        target.primary.freeze()
        await asyncio.sleep(seconds)
        target.primary.resume()
        await asyncio.sleep(_SETTLED)

    async def _kill_replica_and_sentinel(self) -> None:
        self._count("kill a replica and a Sentinel")
        self._servers.replicas[0].kill()
        self._servers.sentinels[0].kill()
