"""The notices of a job for its user and the webhooks of its tenant: put as a task in the step that changes the
job, so that no crash loses it. `jobs.notices` handles the tasks.
"""

from enum import StrEnum

import msgspec

from core.jobs.record import JobId, JobRecord, Parent, StoredJob, line_of
from core.jobs.states import Actor, Verb
from core.sentence import Sentence, Text

TUBE = "job-notices"
"""The tube of notices; the lane of a task is its job."""


class NoticeEvent(StrEnum):
    """An event of a job that its owner is notified of."""

    FAILED = "failed"
    KEEPS_FAILING = "keeps_failing"
    SIGN_IN_NEEDED = "sign_in_needed"
    LIMIT_REACHED = "limit_reached"
    FINISHED = "finished"
    WAITS_FOR_USER = "waits_for_user"
    ENDED = "ended"
    """Of which only its parent or its children are notified."""


class Notice(msgspec.Struct, frozen=True, omit_defaults=True):
    """`version`: of the job with this change. `service`: for whose sign-in the job waits, "" if that is not known.
    Times in ms. Of a job that has ended: `end`, how; `parent`, `children`: the jobs that are notified of it. `said`:
    the reason, if it is a sentence of Ada.
    """

    event: NoticeEvent
    tenant: str
    kind: str
    user: str
    version: int
    at: int
    reason: str = ""
    resumes_at: int = 0
    service: str = ""
    timezone: str = "UTC"
    key: str = ""
    parent: Parent | None = None
    children: list[str] = []
    end: str = ""
    said: Sentence | None = None
    result: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def job_id(self) -> JobId:
        return JobId(self.tenant, self.kind, self.user, self.key)

    @property
    def job(self) -> str:
        """The id of the job inside its tenant."""
        return self.job_id.name

    def encode(self) -> str:
        return msgspec.json.encode(self).decode()

    @classmethod
    def decode(cls, body: str) -> "Notice":
        return msgspec.json.decode(body, type=cls)


_PAUSES = {
    Actor.LIMIT: NoticeEvent.LIMIT_REACHED,
    Actor.SIGN_IN: NoticeEvent.SIGN_IN_NEEDED,
    Actor.USER: NoticeEvent.WAITS_FOR_USER,
}


_ENDS = {
    Verb.FINISH: "finished",
    Verb.FAIL: "failed",
    Verb.STOP: "stopped",
    Verb.ABANDON: "stopped",
    Verb.COMPENSATE: "stopped",
}
_STOPS = (Verb.STOP, Verb.ABANDON, Verb.TAKE_BACK)


def notice_of(verb: Verb, job: StoredJob, *, by_job: bool, said: Text = "") -> Notice | None:
    """Return the notice of a change, None if a person made the change. `job`: after the change, with its old
    version. `by_job`: the job itself made it. `said`: the reason.
    """
    event = _event_of(verb, job.record, by_job=by_job)
    if event is None:
        return None
    record, job_id = job.record, job.id
    return Notice(
        event,
        job_id.tenant,
        job_id.kind,
        job_id.user,
        job.version + 1,
        record.changed,
        record.reason,
        record.resume_at,
        record.service,
        record.timezone,
        job_id.key,
        record.parent if verb in _ENDS else None,
        record.children if verb in _ENDS or verb in _STOPS else [],
        _ENDS.get(verb, str(record.state)),
        _sentence(said),
        record.result,
    )


def keeps_failing(job: StoredJob, said: Text, at: int) -> Notice:
    """Return the notice that a job has failed for long and goes on. `job`: with its old version. `at`: ms."""
    job_id = job.id
    return Notice(
        NoticeEvent.KEEPS_FAILING,
        job_id.tenant,
        job_id.kind,
        job_id.user,
        job.version + 1,
        at,
        line_of(str(said)),
        timezone=job.record.timezone,
        key=job_id.key,
        said=_sentence(said),
    )


def _sentence(said: Text) -> Sentence | None:
    return said if isinstance(said, Sentence) else None


def _event_of(verb: Verb, record: JobRecord, *, by_job: bool) -> NoticeEvent | None:
    if (verb in _ENDS and record.parent) or (verb in _STOPS and record.children):
        return NoticeEvent.ENDED
    if verb is Verb.FAIL:
        return NoticeEvent.FAILED
    if verb is Verb.FINISH:
        return NoticeEvent.FINISHED
    if verb is Verb.PAUSE and by_job:
        return _PAUSES.get(record.paused_by or Actor.ADMIN)
    return None
