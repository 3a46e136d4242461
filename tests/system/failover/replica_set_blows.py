"""The blows at a primary with two replicas and three Sentinels: it is also cut off, and a Sentinel is killed."""

from collections.abc import Awaitable, Callable, Sequence

from tests.support.replica_set import Node, ReplicaSet
from tests.system.failover.blows import Blows, OnPromotion, Target
from tests.system.soak.nemesis import Log


class ReplicaSetBlows(Blows[Node]):
    def __init__(self, servers: ReplicaSet, seed: int, log: Log, on_promotion: OnPromotion) -> None:
        super().__init__(seed, log, on_promotion)
        self._servers = servers

    def _others(self) -> Sequence[Callable[[], Awaitable[None]]]:
        return self._cut_off, self._kill_replica_and_sentinel

    def _choose(self) -> Target[Node]:
        return Target(self._servers.primary, self._servers.replicas, {0})

    def _hold_replication(self, target: Target[Node]) -> None:
        self._servers.hold_replication()

    def _await_promotion(self, target: Target[Node]) -> str:
        most = max(node.offset for node in self._servers.nodes if node is not target.primary)
        new = self._servers.await_promotion(target.primary)
        missing = most + 1 - int(new.facts().get("second_repl_offset", 0))
        return f", {missing} bytes behind the other replica" if missing > 0 else ""

    def _repair(self) -> None:
        self._servers.repair()

    async def _cut_off(self) -> None:
        target = self._target("cut off")
        self._servers.cut_off(target.primary)
        await self._promotion(target)

    async def _kill_replica_and_sentinel(self) -> None:
        self._count("kill a replica and a Sentinel")
        self._servers.replicas[0].kill()
        self._servers.sentinels[0].kill()
