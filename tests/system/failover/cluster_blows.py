"""The blows at a cluster: each strikes one primary, or one replica."""

from collections.abc import Awaitable, Callable, Sequence

from tests.support.cluster import Cluster, ClusterNode
from tests.system.failover.blows import Blows, OnPromotion, Target
from tests.system.soak.nemesis import Log


class ClusterBlows(Blows[ClusterNode]):
    def __init__(self, cluster: Cluster, shards: int, seed: int, log: Log, on_promotion: OnPromotion) -> None:
        super().__init__(seed, log, on_promotion)
        self._cluster = cluster
        self._shards = range(shards)

    def _others(self) -> Sequence[Callable[[], Awaitable[None]]]:
        return (self._kill_replica,)

    def _choose(self) -> Target[ClusterNode]:
        owners = self._cluster.owners([str(shard) for shard in self._shards])
        primary = self._chance.choice(sorted(set(owners), key=self._cluster.nodes.index))
        shards = {shard for shard, owner in zip(self._shards, owners, strict=True) if owner is primary}
        self._log(f"  node {self._cluster.nodes.index(primary)} with shards {sorted(shards)}")
        return Target(primary, self._cluster.replicas_of(primary), shards)

    def _hold_replication(self, target: Target[ClusterNode]) -> None:
        self._cluster.hold_replication(target.primary, target.replicas)

    def _await_promotion(self, target: Target[ClusterNode]) -> str:
        most = max(replica.offset for replica in target.replicas)
        new = self._cluster.await_promotion(target.replicas)
        missing = most - new.began_at
        return f", {missing} bytes behind another replica" if missing > 0 else ""

    def _repair(self) -> None:
        self._cluster.repair()

    async def _kill_replica(self) -> None:
        target = self._target("kill a replica")
        target.replicas[0].kill()
