"""A stored job: frozen values, no Redis."""

import re
from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.errors import Invalid, NotFound
from core.jobs.schedule import Schedule, StoredSchedule
from core.jobs.states import WORKING, Actor, JobState
from core.model.clock import from_ms, to_ms
from core.model.json_form import FAULTS, encoded

KIND = re.compile(r"[a-z][a-z0-9_-]{0,63}")
"""The name of a kind of job."""

KEY = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Distinguishes a job from the others of its kind and user."""


LARGEST_PARAMETERS = 64 * 1024
"""Bytes of JSON."""

_LONGEST_LINE = 1000


class JobId(Struct, frozen=True, order=True):
    """A user has one job of a kind, and more with keys. `user`: the id of a user as text."""

    tenant: str
    kind: str
    user: str
    key: str = ""

    @property
    def name(self) -> str:
        """The id inside its tenant, as in addresses of the API: `KIND.USER`, or `KIND~KEY.USER`."""
        return f"{self.kind}~{self.key}.{self.user}" if self.key else f"{self.kind}.{self.user}"

    @classmethod
    def parse(cls, tenant: str, name: str) -> "JobId":
        """Read `name`. Raises NotFound JOB_NOT_FOUND."""
        place, dot, user = name.partition(".")
        kind, tilde, key = place.partition("~")
        if not dot or not user or not KIND.fullmatch(kind) or (tilde and not KEY.fullmatch(key)):
            detail = f"A job is named KIND.USER or KIND~KEY.USER, for example hunt.42, and not {name[:100]!r}."
            raise NotFound("JOB_NOT_FOUND", detail)
        return cls(tenant, kind, user, key)


class Parent(Struct, frozen=True):
    """The job that has started a child. `iteration`: which of its iterations, in which run of the job."""

    job: str
    iteration: str

    def signal_of(self, child: JobId) -> str:
        """Return the name of the signal that the parent gets when the child has ended."""
        return f"child {child.name} {self.iteration}"


class OwnState(Struct, frozen=True):
    """The state of a job's own, as JSON; `version`: that of the class from which it was made."""

    version: int
    data: Any


class JobRecord(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """Times in ms. `parameters`: what the job was started with. `paused_by`, `reason`: why it is not running, or what
    it waits for, or "". `service`: for whose sign-in it waits, "" for any. `resume_at`: when a pause ends by itself.
    `created`: when it was started first, `changed`: when its state was changed last, 0 if never since.

    `generation`: grows when the job is started or resumed; tasks of earlier generations do nothing. `task`: the id of
    the task that carries the next iteration. `iteration`: its number, from 0. `anchor`: when the first iteration was
    due, `due`: when this one is. `begun`: it has begun and not ended; `suspended`: it sleeps until `due`, or until one
    of the signals `waits_for` comes.

    `parent`: the job that has started it; `children`: those that it has started and not waited for, which end with it;
    `result`: of a job that has finished. `own`: the state of its own with which this iteration begins. `schedule`: in
    place of that of its kind. `code`: the version of the class with which the iteration has begun; `compensates`:
    whether its code names compensations. `failures`: how many there were in a row; `report_at`: when
    its user is notified if they go on, 0 if that was done.
    """

    state: JobState
    parameters: dict[str, Any] = {}
    timezone: str = "UTC"
    paused_by: Actor | None = None
    reason: str = ""
    service: str = ""
    resume_at: int = 0
    generation: int = 0
    task: str = ""
    iteration: int = 0
    anchor: int = 0
    due: int = 0
    begun: bool = False
    created: int = 0
    changed: int = 0
    last_run: int = 0
    suspended: bool = False
    waits_for: list[str] = []
    own: OwnState | None = None
    schedule: StoredSchedule | None = None
    parent: Parent | None = None
    children: list[str] = []
    result: msgspec.Raw = msgspec.Raw(b"null")
    code: str = ""
    compensates: bool = False
    failures: int = 0
    report_at: int = 0

    @property
    def has_task(self) -> bool:
        """Return whether the job has work to do, now or by itself later."""
        return self.next > 0

    @property
    def next(self) -> int:
        """Time of the next work (ms): its iteration, its compensations, or the end of its pause; 0: none by itself."""
        return self.due if self.state in WORKING else self.resume_at

    @property
    def takes_back(self) -> bool:
        """Return whether a stop first takes back what the iteration has done."""
        return self.begun and self.compensates and self.state in (JobState.RUNNING, JobState.PAUSED)


class StoredJob(Struct, frozen=True):
    """A job as it is stored; `version` grows with each change. `holder`: the attempt that has begun an iteration and
    has not ended in order, or "". `losses`: how many before it were lost in a row without storing a result. `own`: the
    last state of its own, also of an iteration that has not ended.
    """

    id: JobId
    record: JobRecord
    version: int = 0
    holder: str = ""
    losses: int = 0
    own: OwnState | None = None

    def waits_for_sign_in(self, service: str) -> bool:
        """Return whether the job was paused because the sign-in to this service had expired."""
        is_paused = self.record.state is JobState.PAUSED and self.record.paused_by is Actor.SIGN_IN
        return is_paused and self.record.service in ("", service)


class ResetPoint(Struct, frozen=True):
    """The result from which on those of an iteration are dropped. `again`: also those of effects and items."""

    name: str
    again: bool = False


def checked_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters in the form in which they are stored. Raises Invalid PARAMETERS_TOO_LARGE,
    PARAMETERS_MALFORMED.
    """
    try:
        text = encoded(parameters)
    except FAULTS as fault:
        raise Invalid("PARAMETERS_MALFORMED", f"Parameters are what JSON has: {fault}.", "parameters") from None
    if len(text) > LARGEST_PARAMETERS:
        raise Invalid("PARAMETERS_TOO_LARGE", f"Parameters have at most {LARGEST_PARAMETERS} bytes.", "parameters")
    return msgspec.json.decode(text, type=dict[str, Any])


def merged_parameters(old: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters with these changes; None removes one. Raises as `checked_parameters`."""
    return checked_parameters({name: value for name, value in {**old, **changes}.items() if value is not None})


def line_of(text: str) -> str:
    """Return the text as one line that can be stored and shown: cut after 1000 characters, what is no Unicode
    replaced."""
    cut = text[:_LONGEST_LINE].encode(errors="replace").decode()
    return " ".join(cut.split("\n")).strip()


def zone_of(name: str) -> tzinfo:
    """Return the time zone with this name. Raises Invalid TIMEZONE_UNKNOWN."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise Invalid(
            "TIMEZONE_UNKNOWN", f"There is no time zone {name!r}; an example: Europe/Moscow.", "timezone"
        ) from None


def schedule_of(record: JobRecord, kind: Schedule | None) -> Schedule | None:
    """Return the schedule of a job. `kind`: that of its kind, None if that is gone."""
    return record.schedule.schedule if record.schedule else kind


def in_window(kind: Schedule | None, at: datetime, record: JobRecord) -> datetime:
    """Return `at`, or when the window of the job opens after it. `kind`: the schedule of its kind, None if that is
    gone.
    """
    schedule = schedule_of(record, kind)
    return schedule.in_window(at, zone_of(record.timezone)) if schedule else at


def due_again(record: JobRecord, kind: Schedule | None, now: datetime) -> JobRecord:
    """Return the record with the next iteration by its new schedule and zone; one that has begun stays as it is."""
    schedule = schedule_of(record, kind)
    if record.begun or schedule is None or not record.last_run:
        return record
    begun = from_ms(record.last_run)
    due = to_ms(schedule.next(begun, begun, now, zone_of(record.timezone)))
    return replace(record, anchor=record.last_run, due=due)
