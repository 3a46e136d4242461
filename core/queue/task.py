"""The values that go into the queue and come out of it: frozen, without Redis.

`NewTask` is put, `Task` is what a worker claims, `Settlement` is how its attempt ended, `TaskView` is what operators
see. Used by `core.queue.queue`, which has one method per verb.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple, TypedDict

import msgspec

from core.errors import Invalid
from core.model.clock import to_ms
from core.model.history_key import DEFAULT_TENANT
from core.model.json_form import compact_json
from core.model.states import TaskState
from core.queue.checks import check_tags, check_texts, check_time, check_type, storable

_TASK, _SETTLEMENT = "task", "settlement"  # whose value is wrong, for people
_MOST_ATTEMPTS = 1_000_000


class TaskOptions(TypedDict, total=False):
    """The options of a task besides its body: the fields of `NewTask`."""

    tenant: str
    lane: str
    priority: int
    due: datetime | None
    expires: datetime | None
    kind: str
    attempts: int
    user: str
    tags: Sequence[str]


@dataclass(frozen=True, slots=True)
class NewTask:
    """A task to put. `attempts` 0: as many as the tube allows. `reply`: the client that is notified of its end."""

    body: str
    tenant: str = DEFAULT_TENANT
    lane: str = ""
    priority: int = 5
    due: datetime | None = None
    expires: datetime | None = None
    kind: str = ""
    attempts: int = 0
    user: str = ""
    tags: Sequence[str] = ()
    reply: str = ""

    def row(self, task_id: str) -> tuple[str | int, ...]:
        """Return the task's arguments of `lua/queue/functions/put.lua`.

        Raises TypeError; Invalid TENANT_MALFORMED, TAG_MALFORMED, PRIORITY_OUT_OF_RANGE, ATTEMPTS_OUT_OF_RANGE,
        LONE_SURROGATE, TEXT_TOO_LONG.
        """
        tags = "" if self.tags == () else "\n".join(check_tags(_TASK, self.tags))
        tenant, lane, kind, user, reply = self.tenant, self.lane, self.kind, self.user, self.reply
        check_texts(_TASK, body=self.body, tags=tags, tenant=tenant, lane=lane, kind=kind, user=user, reply=reply)
        if not tenant:
            raise Invalid("TENANT_MALFORMED", "A task has a tenant.", "tenant")
        self._check_numbers()
        due, expires = to_ms(self.due) if self.due else "", to_ms(self.expires) if self.expires else ""
        fields = (tenant, lane, int(self.priority), due, expires, kind, int(self.attempts) or "")
        return (task_id, *fields, user, tags, reply, self.body)

    def _check_numbers(self) -> None:
        check_type(_TASK, "priority", self.priority, int)
        check_type(_TASK, "attempts", self.attempts, int)
        if not 0 <= self.priority < 1000:
            raise Invalid("PRIORITY_OUT_OF_RANGE", "A priority is from 0 to 999; lower goes first.", "priority")
        if not 0 <= self.attempts <= _MOST_ATTEMPTS:
            raise Invalid("ATTEMPTS_OUT_OF_RANGE", f"Attempts are from 0 to {_MOST_ATTEMPTS}.", "attempts")
        for name, time in (("due", self.due), ("expires", self.expires)):
            if time is not None:
                check_time(_TASK, name, time)


class Task(msgspec.Struct, frozen=True):
    """A claimed task. `token`: a number and the owner; it is valid only with this owner. `started`, `claimed`,
    `expires`: server ms. `started` is the first claim since the task was last returned properly, so it is earlier than
    `claimed` after a crash.

    `left`: entries still to do, 0 for a task without entries. `attachment`: empty for ordinary tasks; for parcels
    `couriers.sending.parcel` decodes it.
    """

    shard: int
    id: str
    token: str
    attempts: int
    started: int
    claimed: int
    body: str
    checkpoint: str
    left: int
    kind: str
    lane: str
    expires: int
    user: str = ""
    tenant: str = ""
    attachment: tuple[str, ...] = ()

    @property
    def crashed(self) -> bool:
        """Return whether an earlier attempt ended without settling or releasing the task."""
        return self.started < self.claimed or self.attempts > 1

    @property
    def task_id(self) -> str:
        """The public id, which `put` returned: `<shard>.<id>`."""
        return f"{self.shard}.{self.id}"

    @classmethod
    def of(cls, shard: int, now: int, row: Sequence[Any]) -> "Task":
        """Decode a row of `lua/queue/functions/claim.lua`."""
        task_id, token, attempts, started, body, checkpoint, left, kind, lane, expires, user, tenant, *attachment = row
        return cls(
            shard=shard,
            id=task_id,
            token=str(token),
            attempts=attempts,
            started=int(started),
            claimed=now,
            body=body,
            checkpoint=checkpoint,
            left=int(left or 0),
            kind=kind,
            lane=lane,
            expires=int(expires or 0),
            user=user,
            tenant=tenant,
            attachment=tuple(attachment),
        )


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """The request of a worker: up to `limit` tasks, or fewer once they have `budget` entries (0: as many as `limit`).
    `max_sleep`: the longest time until this worker claims again.
    """

    tube: str
    owner: str
    limit: int
    lease: timedelta
    max_sleep: timedelta
    account: str = ""
    budget: int = 0

    def words(self) -> tuple[str | int, ...]:
        """Return the arguments of `lua/queue/functions/claim.lua`."""
        lease_ms, sleep_ms = (int(span.total_seconds() * 1000) for span in (self.lease, self.max_sleep))
        return (self.tube, self.owner, self.account, self.limit, self.budget or self.limit, lease_ms, sleep_ms)


@dataclass(frozen=True, slots=True)
class Claim:
    """The result of a claim. All times are the server's ms; -1 means never.

    `clock`: `now` with its fraction. `next_at`: when a task falls due, a lease ends or a task expires; only the worker
    that is the `keeper` of the timer claims then. `throttles`: how many are in force in this tube. `opens_at`: when a
    throttle or the tube's pace allows the next task. `asked`: when the claim was sent, by time.monotonic, so before
    `now`.
    """

    now: int
    clock: float
    next_at: int
    keeper: bool
    throttles: int
    opens_at: int
    tasks: Sequence[Task]
    asked: float


@dataclass(frozen=True, slots=True)
class Extension:
    """The answer to an extended lease. `lease_valid` False: another worker may have the task; stop and write nothing.
    `skip`: recipients of a parcel that were cancelled meanwhile.
    """

    lease_valid: bool
    cancelled: bool = False
    skip: frozenset[str] = frozenset()


# Characters of an error that are stored with its task.
_ERROR_LENGTH = 500


def _one_line(error: str) -> str:
    return " ".join(storable(error[: 4 * _ERROR_LENGTH]).split())[:_ERROR_LENGTH]


class SettleResult(StrEnum):
    """The end of an attempt, as the worker reports it."""

    DONE = "done"
    FAILED = "failed"
    RETRY = "retry"
    BURY = "bury"


class Settled(StrEnum):
    """The state of a task after `settle` or `release`. STALE: the token is no longer valid, nothing was changed."""

    DONE = "done"
    FAILED = "failed"
    WAITING = "waiting"
    READY = "ready"
    BURIED = "buried"
    CANCELLED = "cancelled"
    STALE = "stale"


@dataclass(frozen=True, slots=True)
class Settlement:
    """The end of an attempt, as `lua/queue/functions/settle.lua` takes it. `due`: the server's ms of the next attempt,
    0: at once. `body` "": unchanged. For parcels: `outcomes` that are known, and `unclear`: outcomes of entries that go
    on but may have been sent to, in case no further attempt is made. `error`: why the attempt failed, for operators; ""
    leaves the one before.
    """

    result: SettleResult = SettleResult.DONE
    outcomes: Sequence[Any] = ()
    due: int = 0
    checkpoint: str = ""
    unclear: Sequence[Any] = ()
    body: str = ""
    answer: str = ""
    error: str = ""

    def row(self, task: Task) -> tuple[str | int, ...]:
        """Return the attempt's arguments of `lua/queue/functions/settle.lua`.

        Raises TypeError; Invalid LONE_SURROGATE, TEXT_TOO_LONG; ValueError for outcomes that JSON cannot have.
        """
        check_texts(_SETTLEMENT, checkpoint=self.checkpoint, body=self.body, answer=self.answer)
        outcomes, unclear = (compact_json(list(items)) if items else "" for items in (self.outcomes, self.unclear))
        error = _one_line(self.error)
        end = (self.result, self.due, self.checkpoint, unclear, outcomes, self.body, self.answer, error)
        return (task.id, task.token, *end)


class TaskView(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A task as operators see it. What the task does not have is None, and absent in JSON. Times are unix ms.

    `waits_for`: the first task of its lane, if its state is `locked`; `ahead`: how many stand before it. `started`,
    `lease`: of a taken task, when its attempt began and its lease ends. `error`: why the last attempt that failed did,
    at `erred`. `buried`: since when. `cancel`: "1" if a running task was cancelled. `history`, `left`: only of parcels.
    `ended`, `answer`: only of an ended task that is kept.
    """

    id: str
    state: TaskState
    tube: str | None = None
    tenant: str | None = None
    lane: str | None = None
    kind: str | None = None
    user: str | None = None
    tags: Sequence[str] | None = None
    priority: int | None = None
    order: int | None = None
    due: int | None = None
    expires: int | None = None
    attempts: int | None = None
    owner: str | None = None
    history: str | None = None
    left: int | None = None
    body: str | None = None
    checkpoint: str | None = None
    cancel: str | None = None
    answer: str | None = None
    ended: int | None = None
    started: int | None = None
    lease: int | None = None
    buried: int | None = None
    error: str | None = None
    erred: int | None = None
    ahead: int | None = None
    waits_for: str | None = None

    @classmethod
    def read(cls, task_id: str, stored: Mapping[str, str]) -> "TaskView":
        """Read the facts that `lua/operations/functions/view_tasks.lua` returns."""
        fields: dict[str, Any] = {**stored, "id": task_id}
        if "tags" in stored:
            fields["tags"] = stored["tags"].split("\n")
        return msgspec.convert(fields, cls, strict=False)  # not strict: Redis holds numbers as text


def viewed_facts(row: Sequence[str]) -> dict[str, str]:
    """Read a row of `lua/operations/functions/view_tasks.lua`; {} if there is no such task."""
    return dict(zip(row[::2], row[1::2], strict=True))


class TaskPage(NamedTuple):
    """Part of a listing. `cursor` continues it; None: this was the last page."""

    tasks: Sequence[TaskView]
    cursor: str | None


class CancelResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """`cancelled`: tasks that were ended. `flagged`: running tasks whose workers are notified. `left`: tasks of jobs,
    and `left_parcels`: parcels of deliveries, which are left alone because their tube was not named.
    """

    cancelled: int
    flagged: int
    left: int = 0
    left_parcels: int = 0

    def __add__(self, other: "CancelResult") -> "CancelResult":
        sums = (getattr(self, name) + getattr(other, name) for name in self.__struct_fields__)
        return CancelResult(*sums)


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """Selects tasks by what they have in common; "" matches everything. `kind` is a prefix. Raises TypeError: a number
    would match nothing.
    """

    user: str = ""
    tenant: str = ""
    lane: str = ""
    kind: str = ""
    tag: str = ""
    tube: str = ""
    state: str = ""

    def __post_init__(self) -> None:
        check_texts("filter", **asdict(self))

    @property
    def is_indexed(self) -> bool:
        """Return whether an index finds these tasks: by user, tag, lane, kind or tenant."""
        return any((self.user, self.tag, self.lane, self.kind, self.tenant))

    @property
    def has_mark(self) -> bool:
        """Return whether an index names just these tasks and some more: by user, tag, lane or kind."""
        return any((self.user, self.tag, self.lane, self.kind))

    def index(self) -> tuple[str, str]:
        """Return (field, value) of the index that usually has the fewest tasks. Raises Invalid SELECTION_EMPTY."""
        for name in ("user", "tag", "lane", "kind", "tenant"):
            if value := getattr(self, name):
                return name, value
        raise Invalid("SELECTION_EMPTY", "Choose tasks by user, tag, lane, kind or tenant.")

    def matches(self, task: TaskView) -> bool:
        """Return whether a task is selected."""
        wanted = {name: getattr(self, name) for name in ("user", "tenant", "lane", "tube", "state")}
        if any(value and getattr(task, name) != value for name, value in wanted.items()):
            return False
        if self.tag and self.tag not in (task.tags or ()):
            return False
        return (task.kind or "").startswith(self.kind)
