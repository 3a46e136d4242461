"""A job whose query kills the first process that answers it."""

import os
import signal
from datetime import timedelta
from pathlib import Path

from jobs import Iteration, Job, Schedule, Snapshot, query


class Deadly(Job):
    name = "deadly"
    schedule = Schedule(timedelta(hours=1))

    async def run(self, iteration: Iteration) -> None:
        await iteration.wait("end")

    @query
    def dies_once(self, job: Snapshot, mark: str) -> str:
        """Return that this process is alive, unless it is the first to be asked."""
        if not Path(mark).exists():
            Path(mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return "alive"
