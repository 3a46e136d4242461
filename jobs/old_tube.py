"""Moves the tasks of an earlier version, in which all kinds had the one tube `jobs`, each to the tube of its kind.

A task is moved when it falls due, so that none is lost, also while processes of that version still run beside this one.
"""

import msgspec

from core.jobs import JobId, JobStorage
from core.queue import Attempt, Result, Retry

OLD_TUBE = "jobs"


class _Body(msgspec.Struct, frozen=True):
    tenant: str
    kind: str
    user: str

    @property
    def job_id(self) -> JobId:
        return JobId(self.tenant, self.kind, self.user)


class OldTube:
    """`handle` is the handler of its worker."""

    def __init__(self, storage: JobStorage) -> None:
        self._storage = storage

    async def handle(self, attempt: Attempt) -> Result:
        """Put a task into the tube of the kind, unless the job has another task by now."""
        job = await self._storage.read(msgspec.json.decode(attempt.body, type=_Body).job_id)
        if job is None or job.record.task != attempt.task.task_id:
            return None
        return None if await self._storage.save(job) else Retry()
