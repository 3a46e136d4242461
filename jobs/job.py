"""The base class of a job, for its developer: a class with a name, a schedule, and `run`.

    class Hunt(Job):
        name = "hunt"
        schedule = Schedule(timedelta(minutes=30), DailyWindow(time(9), time(20)))

        async def run(self, iteration: Iteration) -> Any:
            found = await iteration.step("search", search, iteration.parameters["query"])
            await iteration.each(found, self.apply, key=lambda vacancy: vacancy["id"])

`run` is called again for the same iteration after a crash, a shutdown or a failure; what `step`, `each` and `effect`
have stored is not done again. Guide: docs/jobs.md.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar

from core.errors import Invalid
from core.jobs.schedule import Schedule
from jobs.iteration import Iteration
from jobs.limits import Limit
from jobs.recording.own_state import StateClass


class Job(ABC):
    """A kind of job. `max_runtime`: an iteration that takes longer has failed. `most_failures`: after so many failures
    in a row the job has failed; None: with a period or cron it goes on with its next iteration, without one it fails
    after a day. `state`: the class of `iteration.state`, a dataclass or a msgspec struct that can be made without
    arguments; `state_version` grows when what it stores changes, and `migrate_state` converts it. `signals`: the
    type of the data of each signal; others are refused when they are sent. `version`: an iteration that has begun with
    another one is left to a process that has that one. `concurrency`: how many iterations
    run at once in a process (100); `pace`: how many begin or go on in a second, in all; `limits`: other bounds over all
    processes.
    `checks_names`: False if names of steps, effects and waits are in files that are not found (jobs/code_names.py).
    """

    name: ClassVar[str]
    schedule: ClassVar[Schedule]
    max_runtime: ClassVar[timedelta] = timedelta(hours=1)
    most_failures: ClassVar[int | None] = None
    state: ClassVar[type | None] = None
    state_version: ClassVar[int] = 1
    signals: ClassVar[Mapping[str, Any]] = {}
    version: ClassVar[str] = ""
    concurrency: ClassVar[int | None] = None
    pace: ClassVar[float | None] = None
    limits: ClassVar[Sequence[Limit]] = ()
    checks_names: ClassVar[bool] = True

    @classmethod
    def migrate_state(cls, version: int, stored: Any) -> Any:
        """Return what an earlier version has stored, as JSON has it, in the form of `state_version`. Raises Invalid
        STATE_NOT_MIGRATED.
        """
        detail = f"The state is of version {version}, and migrate_state of {cls.name!r} is missing."
        raise Invalid("STATE_NOT_MIGRATED", detail)

    @classmethod
    def state_class(cls) -> StateClass:
        """Return what the kind declares of its state."""
        return StateClass(cls.state, cls.state_version, cls.migrate_state)

    @abstractmethod
    async def run(self, iteration: Iteration) -> Any:
        """Do the work of one iteration. Raises what `jobs.signals` has, or anything: then it is tried again."""
