"""The words of the house: states, statuses, reasons, verdicts, and the rules between them.

Pure: no Redis, no HTTP, no clock. `lua/shared/outcome.lua` applies the same ranks; a test holds the two tables
together.
"""

from enum import StrEnum


class DeliveryState(StrEnum):
    """Where a delivery is. `scheduled → released → finished`; `cancelled` and `expired` end it from either."""

    SCHEDULED = "scheduled"
    RELEASED = "released"
    FINISHED = "finished"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class Status(StrEnum):
    """What became of one recipient in one channel."""

    QUEUED = "queued"
    SENDING = "sending"
    SENT = "sent"
    DELIVERED = "delivered"
    READ = "read"
    FAILED = "failed"
    UNKNOWN = "unknown"
    NO_CONTACT = "no_contact"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class Reason(StrEnum):
    """Why a status is what it is. State and reason are two things: nobody parses text to learn what happened."""

    THROTTLED = "throttled"
    PROVIDER_DOWN = "provider_down"
    RECIPIENT_UNREACHABLE = "recipient_unreachable"
    BLOCKED = "blocked"
    PRIVACY = "privacy"
    CONTENT_REFUSED = "content_refused"
    ACCOUNT_STOPPED = "account_stopped"
    CRASHED = "crashed"
    TOO_LATE = "too_late"
    REACHED_ELSEWHERE = "reached_elsewhere"


class Verdict(StrEnum):
    """The five things a sender is told (D-17)."""

    SCHEDULED = "scheduled"
    ALL_REACHED = "all_reached"
    PARTLY = "partly"
    NOTHING_WORKED = "nothing_worked"
    NOBODY_TO_REACH = "nobody_to_reach"


class TaskState(StrEnum):
    """Where a task is. `locked` is not stored: it is a `ready` task that does not stand first in its lane."""

    WAITING = "waiting"
    READY = "ready"
    LOCKED = "locked"
    TAKEN = "taken"
    BURIED = "buried"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


# One table gives the next state: for each verb, from which states it leads where. docs/states.md is made from it, and
# tests/core hold the scripts to it, state by state and verb by verb. `None` is a task that does not exist (yet).
NEXT: dict[str, dict[TaskState | None, tuple[TaskState, ...]]] = {
    "put": {None: (TaskState.READY, TaskState.WAITING)},
    "due": {TaskState.WAITING: (TaskState.READY,)},
    "claim": {TaskState.READY: (TaskState.TAKEN,)},
    "extend": {TaskState.TAKEN: (TaskState.TAKEN,)},
    "settle": {
        TaskState.TAKEN: (
            *(TaskState.DONE, TaskState.FAILED, TaskState.WAITING, TaskState.READY),
            *(TaskState.BURIED, TaskState.CANCELLED),
        )
    },
    "release": {TaskState.TAKEN: (TaskState.READY, TaskState.WAITING, TaskState.CANCELLED)},
    "lease over": {TaskState.TAKEN: (TaskState.READY, TaskState.BURIED, TaskState.CANCELLED)},
    "expire": {TaskState.READY: (TaskState.EXPIRED,), TaskState.WAITING: (TaskState.EXPIRED,)},
    "bury": {TaskState.READY: (TaskState.BURIED,), TaskState.WAITING: (TaskState.BURIED,)},
    "kick": {TaskState.BURIED: (TaskState.READY,)},
    "cancel": {
        TaskState.READY: (TaskState.CANCELLED,),
        TaskState.WAITING: (TaskState.CANCELLED,),
        TaskState.BURIED: (TaskState.CANCELLED,),
        TaskState.TAKEN: (TaskState.TAKEN,),
    },
}

REACHED = frozenset({Status.SENT, Status.DELIVERED, Status.READ})
OPEN = frozenset({Status.QUEUED, Status.SENDING})

# Later evidence wins over earlier, never the other way round, so reports may come in any order and any number of times:
# a provider's report outranks what the attempt believed, and what was read was delivered. That nobody tries any more is
# no evidence of what became of an attempt: it takes nothing back.
RANK = {
    Status.QUEUED: 0,
    Status.SENDING: 1,
    Status.NO_CONTACT: 2,
    Status.SKIPPED: 2,
    Status.CANCELLED: 2,
    Status.EXPIRED: 2,
    Status.UNKNOWN: 3,
    Status.SENT: 4,
    Status.FAILED: 5,
    Status.DELIVERED: 6,
    Status.READ: 7,
}


def supersedes(new: Status, old: Status) -> bool:
    """Whether `new` may take the place of `old`. The one way back is `sending → queued`: the attempt was put off."""
    return RANK[new] > RANK[old] or (old is Status.SENDING and new is Status.QUEUED)


def best(statuses: list[Status]) -> Status:
    """The status of a recipient with several contacts in one channel: reached if any contact was, open while any is
    open.
    """
    for wanted in (Status.READ, Status.DELIVERED, Status.SENT, Status.SENDING, Status.QUEUED, Status.UNKNOWN):
        if wanted in statuses:
            return wanted
    return statuses[0]


def verdict(state: DeliveryState, reachable: int, reached: int) -> Verdict:
    """What the sender is told. `reachable`: recipients with a contact in any channel; `reached`: those who got it."""
    if reachable == 0:
        return Verdict.NOBODY_TO_REACH
    if state is DeliveryState.SCHEDULED:
        return Verdict.SCHEDULED
    if reached == reachable:
        return Verdict.ALL_REACHED
    if reached or state is DeliveryState.RELEASED:
        return Verdict.PARTLY
    return Verdict.NOTHING_WORKED
