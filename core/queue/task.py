"""What goes into the queue and what comes out: frozen values, no Redis.

Before: whoever puts. After: `core.queue.queue`, one method per verb.
"""

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from core.errors import Invalid, NotFound
from core.model.clock import to_ms
from core.model.compact_json import compact_json

_DIGITS = 12  # to the base 36: enough for the ns of 150 years
_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class NewTask:
    """A task to be put. `attempts` 0: as many as the tube allows. `reply`: the client that is told of its end."""

    body: str
    tenant: str = "default"
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
        """The arguments of `lua/queue/put.lua`. Raises Invalid TAG_MALFORMED, PRIORITY_OUT_OF_RANGE."""
        if any("\n" in tag or not tag for tag in self.tags):
            raise Invalid("TAG_MALFORMED", "A tag is one line of text.", "tags")
        if not 0 <= self.priority < 1000:
            raise Invalid("PRIORITY_OUT_OF_RANGE", "A priority is from 0 to 999; lower goes first.", "priority")
        times = tuple(to_ms(time) if time else "" for time in (self.due, self.expires))
        facts = (self.tenant, self.lane, self.priority, *times, self.kind, self.attempts or "")
        return (task_id, *facts, self.user, "\n".join(self.tags), self.reply, self.body)


@dataclass(frozen=True, slots=True)
class Task:
    """A claimed task. `started`, `claimed`, `expires`: server ms. `started` is the first claim since the task was last
    returned properly, so it is earlier than `claimed` after a crash.

    `left`: entries still to do, 0 for a task without entries. `attachment`: empty for ordinary tasks; for parcels
    `core.courier.parcel` decodes it.
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
        """Whether an earlier attempt ended without settling or releasing the task."""
        return self.started < self.claimed or self.attempts > 1

    @property
    def name(self) -> str:
        """The public id: `<shard>.<id>`."""
        return f"{self.shard}.{self.id}"

    @classmethod
    def of(cls, shard: int, now: int, row: Sequence[Any]) -> "Task":
        """Decode a row of `lua/queue/claim.lua`."""
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
class Claim:
    """What a claim brought. All times are the server's ms; -1 means never.

    `clock`: `now` with its fraction, for those who sleep until a moment. `next_at`: when time brings something about;
    only the `keeper` need look then. `opens_at`: when a held account or a tube's pace may go on.
    """

    now: int
    clock: float
    next_at: int
    keeper: bool
    waits: int
    opens_at: int
    tasks: Sequence[Task]


@dataclass(frozen=True, slots=True)
class Extension:
    """`lease_valid` False: the lease was lost; stop, and write nothing."""

    lease_valid: bool
    cancelled: bool = False
    skip: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Settlement:
    """The end of an attempt, as `lua/queue/settle.lua` takes it. `due`: server ms, 0: at once; `unclear`: outcomes of
    those
    who go on and may have been sent to, should nobody try again; `body` "": unchanged.
    """

    result: str = "done"
    outcomes: Sequence[Any] = ()
    due: int = 0
    checkpoint: str = ""
    unclear: Sequence[Any] = ()
    body: str = ""
    answer: str = ""

    def row(self, task: Task) -> tuple[str | int, ...]:
        outcomes, unclear = (compact_json(list(items)) if items else "" for items in (self.outcomes, self.unclear))
        told = (self.result, self.due, self.checkpoint, unclear, outcomes, self.body, self.answer)
        return (task.id, task.token, *told)


@dataclass
class TaskIds:
    """Ids of one process: `<unix ns, 12 digits to the base 36>.<process>`, short because each stands in several
    indexes. They sort by time, within one process strictly, and never collide: no process gives one moment twice, and
    each has its own name (K-23).
    """

    client: str = field(default_factory=lambda: secrets.token_hex(4))
    _last: int = 0

    def next(self) -> str:
        self._last = max(self._last + 1, time.time_ns())
        return f"{_base36(self._last)}.{self.client}"


def put_ms(task_id: str) -> float | None:
    """When a task was put, by its id (without shard); of a parcel: when its delivery was taken."""
    moment = task_id.partition(".")[0]
    if len(moment) == _DIGITS and moment.isalnum():
        return int(moment, 36) / 1e6
    return int(moment) / 1e6 if moment.isdecimal() else None


def _base36(number: int) -> str:
    digits = []
    for _ in range(_DIGITS):
        number, digit = divmod(number, 36)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """Tasks by what they have in common; what is "" is not asked. `kind` is a prefix. Raises Invalid if nothing is
    asked for that an index knows.
    """

    user: str = ""
    tenant: str = ""
    lane: str = ""
    kind: str = ""
    tag: str = ""
    tube: str = ""
    state: str = ""

    @property
    def is_indexed(self) -> bool:
        return any((self.user, self.tag, self.lane, self.kind, self.tenant))

    def index(self) -> tuple[str, str]:
        """The index with the fewest tasks, by experience: (field, value)."""
        for name in ("user", "tag", "lane", "kind", "tenant"):
            if value := getattr(self, name):
                return name, value
        raise Invalid("SELECTION_EMPTY", "Choose tasks by user, tag, lane, kind or tenant.")

    def fits(self, task: Mapping[str, Any]) -> bool:
        """Whether a task, as it is peeked at, is meant."""
        wanted = {name: getattr(self, name) for name in ("user", "tenant", "lane", "tube", "state")}
        if any(value and task.get(name) != value for name, value in wanted.items()):
            return False
        if self.tag and self.tag not in task.get("tags", ()):
            return False
        return str(task.get("kind", "")).startswith(self.kind)


def split_id(task_id: str) -> tuple[int, str]:
    """(shard, id inside it). Raises NotFound TASK_NOT_FOUND."""
    shard, dot, name = task_id.partition(".")
    if not dot or not shard.isdecimal() or len(shard) > 5 or not name:
        raise NotFound("TASK_NOT_FOUND", "There is no such task.")
    return int(shard), name
