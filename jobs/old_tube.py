"""Moves the tasks of an earlier version, in which all kinds had the one tube `jobs`, each to the tube of its kind.

A task is moved when it falls due, so that none is lost, also while processes of that version still run beside this one.
As long as the tube is empty, it has no worker.
"""

import asyncio
import logging
from datetime import timedelta

import msgspec

from core.errors import StoreError
from core.jobs import JobId, JobStorage
from core.model.states import TaskState
from core.queue import Attempt, QueueClient, Result, Retry
from core.redis.keys import KEYS
from core.redis.store import Store

log = logging.getLogger(__name__)

OLD_TUBE = "jobs"
EVERY = timedelta(seconds=10)

_LIVE = (TaskState.WAITING, TaskState.READY, TaskState.LOCKED, TaskState.TAKEN)


class _Body(msgspec.Struct, frozen=True):
    tenant: str
    kind: str
    user: str

    @property
    def job_id(self) -> JobId:
        return JobId(self.tenant, self.kind, self.user)


class OldTube:
    """One per process that runs jobs."""

    def __init__(self, store: Store, client: QueueClient, storage: JobStorage) -> None:
        self._store = store
        self._client = client
        self._storage = storage

    async def run(self) -> None:
        """Look every ten seconds whether there are tasks to move, until cancelled."""
        while True:
            try:
                if await self._has_tasks():
                    await self._move_all()
            except StoreError as fault:
                log.warning("tasks of an earlier version are not moved: %s", fault)
            await asyncio.sleep(EVERY.total_seconds())

    async def _move_all(self) -> None:
        worker = self._client.worker(OLD_TUBE, self._move)
        moving = asyncio.create_task(worker.run())
        try:
            while await self._has_tasks():  # noqa: ASYNC110 - other processes change the tube
                await asyncio.sleep(EVERY.total_seconds())
        finally:
            worker.stop()
            await moving

    async def _move(self, attempt: Attempt) -> Result:
        """Put a task into the tube of its kind, unless the job has another task by now."""
        job = await self._storage.read(msgspec.json.decode(attempt.body, type=_Body).job_id)
        if job is None or job.record.task != attempt.task.task_id:
            return None
        return None if await self._storage.save(job) else Retry()

    async def _has_tasks(self) -> bool:
        fields = [f"{OLD_TUBE}:{state}" for state in _LIVE]
        counts = [
            await self._store.command("HMGET", KEYS["states"].at(shard), *fields) for shard in range(self._store.shards)
        ]
        return any(int(count or 0) > 0 for some in counts for count in some)
