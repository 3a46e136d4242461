"""Requests and responses about tubes and dead letters."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from core.model.states import TaskState
from core.queue import TubeStats
from core.queue.dead_letters import DeadLetterGroup
from core.queue.tubes import Pause
from delivery.schemas.requests import Name, RequestModel, ShortText, TaskCursor


class TubeView(Struct, frozen=True):
    """A tube. `stats`: its tasks by state and what has happened. `attempts` 0: the installation's setting. `pace`:
    tasks per second. `rate`: tasks ended per second in the last minute, null if it was not recorded. `paused`: who
    paused it, why and when.
    """

    name: str
    stats: TubeStats | None
    attempts: int
    pace: float | None
    rate: float | None
    paused: Pause | None


class TubeList(Struct, frozen=True):
    """`weights`: of the tenants whose turns are not 1. `overdue_ms`: how long due tasks have waited for any worker."""

    tubes: Sequence[TubeView]
    weights: dict[str, int]
    overdue_ms: int


class PauseRequest(RequestModel, frozen=True):
    """Why a tube is paused, for other operators."""

    reason: Annotated[str, Meta(min_length=1, max_length=300)]


class TubePatch(RequestModel, frozen=True):
    """`pace`: tasks per second over all processes; null for as many as there are workers."""

    pace: Annotated[float, Meta(ge=0.01, le=1_000_000)] | None


class WeightRequest(RequestModel, frozen=True):
    """`weight`: how many turns a tenant gets while another gets one."""

    weight: Annotated[int, Meta(ge=1, le=100)]


class WeightView(Struct, frozen=True):
    """The weight of a tenant."""

    tenant: str
    weight: int


class TaskCountQuery(RequestModel, frozen=True):
    """Which tasks are counted; at least one field is needed."""

    tube: Name | UnsetType = UNSET
    state: TaskState | UnsetType = UNSET
    tenant: Name | UnsetType = UNSET
    user: Name | UnsetType = UNSET
    lane: Name | UnsetType = UNSET
    kind_prefix: ShortText | UnsetType = UNSET
    tag: ShortText | UnsetType = UNSET


class TaskQuery(TaskCountQuery, frozen=True):
    """The filter and the page of a list of tasks."""

    cursor: TaskCursor | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=1000, extra_json_schema={"default": 100})] | UnsetType = UNSET


class TaskCancellationRequest(TaskCountQuery, frozen=True):
    """The conditions for the tasks to cancel; at least one of user, tenant, lane, kind_prefix, tag."""


class TaskPage(Struct):
    """A page of tasks of the queue. `next`: the cursor of the next page."""

    tasks: Sequence[Mapping[str, Any]]
    next: str | None


class TaskChangeRequest(TaskCancellationRequest, frozen=True, kw_only=True):
    """Which tasks are changed: those put and buried by `before` (Unix ms), at most `expected`. `cursor`: where the call
    before has stopped.
    """

    before: Annotated[int, Meta(ge=0, le=2**52)]
    expected: Annotated[int, Meta(ge=1, le=2**40)]
    cursor: TaskCursor | UnsetType = UNSET


class DeadLetterList(Struct, frozen=True):
    """`now`: the server's ms, up to which a change of a group may reach."""

    groups: Sequence[DeadLetterGroup]
    now: int


class DeadLetterChange(RequestModel, frozen=True):
    """A group of buried tasks, the ms of the newest burial to change, and how many tasks were seen: not more change."""

    tube: Annotated[str, Meta(min_length=1, max_length=300)]
    kind: Annotated[str, Meta(max_length=300)]
    error: Annotated[str, Meta(max_length=500)]
    before: Annotated[int, Meta(ge=0, le=2**52)]
    expected: Annotated[int, Meta(ge=1, le=2**40)]
