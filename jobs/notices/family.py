"""Notifies the parent of a job that it has ended, and stops its children."""

import logging

import msgspec

from core.errors import Refused
from core.jobs import Actor, JobId, Jobs
from core.jobs.notices import Notice
from jobs.recording.children import ChildEnd

log = logging.getLogger(__name__)


async def notify_family(jobs: Jobs, notice: Notice) -> None:
    """Send the parent the signal for which it waits, and stop the children. A repetition does nothing."""
    if notice.parent:
        parent = JobId.parse(notice.tenant, notice.parent.job)
        end = msgspec.json.decode(msgspec.json.encode(ChildEnd(notice.end, notice.reason, notice.result)))
        signal = notice.parent.signal_of(notice.job_id)
        # The versions of a child that was dropped and started again begin anew.
        signal_id = f"{notice.job} {notice.parent.iteration} {notice.version}"
        try:
            await jobs.signal(parent, signal, end, signal_id=signal_id, log=f"the child {notice.job} is {notice.end}")
        except Refused as refusal:
            log.info("job %s: its parent %s gets no signal: %s", notice.job, parent.name, refusal.code)
    for name in notice.children:
        try:
            await jobs.stop(
                JobId.parse(notice.tenant, name), Actor.ADMIN, f"its parent is {notice.end}", keeps_failed=True
            )
        except Refused as refusal:
            log.info("job %s: its child %s is not stopped: %s", notice.job, name, refusal.code)
