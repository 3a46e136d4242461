"""Runs the jobs of users: durable iterations on the queue.

    a task of the tube `jobs.KIND` ─▶ JobWorker ─▶ Job.run(iteration) ─▶ lua/jobs/functions/end_iteration.lua ─▶ the
    next task

Guarantee: a job goes on after every crash and deploy where it was; what it has recorded is never done again.
Neighbours: `core.jobs` below; siblings (`bots`, `scenarios`, `delivery`) are not imported. Guide: docs/jobs.md.
"""

from core.jobs import Actor, DailyWindow, Schedule
from jobs.job import Iteration, Job
from jobs.limits import Limit
from jobs.queries import Snapshot, query
from jobs.recording.effects import RetryPolicy
from jobs.recording.waiting import Child, ChildFailed
from jobs.registry import Registry
from jobs.signals import Finished, Found, NotDone, Pause, RollBack, Throttled, Unclear, UnitFailed
from jobs.worker import JobWorker

__all__ = [
    "Actor",
    "Child",
    "ChildFailed",
    "DailyWindow",
    "Finished",
    "Found",
    "Iteration",
    "Job",
    "JobWorker",
    "Limit",
    "NotDone",
    "Pause",
    "Registry",
    "RetryPolicy",
    "RollBack",
    "Schedule",
    "Snapshot",
    "Throttled",
    "Unclear",
    "UnitFailed",
    "query",
]
