"""Runs the iterations of jobs: one worker of the queue for each kind that this process has, in any number of processes.

    task ─▶ the job, if it is still the task's ─▶ begin ─▶ Job.run ─▶ end: in one step this task and the next one

Guarantees: an iteration ends once; after a crash another process goes on with what was stored; a shutdown finishes the
unit in hand and gives the rest to another process at once, without a change of the job's state (U-07 to U-14).
"""

import asyncio
import faulthandler
import logging
import signal
from collections.abc import Callable, Collection
from datetime import timedelta
from pathlib import Path
from types import FrameType

import core
from core.jobs import Jobs
from core.jobs.notices import TUBE as NOTICES
from core.jobs.queries import tube_of_query
from core.jobs.storage import job_id_of, tube_of
from core.queue import Attempt, QueueClient, Result, Tube, Worker
from core.redis.cancel_and_wait import cancel_and_wait
from core.redis.store import Store
from core.services import Services
from jobs.attempts import JOB, Attempts
from jobs.external_services import Outside
from jobs.job import Job
from jobs.limits import Slots
from jobs.notices import Notifier
from jobs.queries import AT_ONCE, QueryAnswers
from jobs.queries import LEASE as LEASE_OF_QUERIES
from jobs.recovery import Losses, Standing, Watchdog, count_interrupted, report_changed_code
from jobs.registry import Registry
from jobs.signals import Blocked

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=10)

_MARGIN = timedelta(seconds=30)
"""The queue takes an iteration for hanging so long after `max_runtime`, at which this worker ends it."""

_NOTICES_AT_ONCE = 10
_ATTEMPTS = 1_000_000
"""This worker counts failures itself: an attempt that was interrupted is none."""


class JobWorker:
    """One per process; to `run()` and to `stop()`. `concurrency`: how many iterations of a kind run at once, unless
    its class has another number.
    """

    def __init__(
        self,
        store: Store,
        client: QueueClient,
        registry: Registry,
        concurrency: int = 100,
        lease: timedelta = LEASE,
        outside: Outside | None = None,
        notifier: Notifier | None = None,
        jobs: Jobs | None = None,
    ) -> None:
        self._store = store
        self._client = client
        self.registry = registry
        self.jobs = jobs or Jobs(store)
        self.watchdog = Watchdog(store, self.jobs, registry.schedules, registry.queries, registry.signals)
        self._storage = self.jobs.storage
        self._losses = Losses(self.jobs)
        self._stop_requested = asyncio.Event()
        self._slots = Slots(store, lease)
        self._attempts = Attempts(
            self.jobs, self._losses, outside or Outside(store), self._slots, self._stop_requested.is_set
        )
        self._workers = {tube_of(kind.name): self._worker(kind, concurrency, lease) for kind in registry.kinds.values()}
        answers = QueryAnswers(self.jobs, registry.kinds)
        for tube in (tube_of_query(*one) for one in registry.queries):
            self._workers[tube] = client.worker(tube, answers.handle, AT_ONCE, lease=min(lease, LEASE_OF_QUERIES))
        notify = (notifier or Notifier(Services.on(store))).handle
        self._workers[NOTICES] = client.worker(NOTICES, notify, _NOTICES_AT_ONCE, lease=lease)

    @property
    def _has_limits(self) -> bool:
        return any(kind.limits for kind in self.registry.kinds.values())

    def _worker(self, kind: type[Job], concurrency: int, lease: timedelta) -> Worker:
        """Return the worker of a kind. A job that blocks the event loop loses its lease, and so do its neighbours:
        other processes take them up.
        """
        longest = kind.max_runtime + _MARGIN
        tube = tube_of(kind.name)
        return self._client.worker(
            tube,
            self.handle,
            kind.concurrency or concurrency,
            lease=lease,
            max_runtime=longest,
            extends_blocked=False,
        )

    async def run(self, on_ready: Callable[[], None] = lambda: None) -> None:
        """Run iterations until `stop()`. `on_ready`: is called when jobs of these kinds can be started."""
        await self.publish()
        on_ready()
        found = await count_interrupted(self._store, self.jobs, self.registry.kinds)
        if any(found.values()):
            counts = (found[Standing.INTERRUPTED], found[Standing.DUE], found[Standing.TAKEN])
            log.info("jobs that were interrupted and go on: %s; due: %s; with another process: %s", *counts)
        watchdog = asyncio.create_task(self.watchdog.run())
        slots = asyncio.create_task(self._slots.extend() if self._has_limits else self._stop_requested.wait())
        report = asyncio.create_task(report_changed_code(self._store, self.jobs, self.registry.kinds))
        try:
            await asyncio.gather(self._stop_requested.wait(), *(worker.run() for worker in self._workers.values()))
        finally:
            await cancel_and_wait(watchdog, report, slots)

    async def publish(self) -> None:
        """Publish the kinds of this process, and create their tubes."""
        await self.jobs.kinds.publish(self.registry.schedules, self.registry.queries, self.registry.signals)
        paces = {tube_of(kind.name): kind.pace for kind in self.registry.kinds.values()}
        for tube in self._workers:
            await self._client.tubes.create(Tube(tube, attempts=_ATTEMPTS, pace=paces.get(tube)))

    def workers(self) -> Collection[Worker]:
        """Return the workers of the queue: for tests that work step by step."""
        return self._workers.values()

    def stop(self, grace: timedelta) -> None:
        """End `run`: units in hand are finished, within `grace`; the rest goes back into the queue."""
        self._stop_requested.set()
        for worker in self._workers.values():
            worker.stop(grace)

    async def handle(self, attempt: Attempt) -> Result:
        """Return one attempt at one iteration."""
        job_id = job_id_of(attempt.task.lane)
        (job, stored), kind = await self._storage.read_to_begin(job_id), self.registry.kinds[job_id.kind]
        if job is None or job.record.task != attempt.task.task_id or not job.record.has_task:
            await self._attempts.leave(kind, attempt)
            return None  # of an earlier generation, or of an iteration that has ended or was suspended
        delay = await self._losses.delay(job)
        if delay is not None:
            return delay
        try:
            return await self._attempts.make(kind, job, stored, attempt)
        finally:
            self._losses.end(job.id)


BLOCKED_FAILS = timedelta(seconds=5)
"""Half of the lease of jobs: the other jobs of the process keep theirs."""

BLOCKED_ENDS = timedelta(seconds=20)

_ALIVE_EVERY = 1.0
_AGAIN = 0.1
_CORE = str(Path(core.__file__).parent)


async def watch_loop() -> None:
    """Keep one job that blocks the event loop from stopping all others of its process. Run until cancelled, in the main
    thread.

    After `BLOCKED_FAILS` the blocking code of a job gets an exception, wherever it stands: a sleep, a loop, a request.
    Code that no exception reaches, in a library or in a handler that catches everything, ends the process after
    `BLOCKED_ENDS`; its supervisor starts another one. The stacks of all threads then go to stderr and show the line.
    """
    before = signal.signal(signal.SIGALRM, _interrupt)
    try:
        while True:
            signal.setitimer(signal.ITIMER_REAL, BLOCKED_FAILS.total_seconds(), BLOCKED_FAILS.total_seconds())
            faulthandler.dump_traceback_later(BLOCKED_ENDS.total_seconds(), exit=True)
            await asyncio.sleep(_ALIVE_EVERY)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        faulthandler.cancel_dump_traceback_later()


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise Blocked in the code of the job that runs at this moment: the event loop has not answered for
    `BLOCKED_FAILS`.

    A call of a job into `core`, which other jobs use too, is not interrupted: it does not block, and ends at once.
    """
    if not JOB.get():
        return
    if _is_in_core(frame):
        signal.setitimer(signal.ITIMER_REAL, _AGAIN, BLOCKED_FAILS.total_seconds())
        return
    raise Blocked(f"blocked all jobs of its process for {BLOCKED_FAILS.total_seconds():g} s")


def _is_in_core(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith(_CORE):
            return True
        frame = frame.f_back
    return False
