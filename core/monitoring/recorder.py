"""Takes a sample of all counters every ten seconds. It runs beside the API; of several processes one takes each sample.

While no process runs no sample is taken: the figures have a gap there.
"""

import asyncio
import logging
import time

from core.errors import StoreError
from core.monitoring.samples import Samples, SampleStep
from core.queue import Queue
from core.redis.store import Store

log = logging.getLogger(__name__)


class Recorder:
    """One per process."""

    def __init__(self, store: Store, queue: Queue) -> None:
        self._store = store
        self._samples = Samples(store, queue)

    async def run(self) -> None:
        """Record until cancelled. While the server is away nothing is recorded."""
        while True:
            await asyncio.sleep(SampleStep.FINE - self._now_ms() / 1000 % SampleStep.FINE)
            try:
                await self.record(self._now_ms())
            except StoreError as fault:
                log.warning("no figures are recorded: %s", fault)

    async def record(self, at: int) -> list[SampleStep]:
        """Take the samples of this moment, unless another process has. Returns the steps that were recorded."""
        steps = [step for step in SampleStep if await self._samples.has_turn(step, at)]
        if steps:
            sample = await self._samples.take(at)
            for step in steps:
                await self._samples.save(step, sample)
        return steps

    def _now_ms(self) -> int:
        return int(time.time() * 1000) + self._store.clock_offset_ms
