"""The jobs that a bot starts in its tests and in `chat`: those of packages and of ADA_JOBS (C-110)."""

import os
from collections.abc import Collection, Mapping
from typing import Any

from core.queue import Worker
from core.services import Services
from jobs.external_services import Outside
from jobs.registry import Registry, installed
from jobs.worker import JobWorker


class PlayedJobs:
    """Jobs that work by the clock of a test. `kinds`: their names."""

    def __init__(self, registry: Registry) -> None:
        self.kinds: Collection[str] = registry.kinds
        self._registry = registry

    @classmethod
    def of_environment(cls) -> "PlayedJobs":
        """Return those of packages and of ADA_JOBS. Raises SetupError."""
        return cls(installed(os.environ.get("ADA_JOBS", "").replace(",", " ").split()))

    async def workers(self, core: Services, played: Mapping[str, Mapping[str, Any]]) -> Collection[Worker]:
        """Publish the kinds, and return what works on their iterations; `played`: see `Outside`."""
        worker = JobWorker(core.store, core.client, self._registry, outside=Outside(core.store, played=played))
        await worker.publish()
        return worker.workers()
