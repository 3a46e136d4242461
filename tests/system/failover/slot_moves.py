"""Slots that move from primary to primary, in place of blows."""

from collections import Counter

from tests.support.cluster import Cluster
from tests.system.failover.blows import OnPromotion
from tests.system.failover.slot_mover import SlotMover
from tests.system.soak.nemesis import Log

_MOVES = 160


class SlotMoves:
    """`counts`: how many slots have moved."""

    def __init__(self, cluster: Cluster, shards: int, seed: int, log: Log, _: OnPromotion) -> None:
        self.counts: Counter[str] = Counter()
        self._mover = SlotMover(cluster, shards, seed)
        self._log = log

    async def begin(self) -> None:
        await self.strike()

    async def strike(self) -> None:
        """Move each slot some times."""
        await self._mover.move(_MOVES)
        self.counts["slot moves"] = self._mover.moves
        self._log(f"{self._mover.moves} slots have moved, {self._mover.moves / self._mover.seconds:.0f} a second")
