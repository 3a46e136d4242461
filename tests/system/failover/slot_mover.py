"""Moves the slots of all shards from primary to primary, as fast as one node after another gives them away."""

import asyncio
import random
import time

from tests.support.cluster import Cluster


class SlotMover:
    """`moves`: how many slots have moved, in `seconds`."""

    def __init__(self, cluster: Cluster, shards: int, seed: int) -> None:
        self._cluster = cluster
        self._shards = range(shards)
        self._chance = random.Random(seed)
        self.moves = 0
        self.seconds = 0.0

    async def move(self, count: int) -> None:
        """Move at least so many slots."""
        last = self.moves + count
        while self.moves < last:
            began = time.monotonic()
            await asyncio.to_thread(self._move_all)
            self.moves += len(self._shards)
            self.seconds += time.monotonic() - began

    def _move_all(self) -> None:
        owners = self._cluster.owners([str(shard) for shard in self._shards])
        primaries = [node for node in self._cluster.nodes if node.is_primary]
        others = [[node for node in primaries if node is not owner] for owner in owners]
        self._cluster.move_all({shard: self._chance.choice(others[shard]) for shard in self._shards})
