"""What the developer of a job writes: a class with a name, a schedule, and `run`.

    class Hunt(Job):
        name = "hunt"
        schedule = Schedule(timedelta(minutes=30), DailyWindow(time(9), time(20)))

        async def run(self, iteration: Iteration) -> None:
            found = await iteration.step("search", search, iteration.parameters["query"])
            await iteration.each(found, self.apply, key=lambda vacancy: vacancy["id"])

`run` is called again for the same iteration after a crash, a shutdown or a failure; what `step`, `each` and `effect`
have stored is not done again. Guide: docs/jobs.md.
"""

from abc import ABC, abstractmethod
from datetime import timedelta
from typing import ClassVar

from core.jobs.schedule import Schedule
from jobs.iteration import Iteration


class Job(ABC):
    """A kind of job. `max_runtime`: an iteration that takes longer has failed. `most_failures`: after so many failures
    of one iteration in a row the job has failed.
    """

    name: ClassVar[str]
    schedule: ClassVar[Schedule]
    max_runtime: ClassVar[timedelta] = timedelta(hours=1)
    most_failures: ClassVar[int] = 5

    @abstractmethod
    async def run(self, iteration: Iteration) -> None:
        """Do the work of one iteration. Raises what `jobs.signals` has, or anything: then it is tried again."""
