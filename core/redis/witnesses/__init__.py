"""Who takes part in every promotion, and says that none has begun: the Sentinels, or the other primaries of a cluster.

Asked by `core.redis.pipelines.replicated_pipeline` before it acknowledges anything (docs/decisions/0157).
"""

from core.redis.cluster import ShardMap
from core.redis.witnesses.cluster_witnesses import ClusterWitnesses
from core.redis.witnesses.sentinel_witnesses import SentinelWitnesses
from core.redis.witnesses.witness import Witnesses

__all__ = ["Witnesses", "witnesses_of"]


def witnesses_of(shard_map: ShardMap) -> Witnesses | None:
    """Return the witnesses of an address; None for a single server: what promotes its replicas is unknown."""
    if shard_map.cluster:
        return ClusterWitnesses(shard_map)
    sentinels = shard_map.of(0).sentinels
    return SentinelWitnesses(sentinels) if sentinels else None
