"""Runs the code of a job in a task of its own, so that whatever it raises or swallows is its own failure.

A job may raise KeyboardInterrupt, SystemExit or GeneratorExit: in the task of the queue's worker these would end the
process.
"""

import asyncio
import logging
from contextvars import ContextVar

from core.sentence import sentence
from jobs.iteration import Iteration
from jobs.job import Job
from jobs.recording.guard import Guard
from jobs.recording.records import stored_form
from jobs.signals import SelfCancelled, TookTooLong

log = logging.getLogger(__name__)

JOB: ContextVar[str] = ContextVar("job", default="")
"""The job whose code runs at this moment, also in tasks that it has started."""

LARGEST_RETURNED = 60 * 1024
"""Bytes of JSON of what `run` returns; a parent gets it as a signal."""

_CLEANUP = 5.0
"""Seconds that a job has to clean up after it was cancelled."""


async def run_job(kind: type[Job], iteration: Iteration, guard: Guard) -> BaseException | None:
    """Return what the job has raised, or why the attempt is over; TookTooLong if it takes longer than it may. When this
    returns or is cancelled, the job has ended, or can begin nothing else.
    """
    running = asyncio.create_task(_raised_by(kind, iteration, guard.job.id.name))
    try:
        done, _ = await asyncio.wait({running}, timeout=kind.max_runtime.total_seconds())
    except asyncio.CancelledError:
        await _end(running, guard)
        raise
    if done:
        return guard.ending or running.result()
    await _end(running, guard)
    return TookTooLong(sentence("job_took_too_long", limit=str(kind.max_runtime)))


async def _raised_by(kind: type[Job], iteration: Iteration, name: str) -> BaseException | None:
    JOB.set(name)
    try:
        iteration.result = stored_form("run", await kind().run(iteration), LARGEST_RETURNED)
    except asyncio.CancelledError:  # if this process has cancelled it, the result is not used
        return SelfCancelled("the iteration was cancelled by its own code")
    except BaseException as fault:  # noqa: BLE001 - whatever a job raises is its failure
        return fault
    return None


async def _end(running: "asyncio.Task[BaseException | None]", guard: Guard) -> None:
    guard.close()
    running.cancel()
    await asyncio.wait({running}, timeout=_CLEANUP)
    if not running.done():
        log.error("job %s: its code goes on after it was cancelled; it begins no effect", guard.job.id.name)
