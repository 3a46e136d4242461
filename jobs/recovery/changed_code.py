"""Finds at the start of a process the iterations that have begun with other code than it has (U-31).

It changes nothing: the attempt at such an iteration decides what it may do (`code_names.left_to_others`).
"""

import logging
from collections.abc import Mapping

from core.errors import StoreError
from core.jobs import JobId, Jobs
from core.jobs.states import WORKING
from core.redis.store import Store
from jobs.code_names import left_to_others, unknown_names
from jobs.job import Job

log = logging.getLogger(__name__)

_PAGE = 100
_LATEST = 2**53
"""After every time at which a job may be due (ms)."""


async def report_changed_code(store: Store, jobs: Jobs, kinds: Mapping[str, type[Job]]) -> None:
    """Log each job of these kinds whose iteration has stored what this code does not name, as long as the server is
    there.
    """
    try:
        await _look(store, jobs, kinds)
    except StoreError as fault:
        log.warning("the code of jobs is not compared with what they have stored: %s", fault)


async def _look(store: Store, jobs: Jobs, kinds: Mapping[str, type[Job]]) -> None:
    for shard in range(store.shards):
        start = 0
        while page := await jobs.storage.overdue(shard, _LATEST, start, _PAGE):
            for job_id in page:
                if job_id.kind in kinds:
                    await _report(jobs, kinds[job_id.kind], job_id)
            start += len(page)


async def _report(jobs: Jobs, kind: type[Job], job_id: JobId) -> None:
    job = await jobs.storage.read(job_id)
    if job is None or job.record.state not in WORKING or not job.record.begun:
        return
    stored = await jobs.storage.steps(job_id)
    reason = left_to_others(kind, job.record, stored)
    if not reason and (steps := unknown_names(kind, stored)):
        reason = f"the code has no {', '.join(steps)} any more; if it has another name now, it is done again"
    if reason:
        log.warning("job %s: %s", job_id.name, reason)
