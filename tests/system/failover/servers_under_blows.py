"""The servers of a proof: a replica set, or a cluster whose shards are spread over three primaries."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tests.support.cluster import Cluster
from tests.support.replica_set import ReplicaSet
from tests.support.replica_set.node import Program
from tests.system.failover.blows import Faults, OnPromotion
from tests.system.failover.cluster_blows import ClusterBlows
from tests.system.failover.replica_set_blows import ReplicaSetBlows
from tests.system.soak.nemesis import Log

SHARDS = 16


@dataclass(frozen=True)
class ServersUnderBlows:
    """`url`: what ADA_REDIS_URL gets. `one`: any of the servers. `blows`: makes those of a seed."""

    url: str
    one: Program
    shards: int
    primaries: int
    blows: Callable[[int, Log, OnPromotion], Faults]


def under_blows(servers: ReplicaSet | Cluster, frozen: Sequence[float] = ()) -> ServersUnderBlows:
    """`frozen`: the only freezes of a replica set, in seconds (`ReplicaSetBlows`)."""
    if isinstance(servers, Cluster):
        return ServersUnderBlows(servers.url, servers.nodes[0], SHARDS, 3, partial(ClusterBlows, servers, SHARDS))
    return ServersUnderBlows(servers.url, servers.primary, 1, 1, partial(ReplicaSetBlows, servers, frozen=frozen))
