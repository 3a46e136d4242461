"""Several primaries: the URL of a cluster, what its nodes say, and which primary has which shard.

A single server, or the primary that Sentinels name, is a cluster with one primary that has every shard.
"""

from core.redis.cluster.shard_map import ShardMap

__all__ = ["ShardMap"]
