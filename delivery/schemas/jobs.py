"""The types of jobs: bodies, queries and responses."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from core.jobs.mending.steps import StepView
from core.jobs.states import JobState
from core.jobs.units import Outcome, UnitStatus, UnitView
from core.jobs.views import JobView
from delivery.schemas.requests import Id, RequestModel, ShortText, Time

Kind = Annotated[str, Meta(pattern="^[a-z][a-z0-9_-]{0,63}$")]

Parameters = Annotated[
    dict[str, Any], Meta(description="what the job works with; at most 64 KiB; absent: as before, or none")
]
TimeZone = Annotated[
    str, Meta(max_length=64, description="the user's, for example Europe/Moscow; absent: as before, or UTC")
]


By = Literal["user", "admin"]

WallTime = Annotated[str, Meta(pattern="^([01][0-9]|2[0-3]):[0-5][0-9]$", description="for example 09:00")]


class JobSchedule(RequestModel, frozen=True):
    """When iterations begin, in place of the schedule of the kind. `seconds`: the period; `cron`: five fields, on the
    wall clock of the user; neither: once. `begin`, `end`: the daily window.
    """

    seconds: Annotated[float, Meta(ge=1, le=31622400)] | UnsetType = UNSET
    cron: Annotated[str, Meta(min_length=9, max_length=200)] | UnsetType = UNSET
    begin: WallTime | UnsetType = UNSET
    end: WallTime | UnsetType = UNSET


class JobRequest(RequestModel, frozen=True):
    """A job to start: of a user, of a kind that a process of this installation runs. `admin` needs the scope admin; a
    job that an administrator has paused, and its user then stopped, is started by an administrator only.
    """

    kind: Kind
    user: Id
    key: Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{1,64}$")] | UnsetType = UNSET
    parameters: Parameters | UnsetType = UNSET
    timezone: TimeZone | UnsetType = UNSET
    schedule: JobSchedule | UnsetType = UNSET
    at: Time | UnsetType = UNSET
    by: By = "user"


class JobChange(RequestModel, frozen=True):
    """Who changes the job; `admin` needs the scope admin. A pause of an administrator is not ended by a user."""

    by: By = "user"
    reason: ShortText = ""


class JobStop(JobChange, frozen=True):
    """The end of a job. `abandon`: at once; what its iteration has done is not taken back by compensations."""

    abandon: bool = False


class JobParameters(RequestModel, frozen=True):
    """A change of parameters. Of `parameters`, `null` removes one, and those that are not named stay."""

    parameters: Parameters | UnsetType = UNSET
    timezone: TimeZone | UnsetType = UNSET
    schedule: JobSchedule | UnsetType = UNSET
    by: By = "user"


class JobSignal(RequestModel, frozen=True):
    """A signal for a job. `id`: a repetition with it within a day does nothing. `data`: at most 64 KiB."""

    name: Annotated[str, Meta(min_length=1, max_length=200)]
    data: Any = None
    id: Annotated[str, Meta(max_length=200)] = ""
    by: By = "user"


JobCursor = Annotated[str, Meta(pattern=r"^[0-9]{0,15}$", extra={"pattern": "CURSOR_MALFORMED"})]


class JobFilter(RequestModel, frozen=True):
    """Which jobs: all that match what is given."""

    state: JobState | UnsetType = UNSET
    kind: Kind | UnsetType = UNSET
    q: Annotated[str, Meta(max_length=200, description="a text of the parameters or the own state")] | UnsetType = UNSET
    reason: (
        Annotated[str, Meta(max_length=200, description="a text of why it does not run, for example of its failure")]
        | UnsetType
    ) = UNSET


class JobQuery(JobFilter, frozen=True):
    """The filter and the page of a list of jobs. A filtered page may be shorter than `limit`."""

    cursor: JobCursor | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=1000, extra_json_schema={"default": 100})] | UnsetType = UNSET


class LogQuery(RequestModel, frozen=True):
    """`after`: the number of the last line that the client has seen; Last-Event-ID wins."""

    after: Annotated[str, Meta(pattern="^[0-9]{1,15}$")] | UnsetType = UNSET


class JobPage(Struct):
    """A page of jobs. `counts`: how many jobs of the tenant have each state. `next`: the cursor of the next page."""

    jobs: list[JobView]
    counts: dict[JobState, int]
    next: str | None


UnitId = Annotated[str, Meta(min_length=1, max_length=2000, description="as in the list, for example effect:apply 7")]


class UnitQuery(RequestModel, frozen=True):
    """The filter and the page of a list of units. A page may be shorter or longer than `limit`."""

    status: UnitStatus | UnsetType = UNSET
    cursor: Annotated[str, Meta(pattern="^[0-9]{1,20}$")] | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=1000, extra_json_schema={"default": 100})] | UnsetType = UNSET


class UnitPage(Struct):
    """A page of units and effects, in no order. `next`: the cursor of the next page."""

    units: list[UnitView]
    next: str | None


class UnitResolution(RequestModel, frozen=True):
    """The outcome of a unit or an effect whose own is not known. `result`: the value that a done effect returns."""

    unit: UnitId
    outcome: Outcome
    result: Any = None
    by: By = "user"


class UnitReset(RequestModel, frozen=True):
    """A unit or an effect to be done again."""

    unit: UnitId
    by: By = "user"


class StepQuery(RequestModel, frozen=True):
    """The page of a list of steps."""

    cursor: Annotated[str, Meta(pattern="^[0-9]{1,20}$")] | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=1000, extra_json_schema={"default": 100})] | UnsetType = UNSET


class StepPage(Struct):
    """A page of what an iteration has stored, in the order in which it was stored first. `next`: the cursor of the next
    page.
    """

    steps: list[StepView]
    next: str | None


class JobQuestion(RequestModel, frozen=True):
    """The parameters of a query, by their names."""

    parameters: Annotated[dict[str, Any], Meta(description="at most 64 KiB")] | UnsetType = UNSET


class JobAnswer(Struct):
    """What the query has returned."""

    answer: Any


class JobReset(RequestModel, frozen=True, rename={"from_": "from"}):
    """The step from which an iteration is repeated: a step by its name, or what the list of steps shows. `again`: also
    the effects and items from there on are done again, otherwise they keep their results. `dry_run`: nothing changes.
    """

    from_: Annotated[str, Meta(min_length=1, max_length=2000, description="for example search, or effect:apply 7")]
    again: bool = False
    dry_run: bool = False
    by: By = "user"


class JobResetResult(Struct):
    """The job, and of its iteration what was dropped and what has stayed, of each the first 1000; in a dry run, what
    would be.
    """

    job: JobView
    dropped: Sequence[StepView]
    kept: Sequence[StepView]


class JobsChange(RequestModel, frozen=True, kw_only=True):
    """Which jobs are changed: those of the filter that have not changed since `before` (Unix ms), at most `expected`.
    `cursor`: where the call before has stopped. `admin` needs the scope admin.
    """

    filter: JobFilter
    before: Annotated[int, Meta(ge=0, le=2**52)]
    expected: Annotated[int, Meta(ge=1, le=2**40)]
    cursor: JobCursor | UnsetType = UNSET
    by: By = "user"


class JobsPause(JobsChange, frozen=True, kw_only=True):
    """Jobs to pause. `reason`: shown to the user."""

    reason: ShortText = ""


class JobsStop(JobsPause, frozen=True, kw_only=True):
    """Jobs to stop. `abandon`: at once; what their iterations have done is not taken back by compensations."""

    abandon: bool = False


class JobsReset(JobsChange, frozen=True, kw_only=True, rename={"from_": "from"}):
    """Jobs whose iteration is repeated from a step. `again`: also effects and items from there on are done again."""

    from_: Annotated[str, Meta(min_length=1, max_length=2000, description="for example search, or effect:apply 7")]
    again: bool = False


class JobsResolution(JobsChange, frozen=True, kw_only=True):
    """The outcome of everything unknown whose id begins with `unit`. `result`: the value that a done effect returns."""

    unit: Annotated[str, Meta(min_length=1, max_length=2000, description="for example effect:apply")]
    outcome: Outcome
    result: Any = None


class SignInRequest(RequestModel, frozen=True):
    """Who signs in to which service; the services are in the file ADA_SIGN_IN."""

    service: ShortText
    user: Id


class SignInBegun(Struct):
    """The address to which the user goes. It is valid once, until `expires_at`."""

    url: str
    expires_at: datetime


class SignedInList(Struct):
    """The services that a user has signed in to, as ADA_SIGN_IN names them."""

    services: list[str]


class CallbackQuery(Struct, frozen=True):
    """The parameters that a service adds to the callback of a sign-in. Services add parameters of their own."""

    state: Annotated[str, Meta(max_length=256)]
    code: Annotated[str, Meta(max_length=4096)] | UnsetType = UNSET
    error: ShortText | UnsetType = UNSET
