"""What happens to a primary: killed, frozen, promoted without its last writes; each time it returns."""

import asyncio
import os
import random
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from tests.support.replica_set.node import Program
from tests.system.soak.nemesis import Log, ShuffledCycle

_HELD = 0.5
"""Seconds for which no write reaches a replica, before the primary is killed."""

N = TypeVar("N", bound=Program)


@dataclass(frozen=True)
class Target(Generic[N]):
    """A primary that is struck, with its replicas and the shards that stand on it."""

    primary: N
    replicas: Sequence[N]
    shards: Collection[int]


@dataclass(frozen=True)
class Promotion:
    """`struck`: when the primary was lost; `at`: when there was a new one, both by time.time. `shards`: those on it.
    `load`: by how much everything takes longer: the processes that can run, for each processor, at least 1.
    """

    struck: float
    at: float
    shards: Collection[int]
    load: float = 1.0


OnPromotion = Callable[[Promotion], None]


class Faults(Protocol):
    """What is done to the servers of a proof. `counts`: how often each was."""

    counts: Counter[str]

    async def begin(self) -> None:
        """The first one, the same in each proof."""

    async def strike(self) -> None:
        """The next one; returns when everything runs."""


class Blows(ABC, Generic[N]):
    """`counts`: how often each was struck."""

    def __init__(self, seed: int, log: Log, on_promotion: OnPromotion) -> None:
        self.counts: Counter[str] = Counter()
        self._log = log
        self._chance = random.Random(seed)
        self._on_promotion = on_promotion
        self._cycle = ShuffledCycle((self._kill, self._freeze, self._lose_last_writes, *self._others()), self._chance)

    async def strike(self) -> None:
        """One blow; returns when everything runs again and all replicas follow. Raises TimeoutError if no replica was
        promoted, after the repair.
        """
        try:
            await self._cycle.next()()
        finally:
            await asyncio.to_thread(self._repair)

    async def begin(self) -> None:
        """The worst one, then the repair."""
        await self._lose_last_writes()
        await asyncio.to_thread(self._repair)

    @abstractmethod
    def _others(self) -> Sequence[Callable[[], Awaitable[None]]]:
        """Return the blows that only these servers know."""

    @abstractmethod
    def _choose(self) -> Target[N]:
        """Return the primary to strike."""

    @abstractmethod
    def _hold_replication(self, target: Target[N]) -> None:
        """Freeze the replicas: no write reaches one of them from now on."""

    @abstractmethod
    def _await_promotion(self, target: Target[N]) -> str:
        """Return as soon as there is a new primary; the text names what it lacks."""

    @abstractmethod
    def _repair(self) -> None:
        """Let everything run; the replicas catch up."""

    async def _kill(self) -> None:
        target = self._target("kill")
        target.primary.kill()
        await self._promotion(target)

    async def _freeze(self) -> None:
        target = self._target("freeze")
        target.primary.freeze()
        await self._promotion(target)

    async def _lose_last_writes(self) -> None:
        target = self._target("promote without the last writes")
        self._hold_replication(target)
        await asyncio.sleep(_HELD)
        target.primary.kill()
        for replica in target.replicas:
            replica.resume()
        await self._promotion(target)

    def _target(self, blow: str) -> Target[N]:
        self._count(blow)
        return self._choose()

    def _count(self, blow: str) -> None:
        self.counts[blow] += 1
        self._log(blow)

    async def _promotion(self, target: Target[N]) -> None:
        struck = time.time()
        lack = await asyncio.to_thread(self._await_promotion, target)
        self._on_promotion(Promotion(struck, time.time(), target.shards, _load()))
        self._log(f"promoted after {time.time() - struck:.1f} s{lack}")


def _load() -> float:
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
