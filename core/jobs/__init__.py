"""The jobs of users as they are stored and controlled; what runs them is `jobs/`.

    Jobs.start, pause, resume, stop ─▶ lua/jobs/functions/save_job.lua ─▶ the tube `jobs.KIND`, lane = the job ─▶
    jobs.worker

Guarantees: a change of a job and the task of its next iteration are one step; two starts at once make one job; a pause
of a user stays until the user or an administrator ends it, whatever restarts.

Neighbours: `core.queue` below. `delivery/`, `scenarios/` and `cli` control jobs through `Jobs`; `jobs/` runs them.
"""

from core.jobs.jobs import Jobs
from core.jobs.kinds import JobKinds
from core.jobs.record import JobId, JobRecord, StoredJob
from core.jobs.schedule import DailyWindow, Schedule
from core.jobs.states import Actor, JobState
from core.jobs.storage import JobStorage

__all__ = [
    "Actor",
    "DailyWindow",
    "JobId",
    "JobKinds",
    "JobRecord",
    "JobState",
    "JobStorage",
    "Jobs",
    "Schedule",
    "StoredJob",
]
