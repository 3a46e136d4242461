"""Jobs in Redis: a hash per job, its results, its units, its log. Called by `core.jobs.jobs` and `jobs/`."""

import asyncio
from collections.abc import Mapping
from hashlib import blake2b
from zlib import crc32

import msgspec
from msgspec.structs import replace

from core.errors import Conflict
from core.jobs.notices import Notice
from core.jobs.record import JobId, JobRecord, OwnState, ResetPoint, StoredJob, line_of
from core.jobs.states import ENDED, JobState
from core.model.clock import from_ms
from core.model.json_form import compact_json
from core.queue import NewTask
from core.queue.task_ids import TaskIds
from core.redis.keys import KEYS
from core.redis.store import Store, page_by_score

_LATE = "late:"
"""A holder whose job was stopped, and perhaps started again (lua/jobs/functions/save_job.lua)."""


_DROPPED = 100
"""Jobs that one call drops."""


def tube_of(kind: str) -> str:
    """Return the tube of the iterations of a kind. In it, the lane of a task is the name of its job in keys, and its
    body the generation of the job for which it was put.
    """
    return f"jobs.{kind}"


class JobStorage:
    """Reads and writes jobs; each change is one function of the server."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ids = TaskIds()

    async def read(self, job_id: JobId) -> StoredJob | None:
        """Return a job; None if there is none."""
        shard, name = self._place(job_id)
        fields = ("version", "record", "holder", "losses", "own")
        version, record, holder, losses, own = await self._store.read_hash(KEYS["job"].at(shard, name), *fields)
        if version is None or record is None:
            return None
        is_held = holder is not None and not holder.startswith(_LATE)
        facts = msgspec.json.decode(record, type=JobRecord)
        latest = msgspec.json.decode(own, type=OwnState) if own else facts.own
        return StoredJob(job_id, facts, int(version), holder or "" if is_held else "", int(losses or 0), latest)

    async def read_to_begin(self, job_id: JobId) -> tuple[StoredJob | None, list[str]]:
        """Return a job and the names of what its iteration has stored, in one round trip."""
        shard, name = self._place(job_id)
        steps = self._store.command("HKEYS", KEYS["job_steps"].at(shard, name))
        job, names = await asyncio.gather(self.read(job_id), steps)
        return job, list(names)

    async def save(
        self,
        job: StoredJob,
        log: str = "",
        *,
        holder: str = "",
        puts_task: bool = True,
        notice: Notice | None = None,
        point: ResetPoint | None = None,
    ) -> StoredJob | None:
        """Store a job if its version is still that of `job`; returns it with its new version, otherwise None.

        A job that runs, or resumes by itself, gets a task for its next iteration, unless the attempt `holder` changes
        its own job. `notice`: put as a task in the same step. `point`: what is stored from it on is dropped. Raises
        Conflict JOB_IN_HAND if that would drop effects while an attempt may be at them.
        """
        shard, name = self._place(job.id)
        record, row = self._with_task(job, shard) if puts_task and not holder else (job.record, ())
        due = record.next or ""
        base = f"{job.id.tenant}/{job.id.kind}.{job.id.user}" if job.id.key else ""
        words = (job.id.tenant, name, job.version, record.state, _json(record), due, holder, base)
        reset = (point.name, "1" if point.again else "") if point else ("", "")
        beside = (line_of(log), self._row_of(notice, job.id), tube_of(job.id.kind))
        version = await self._store.run("save_job", shard, *words, "1" if record.parent else "", *reset, *beside, *row)
        if version < 0:
            raise Conflict("JOB_IN_HAND", "The job is at work at this moment. Pause it, and try again a moment later.")
        return StoredJob(job.id, record, version, own=job.own) if version else None

    async def drop_ended(self) -> int:
        """Drop children that ended before the retention of histories, and return how many. Their user's jobs stay."""
        dropped = 0
        for shard in range(self._store.shards):
            while found := int(await self._store.run("drop_jobs", shard, _DROPPED)):
                dropped += found
        return dropped

    async def begin_iteration(
        self, job: StoredJob, holder: str, log: str = ""
    ) -> tuple[StoredJob, Mapping[str, str]] | None:
        """Store the job with the iteration that the attempt `holder` begins or goes on with. Returns the job with its
        new version, and the results of the iteration; None if the job has changed since `job.version`.
        """
        shard, name = self._place(job.id)
        record = job.record
        words = (job.id.tenant, name, holder, job.version, record.state, _json(record), record.next, line_of(log))
        version, stored = await self._store.run("begin_iteration", shard, *words)
        if not version:
            return None
        steps = dict(zip(stored[::2], stored[1::2], strict=True))
        return StoredJob(job.id, record, version, own=job.own), steps

    async def end_iteration(self, job: StoredJob, holder: str, log: str = "", notice: Notice | None = None) -> str:
        """Store the job with its next iteration, or with the suspended one that goes on, put the task for it, and
        settle that of the attempt. `notice`: as in `save`.

        Returns "ended"; "changed" if another attempt has taken the job, or the job has changed since `job.version`;
        "signalled" if a signal is there that the suspended iteration waits for.
        """
        shard, name = self._place(job.id)
        record, row = self._with_task(job, shard)
        own = _json(job.own) if job.own and record.suspended else ""
        waits_for = compact_json(record.waits_for if record.suspended else False)
        words = (name, holder, job.version, _json(record), record.due, line_of(log), own, waits_for)
        beside = (self._row_of(notice, job.id), tube_of(job.id.kind))
        return str(await self._store.run("end_iteration", shard, *words, *beside, *row))

    def _row_of(self, notice: Notice | None, job_id: JobId) -> str:
        """Return the row of the task of a notice, as JSON."""
        task = NewTask(notice.encode(), job_id.tenant, job_id.name) if notice else None
        return compact_json(task.row(self._ids.next()) if task else ())

    async def check_attempt(self, job_id: JobId, holder: str) -> str:
        """Return the state of the job; "lost" if the attempt `holder` does not hold it any more; "stopped" if it was
        stopped meanwhile, even if it was started again. What an attempt writes returns the same, and after "lost"
        nothing was written.
        """
        return await self._run_for("check_attempt", job_id, holder)

    async def write_step(self, job_id: JobId, holder: str, name: str, value: str) -> str:
        """Write a result of the iteration. Returns as `check_attempt`."""
        return await self._run_for("write_step", job_id, holder, name, value)

    async def write_line(self, job_id: JobId, holder: str, log: str, name: str = "", value: str = "") -> str:
        """Write a line of the log, and the mark by which a repetition knows it. Returns as `check_attempt`."""
        return await self._run_for("write_line", job_id, holder, name, value, line_of(log))

    async def write_unit(
        self, job_id: JobId, holder: str, name: str, value: str, log: str = "", own: tuple[str, OwnState] | None = None
    ) -> str:
        """Write what became of an item or an effect. `own`: the name under which a repetition finds the state of the
        job's own after it, and that state. Returns as `check_attempt`.
        """
        place, state = (own[0], _json(own[1])) if own else ("", "")
        return await self._run_for("write_unit", job_id, holder, name, value, line_of(log), place, state)

    async def write_intent(self, job_id: JobId, holder: str, state: JobState, name: str, value: str) -> str:
        """Write that an effect is about to begin, if the job has this state. Returns as `check_attempt`."""
        return await self._run_for("write_intent", job_id, holder, state, name, value)

    async def forget_intent(self, job_id: JobId, holder: str, name: str) -> str:
        """Remove what is recorded of an effect that certainly did not take place. Returns as `check_attempt`."""
        return await self._run_for("forget_intent", job_id, holder, name)

    async def write_own_state(self, job_id: JobId, holder: str, place: str, own: OwnState) -> str:
        """Write the state of the job's own. Returns as `check_attempt`."""
        return await self._run_for("write_own_state", job_id, holder, place, _json(own))

    async def end_attempt(self, job_id: JobId, holder: str) -> str:
        """Write that the attempt ends in order, before its iteration. Returns as `check_attempt`."""
        return await self._run_for("end_attempt", job_id, holder)

    async def _run_for(self, verb: str, job_id: JobId, holder: str, *words: str) -> str:
        """Run a function for the attempt `holder`."""
        shard, name = self._place(job_id)
        return str(await self._store.run(verb, shard, name, holder, *words))

    async def send_signal(self, job: StoredJob, signal: str, entry: str, most: int, log: str, *, wakes: bool) -> str:
        """Store a signal with the id `signal`. `wakes`: the job is stored with it, and gets a task.

        Returns "sent", also for a repetition; "changed" if the job has not `job.version` any more; "full" if `most`
        signals wait.
        """
        shard, name = self._place(job.id)
        digest = blake2b(signal.encode(), digest_size=12).hexdigest()
        words: tuple[str | int, ...] = (name, job.version, digest, entry, most, line_of(log))
        if not wakes:
            return str(await self._store.run("send_signal", shard, *words, "", "", ""))
        record, row = self._with_task(job, shard)
        woken = (_json(record), record.due, tube_of(job.id.kind))
        return str(await self._store.run("send_signal", shard, *words, *woken, *row))

    async def signals(self, job_id: JobId) -> list[str]:
        """Return the signals that wait for a job, the oldest first."""
        shard, name = self._place(job_id)
        return list(await self._store.command("LRANGE", KEYS["job_signals"].at(shard, name), 0, -1))

    async def take_signal(self, job_id: JobId, holder: str, entry: str, name: str, value: str) -> str:
        """Remove a signal and write the step that has it. Returns the state of the job; "lost" if the attempt `holder`
        does not hold it any more, "taken" if the signal is gone.
        """
        return await self._run_for("take_signal", job_id, holder, entry, name, value)

    async def count_loss(self, job: StoredJob, log: str) -> int:
        """Count the attempt `job.holder` as lost. Returns how many were, in a row, without storing a result."""
        shard, name = self._place(job.id)
        return int(await self._store.run("count_loss", shard, name, job.holder, line_of(log)))

    async def drop_log(self, job_id: JobId) -> None:
        shard, name = self._place(job_id)
        await self._store.command("DEL", KEYS["job_log"].at(shard, name))

    async def steps(self, job_id: JobId) -> Mapping[str, str]:
        """Return the results of the iteration that has begun."""
        shard, name = self._place(job_id)
        found: Mapping[str, str] = await self._store.command("HGETALL", KEYS["job_steps"].at(shard, name))
        return found

    async def units(self, job_id: JobId, names: list[str]) -> list[str | None]:
        """Return what is recorded of these units."""
        shard, name = self._place(job_id)
        return await self._store.read_hash(KEYS["job_units"].at(shard, name), *names) if names else []

    def _with_task(self, job: StoredJob, shard: int) -> tuple[JobRecord, tuple[str | int, ...]]:
        """Return the record with the id of its task, and the task's row; without one if the job does nothing now."""
        moment = job.record.next
        if not moment or job.record.state in ENDED:
            return replace(job.record, task=""), ()
        task_id, lane = self._ids.next(), self._place(job.id)[1]
        task = NewTask(str(job.record.generation), job.id.tenant, lane, due=from_ms(moment))
        return replace(job.record, task=f"{shard}.{task_id}"), task.row(task_id)

    async def names(self, tenant: str, shard: int, after: int, most: int) -> list[tuple[JobId, int]]:
        """Return jobs of a tenant in one shard, each with the ms of its first start, as `page_by_score` does."""
        key = KEYS["jobs"].at(shard, tenant)
        return [(job_id_of(name), at) for name, at in await page_by_score(self._store, key, after, most)]

    async def keyed(self, tenant: str, kind: str, user: str) -> list[JobId]:
        """Return the jobs with keys of a kind and user, sorted."""
        shard, name = self._place(JobId(tenant, kind, user))
        return sorted(job_id_of(one) for one in await self._store.command("SMEMBERS", KEYS["job_keys"].at(shard, name)))

    async def counts(self, tenant: str) -> dict[JobState, int]:
        """Return how many jobs of a tenant have each state."""
        totals = dict.fromkeys(JobState, 0)
        for stored in await self._store.command_each("HGETALL", self._store.keys_of_shards("job_counts", tenant)):
            for state, count in stored.items():
                totals[JobState(state)] += int(count)
        return totals

    async def overdue(self, shard: int, before: int, start: int, most: int) -> list[JobId]:
        """Return the jobs of a shard whose next iteration was due before this moment (ms), from the number `start`
        on."""
        key = KEYS["jobs_due"].at(shard)
        found = await self._store.command("ZRANGEBYSCORE", key, "-inf", before, "LIMIT", start, most)
        return [job_id_of(name) for name in found]

    def _place(self, job_id: JobId) -> tuple[int, str]:
        return place_of(job_id, self._store.shards)


def place_of(job_id: JobId, shards: int) -> tuple[int, str]:
    """Return the shard of a job, and its name in keys."""
    base = f"{job_id.tenant}/{job_id.kind}.{job_id.user}"  # all keys of a kind and user are in one shard
    return crc32(base.encode()) % shards, key_name(job_id)


def key_name(job_id: JobId) -> str:
    """Return the name of a job in keys, which is also the lane of its tasks."""
    return f"{job_id.tenant}/{job_id.name}"


def job_id_of(name: str) -> JobId:
    """Return the job that has this name in keys."""
    tenant, _, rest = name.partition("/")
    place, _, user = rest.partition(".")
    kind, _, key = place.partition("~")
    return JobId(tenant, kind, user, key)


def _json(record: msgspec.Struct) -> str:
    return msgspec.json.encode(record).decode()
