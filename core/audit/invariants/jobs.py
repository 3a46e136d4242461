"""The invariants of jobs (I22 to I24). Pure.

I22: a job that runs or takes back, or whose pause ends by itself, has a live task in the tube `jobs.<kind>`.
I23: the record of a job agrees with its state, the list of its tenant, the indexes `jobs_due` and `jobs_ended`, and the
counts by state.
I24: results of steps, and their order, are kept without a limit only for an iteration that has begun and not ended,
and for a time after the end of its job.

I22 and I24, and of I23 what concerns one job, are implications, checked on one atomic read. The counts are compared
between two reads of all jobs of a tenant: what is equal in both did not change between them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from core.audit.invariants.directory import AuditRead, Entries, Implication, Premise
from core.audit.invariants.invariant import LIVE, Violation
from core.redis.keys import KEYS

_WORKING, _PAUSED = ("running", "stopping"), "paused"
_ENDED = ("stopped", "finished", "failed")
_TASK_WHY = "the watchdog of `./ada jobs` gives it a new task"
_COUNT_WHY = "the count is only shown"


class Record(msgspec.Struct, frozen=True):
    """The fields that the invariants read of `core.jobs.record.JobRecord`."""

    state: str
    resume_at: int = 0
    generation: int = 0
    task: str = ""
    due: int = 0
    begun: bool = False
    parent: Mapping[str, str] | None = None

    @property
    def next(self) -> int | None:
        """Time of the next work (ms); None: none by itself."""
        if self.state in _WORKING:
            return self.due
        return self.resume_at if self.state == _PAUSED and self.resume_at else None


def record_of(stored: str | None) -> Record | None:
    """Return the record of a job; None if it is not one."""
    try:
        return msgspec.json.decode(stored or "", type=Record)
    except msgspec.MsgspecError:
        return None


def job_implications(kind: str, shard: int, parts: Sequence[str], entries: Entries) -> Iterator[Implication]:
    """Emit what entries of a key of this kind imply. `parts`: those of its name."""
    for field, value in entries:
        yield from _BY_KIND[kind](shard, parts[0] if parts else "", field, value)


def _of_job(shard: int, job: str, field: str, value: str) -> Iterator[Implication]:
    if field != "record":
        return
    key, record = KEYS["job"].at(shard, job), record_of(value)
    seen = Premise(AuditRead("HGET", key, field), value)
    if record is None:
        yield Implication(
            "I23", (seen,), AuditRead("HGET", key, field), lambda found: record_of(found) is not None, "a job"
        )
        return
    tenant = job.partition("/")[0]
    for read, holds, wanted in _places(shard, tenant, job, record):
        yield Implication("I23", (seen,), read, holds, wanted)
    for kept in ("job_steps", "job_order"):
        left, wanted = _LEFT[record.state in _ENDED, record.begun]
        yield Implication("I24", (seen,), AuditRead("PTTL", KEYS[kept].at(shard, job), ""), left, wanted)
    if record.next is not None:
        yield from _of_task(shard, job, seen, record)


def _places(shard: int, tenant: str, job: str, record: Record) -> Iterator[tuple[AuditRead, "Holds", str]]:
    due = record.next
    yield AuditRead("HGET", KEYS["job"].at(shard, job), "state"), lambda found: found == record.state, record.state
    yield AuditRead("ZSCORE", KEYS["jobs"].at(shard, tenant), job), _is_there, "in the list of its tenant"
    yield (
        AuditRead("HGET", KEYS["job_counts"].at(shard, tenant), record.state),
        _is_there,
        f"a count, as {job} has it",
    )
    yield (
        AuditRead("ZSCORE", KEYS["jobs_due"].at(shard), job),
        _is_score(due),
        f"{'absent' if due is None else due}",
    )


def _of_task(shard: int, job: str, seen: Premise, record: Record) -> Iterator[Implication]:
    wanted = f"jobs.{job.partition('/')[2].partition('.')[0].partition('~')[0]}"
    key = KEYS["task"].at(shard, record.task.partition(".")[2])
    live, tube = AuditRead("TASK", key, "state"), AuditRead("TASK", key, "tube")
    yield Implication("I22", (seen,), live, lambda found: found in LIVE, "a live task of its job", _TASK_WHY)
    yield Implication("I22", (seen,), tube, lambda found: found == wanted, f"in the tube {wanted}", _TASK_WHY)


def _of_due(shard: int, _: str, job: str, __: str) -> Iterator[Implication]:
    def is_due(found: str | None) -> bool:
        record = record_of(found)
        return record is not None and record.next is not None

    seen = Premise(AuditRead("ZSCORE", KEYS["jobs_due"].at(shard), job))
    yield Implication(
        "I23", (seen,), AuditRead("HGET", KEYS["job"].at(shard, job), "record"), is_due, "a job with work"
    )


def _of_ended(shard: int, _: str, job: str, __: str) -> Iterator[Implication]:
    def has_ended(found: str | None) -> bool:
        record = record_of(found)
        return record is not None and record.state in _ENDED and record.parent is not None

    seen = Premise(AuditRead("ZSCORE", KEYS["jobs_ended"].at(shard), job))
    yield Implication(
        "I23", (seen,), AuditRead("HGET", KEYS["job"].at(shard, job), "record"), has_ended, "an ended child"
    )


def _of_listed(shard: int, tenant: str, job: str, _: str) -> Iterator[Implication]:
    seen = Premise(AuditRead("ZSCORE", KEYS["jobs"].at(shard, tenant), job))
    yield Implication(
        "I23", (seen,), AuditRead("HGET", KEYS["job"].at(shard, job), "record"), _is_there, "a job, as listed"
    )


def _of_step(shard: int, job: str, step: str, _: str) -> Iterator[Implication]:
    yield from _of_work(shard, job, AuditRead("HGET", KEYS["job_steps"].at(shard, job), step))


def _of_order(shard: int, job: str, name: str, _: str) -> Iterator[Implication]:
    yield from _of_work(shard, job, AuditRead("ZSCORE", KEYS["job_order"].at(shard, job), name))


def _of_work(shard: int, job: str, read: AuditRead) -> Iterator[Implication]:
    seen = Premise(read)
    yield Implication(
        "I24", (seen,), AuditRead("HGET", KEYS["job"].at(shard, job), "record"), _is_there, "a job with steps"
    )


Holds = Callable[[str | None], bool]

_GONE, _UNLIMITED = "-2", "-1"
_LEFT: Mapping[tuple[bool, bool], tuple[Holds, str]] = {
    (False, False): (lambda found: found == _GONE, "absent"),
    (False, True): (lambda found: found in (_GONE, _UNLIMITED), "no TTL: the iteration has begun"),
    (True, False): (lambda found: found != _UNLIMITED, "a TTL: the job has ended"),
    (True, True): (lambda found: found != _UNLIMITED, "a TTL: the job has ended"),
}
"""(the job has ended, its iteration has begun) → the time to live of its steps."""


def _is_there(found: str | None) -> bool:
    return found is not None


def _is_score(wanted: int | None) -> Holds:
    return lambda found: (None if found is None else int(float(found))) == wanted


_BY_KIND: Mapping[str, Callable[[int, str, str, str], Iterator[Implication]]] = {
    "job": _of_job,
    "jobs_due": _of_due,
    "jobs_ended": _of_ended,
    "jobs": _of_listed,
    "job_steps": _of_step,
    "job_order": _of_order,
}

JOB_KINDS = tuple(_BY_KIND)
"""The kinds of keys that are checked by implications."""


class JobStanding(NamedTuple):
    """The state of a job. Within a generation a state never returns, so equal standings at two times mean that it did
    not change between them.
    """

    generation: int
    state: str


Standings = Mapping[str, JobStanding]
"""Job → standing."""


def count_violations(
    shard: int, tenant: str, stored: Mapping[str, str], before: Standings, after: Standings
) -> Iterator[Violation]:
    """Yield the violations of I23. `stored`: the counts, read after `before` and before `after`; jobs that changed may
    count either way.
    """
    still = [after[job].state for job, standing in before.items() if after.get(job) == standing]
    moved = len(before.keys() | after.keys()) - len(still)
    for state in {*stored, *still}:
        least, found = still.count(state), int(stored.get(state, 0))
        if not least <= found <= least + moved:
            wanted = f"{least}" if not moved else f"{least} to {least + moved}"
            key = KEYS["job_counts"].at(shard, tenant)
            yield Violation("I23", key, f"{found} {state}", f"{wanted} {state}", why=_COUNT_WHY)
