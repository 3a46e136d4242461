"""A model of the queue in plain Python, with which `test_machine.py` compares it.

Time is counted in minutes. Leases and moments end at half minutes, so the milliseconds that a test takes do not matter.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from core.queue import CancelResult, Task, TaskFilter

TUBES = ("t", "u")
LANES = ("x", "y")
DEFAULT_ATTEMPTS = 10


@dataclass(frozen=True)
class Options:
    """The options of a tube, in minutes; 0 for none. `paced`: one task a minute."""

    expires: int = 0
    attempts: int = 0
    parks: bool = False
    paced: bool = False
    keep: int = 0


@dataclass
class Job:
    """A task. `order`: its place; `number`: the order of the puts; `clients` are notified of its end; `is_first`: it is
    taken or backs off as the first task of its lane.
    """

    id: str
    number: int
    order: int
    tube: str
    state: str
    body: str = ""
    lane: str = ""
    tenant: str = "a"
    priority: int = 5
    due: int | None = None
    expires: int | None = None
    most: int = 0
    kind: str = ""
    user: str = ""
    tags: tuple[str, ...] = ()
    clients: list[str] = field(default_factory=list)
    attempts: int = 0
    lease: int = 0
    checkpoint: str = ""
    flagged: bool = False
    woken: bool = False
    is_first: bool = False
    task: Task | None = None

    @property
    def in_lane(self) -> bool:
        return bool(self.lane) and (self.state in ("ready", "taken") or self.is_first)

    @property
    def score(self) -> tuple[int, int]:
        return self.priority, self.order


@dataclass(frozen=True)
class StoredKey:
    """An ended task that is kept until a minute."""

    tube: str
    state: str
    answer: str
    until: int


class Model:
    """`notified`: client → the ends it was notified of, in order. `counts`: (tube, name) → count, as in `stats`."""

    def __init__(self) -> None:
        self.time = 0
        self._numbers = 0
        self.options = dict.fromkeys(TUBES, Options())
        self.jobs: dict[str, Job] = {}
        self.kept: dict[str, StoredKey] = {}
        self.notified: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
        self.counts: Counter[tuple[str, str]] = Counter()
        self.paced_until = dict.fromkeys(TUBES, 0)
        self.throttled_until = dict.fromkeys(TUBES, -1)

    def next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def count(self, job: Job, what: str) -> None:
        self.counts[job.tube, what] += 1

    # lanes

    def lane(self, tube: str, name: str) -> list[Job]:
        members = (job for job in self.jobs.values() if (job.tube, job.lane) == (tube, name) and job.in_lane)
        return sorted(members, key=lambda job: job.order)

    def candidates(self, tube: str) -> list[Job]:
        """Return what may be taken now: the first task of each lane that is not busy, and the tasks without a lane."""
        free = [job for job in self.jobs.values() if (job.tube, job.lane, job.state) == (tube, "", "ready")]
        for name in LANES:
            members = self.lane(tube, name)
            if members and not any(member.is_first for member in members):
                free.append(members[0])
        return free

    def waits_for(self, job: Job) -> Job | None:
        """Return the first task of the lane, if this one is ready behind it."""
        if job.state != "ready" or not job.lane:
            return None
        members = self.lane(job.tube, job.lane)
        first = next((member for member in members if member.is_first), members[0])
        return None if first is job else first

    def states(self, tube: str) -> dict[str, int]:
        found = dict.fromkeys(("waiting", "ready", "locked", "taken", "buried"), 0)
        for job in self.jobs.values():
            if job.tube == tube:
                found["locked" if self.waits_for(job) else job.state] += 1
        return found

    # verbs

    def put(self, job: Job, due: int | None, expires: int | None) -> None:
        lifetime = self.options[job.tube].expires
        job.due = self.time + due if due else None
        if expires:
            job.expires = self.time + expires
        elif lifetime:
            job.expires = self.time + (due or 0) + lifetime
        self.jobs[job.id] = job
        self.count(job, "put")

    def may_take(self, tube: str, limit: int, account: str) -> int:
        """Return how many tasks a claim returns now."""
        if account and self.time <= self.throttled_until[tube]:
            return 0
        if self.options[tube].paced:
            limit = min(limit, 1 if self.time >= self.paced_until[tube] else 0)
        return min(limit, len(self.candidates(tube)))

    def take(self, job: Job, lease: int) -> None:
        job.state, job.is_first, job.attempts, job.lease = "taken", bool(job.lane), job.attempts + 1, self.time + lease
        if self.options[job.tube].paced:
            self.paced_until[job.tube] = self.time + 1
        self.count(job, "claimed")

    def make_ready(self, job: Job) -> None:
        job.state, job.is_first, job.due, job.task = "ready", False, None, None

    def put_off(self, job: Job, due: int) -> None:
        job.state, job.due, job.task = "waiting", self.time + due, None

    def release(self, job: Job, due: int | None) -> str:
        if job.flagged:
            return self.end(job, "cancelled")
        job.attempts -= 1
        self.count(job, "released")
        return self._back(job, due)

    def suspend(self, job: Job, due: int, leaves_lane: bool) -> str:
        if job.flagged:
            return self.end(job, "cancelled")
        job.attempts, job.expires = job.attempts - 1, None
        self.count(job, "released")
        if job.woken:
            job.woken = False
            return self._back(job, None)
        job.is_first = job.is_first and not leaves_lane
        return self._back(job, due)

    def wake(self, job: Job) -> None:
        if job.state == "waiting":
            self._promote(job)
        else:
            job.woken = True

    def retry(self, job: Job, due: int | None) -> str:
        if job.flagged:
            return self.end(job, "cancelled")
        if self.is_spent(job):
            return self.bury(job)
        self.count(job, "retried")
        if self.options[job.tube].parks:
            job.is_first = False
            if not due:
                job.order = self.next_number()
        return self._back(job, due)

    def _back(self, job: Job, due: int | None) -> str:
        if due:
            self.put_off(job, due)
        else:
            self.make_ready(job)
        return job.state

    def is_spent(self, job: Job) -> bool:
        return job.attempts >= (job.most or self.options[job.tube].attempts or DEFAULT_ATTEMPTS)

    def end(self, job: Job, how: str, answer: str = "") -> str:
        del self.jobs[job.id]
        self.count(job, how)
        for client in job.clients:
            self.notified[client].append((job.id, how, answer))
        if keep := self.options[job.tube].keep:
            self.kept[job.id] = StoredKey(job.tube, how, answer, self.time + keep)
        return how

    def bury(self, job: Job) -> str:
        job.state, job.is_first, job.task, job.due = "buried", False, None, None
        self.count(job, "buried")
        return job.state

    def kick(self, job: Job) -> None:
        self.make_ready(job)
        job.order, job.attempts = self.next_number(), 0
        self.count(job, "kicked")

    def cancel(self, jobs: Sequence[Job]) -> CancelResult:
        taken = [job for job in jobs if job.state == "taken"]
        others = [job for job in jobs if job.state != "taken"]
        for job in taken:
            job.flagged = True
        for job in others:
            self.end(job, "cancelled")
        return CancelResult(len(others), len(taken))

    def selected(self, task_filter: TaskFilter) -> list[Job]:
        """Return the matching tasks in the order they were put, by kind if the index is that of kinds."""
        jobs = [job for job in self.jobs.values() if self._matches(job, task_filter)]
        by_kind = task_filter.index()[0] == "kind"
        return sorted(jobs, key=lambda job: (job.kind if by_kind else "", job.number))

    @staticmethod
    def _matches(job: Job, task_filter: TaskFilter) -> bool:
        wanted = {name: getattr(task_filter, name) for name in ("user", "tenant", "lane", "tube")}
        if any(value and getattr(job, name) != value for name, value in wanted.items()):
            return False
        return job.kind.startswith(task_filter.kind) and (not task_filter.tag or task_filter.tag in job.tags)

    # time

    def tick(self) -> None:
        """Do what has become due: first leases end, then tasks expire, then deferred tasks become ready in order."""
        for job in [job for job in self.jobs.values() if job.state == "taken" and job.lease < self.time]:
            self._lose(job)
        for job in [job for job in self.jobs.values() if job.state in ("ready", "waiting")]:
            if job.expires is not None and job.expires < self.time:
                self.end(job, "expired")
        waiting = (job for job in self.jobs.values() if job.state == "waiting")
        for job in sorted(waiting, key=lambda job: (job.due or 0, job.id)):
            if job.due is not None and job.due < self.time:
                self._promote(job)
        self.kept = {task_id: kept for task_id, kept in self.kept.items() if kept.until >= self.time}

    def _lose(self, job: Job) -> None:
        self.count(job, "lost")
        if job.flagged:
            self.end(job, "cancelled")
        elif self.is_spent(job):
            self.bury(job)
        else:
            self.make_ready(job)

    def _promote(self, job: Job) -> None:
        """A deferred task enters its lane now; a task that backs off has kept its place."""
        self.count(job, "promoted")
        if job.lane and not job.is_first:
            job.order = self.next_number()
        self.make_ready(job)
