"""States, statuses, reasons and verdicts, and the rules between them.

Pure: no Redis, no HTTP, no clock. The Lua functions get the same tables (core/redis/constants.py).
"""

from enum import StrEnum


class DeliveryState(StrEnum):
    """The state of a delivery: `scheduled → released → finished`, or `cancelled` or `expired` from the first two: if it
    was cancelled as a whole, or if no recipient was tried to the end.
    """

    SCHEDULED = "scheduled"
    RELEASED = "released"
    FINISHED = "finished"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class Status(StrEnum):
    """The state of one recipient in one channel."""

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
    """The cause of the status of an outcome. Status and reason are two values, so that no text has to be parsed."""

    THROTTLED = "throttled"
    PROVIDER_DOWN = "provider_down"
    RECIPIENT_UNREACHABLE = "recipient_unreachable"
    BLOCKED = "blocked"
    PRIVACY = "privacy"
    CONTENT_REFUSED = "content_refused"
    ACCOUNT_STOPPED = "account_stopped"
    ANSWER_LOST = "answer_lost"  # there was no answer, or none that says whether the message was accepted
    CRASHED = "crashed"  # the worker died during the attempt
    TOO_LATE = "too_late"
    REACHED_ELSEWHERE = "reached_elsewhere"
    UNKNOWN_ELSEWHERE = "unknown_elsewhere"
    FAILED_ELSEWHERE = "failed_elsewhere"
    NO_RECEIPT = "no_receipt"
    OPTED_OUT = "opted_out"
    PERSON_BLOCKED = (
        "person_blocked"  # of `skipped`: an administrator blocked the person, or the guardian for the child
    )
    SENDER_BLOCKED = "sender_blocked"  # of `failed`: the sender was blocked or deleted after it had ordered the message
    SENDER_NOT_ALLOWED = "sender_not_allowed"  # of `failed`: it may write to the recipient no more
    CONTACT_REMOVED = "contact_removed"  # of `cancelled`: the address is the person's no more
    ANSWERED = "answered"  # of `read`: an answer of the person shows it; of `skipped`: no further message is needed
    QUESTION_CLOSED = "question_closed"
    ENOUGH_ANSWERS = "enough_answers"  # as many have confirmed as the question needs
    REACHED_MEANWHILE = "reached_meanwhile"  # left out of a follow-up
    IN_DAY_MESSAGE = "in_day_message"  # of `sent`: as a part of the recipient's one message of the day


class Verdict(StrEnum):
    """The summary of a delivery for its sender (D-17): one for each situation (docs/decisions/0034)."""

    SCHEDULED = "scheduled"
    IN_PROGRESS = "in_progress"
    PARTLY = "partly"
    ALL_REACHED = "all_reached"
    SOME_REACHED = "some_reached"
    NOTHING_WORKED = "nothing_worked"
    CANCELLED = "cancelled"
    NOBODY_TO_REACH = "nobody_to_reach"


VERDICT_MEANINGS = {
    Verdict.SCHEDULED: "its time has not come",
    Verdict.IN_PROGRESS: "no recipient is reached yet, and a courier has not reported",
    Verdict.PARTLY: "some recipients are reached, and a courier has not reported",
    Verdict.ALL_REACHED: "every recipient was reached, except who has no contact, is blocked or wants no messages",
    Verdict.SOME_REACHED: "it is over; some recipients were reached, the others were not",
    Verdict.NOTHING_WORKED: "it is over, and no recipient is known to be reached",
    Verdict.CANCELLED: "it was cancelled before any recipient was reached",
    Verdict.NOBODY_TO_REACH: "the recipients have no contact, are blocked or want no messages",
}


class TaskState(StrEnum):
    """The state of a task. `locked` is not stored: it is a `ready` task that is not the head of its lane."""

    WAITING = "waiting"
    READY = "ready"
    LOCKED = "locked"
    TAKEN = "taken"
    BURIED = "buried"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


# The transitions of a task: for each verb, the states it applies to and the states that follow. docs/states.md is
# generated from this table, and tests/core/queue/test_states.py checks the functions against it. `None`: the task
# does not exist yet.
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
    "suspend": {TaskState.TAKEN: (TaskState.WAITING, TaskState.READY, TaskState.CANCELLED)},
    "wake": {TaskState.WAITING: (TaskState.READY,), TaskState.TAKEN: (TaskState.TAKEN,)},
    "lease ends": {TaskState.TAKEN: (TaskState.READY, TaskState.BURIED, TaskState.CANCELLED)},
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

TASK_ENDS = frozenset({TaskState.DONE, TaskState.FAILED, TaskState.CANCELLED, TaskState.EXPIRED})

REACHED = frozenset({Status.SENT, Status.DELIVERED, Status.READ})
OPEN = frozenset({Status.QUEUED, Status.SENDING})

# The outcome with the higher rank stays, so delivery reports may come in any order and any number of times: a
# provider's report outranks the result of the attempt, and `read` outranks `delivered`. A cancellation or an expiry is
# no evidence of what became of an attempt, so it replaces only open outcomes. The only step back is `sending →
# queued`: the attempt was postponed (lua/delivery/modules/outcome.lua).
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

# Of several contacts in one channel the first of these statuses that any contact has is the recipient's.
BEST = (Status.READ, Status.DELIVERED, Status.SENT, Status.SENDING, Status.QUEUED, Status.UNKNOWN)


def best(statuses: list[Status]) -> Status:
    """Return the status of a recipient with several contacts in one channel: reached if any contact was reached, else
    open while any is open.
    """
    for wanted in BEST:
        if wanted in statuses:
            return wanted
    return statuses[0]


def verdict(state: DeliveryState, reachable: int, reached: int, *, is_over: bool) -> Verdict:
    """Return the verdict. `reachable`: recipients with a contact in any channel. `reached`: those who received the
    message. `is_over`: every courier has reported. A cancelled delivery is not over while attempts are under way.
    """
    if reachable == 0:
        return Verdict.NOBODY_TO_REACH
    if reached == reachable:
        return Verdict.ALL_REACHED
    if reached:
        return Verdict.SOME_REACHED if is_over else Verdict.PARTLY
    match state:
        case DeliveryState.SCHEDULED:
            return Verdict.SCHEDULED
        case DeliveryState.RELEASED:
            return Verdict.IN_PROGRESS
        case DeliveryState.CANCELLED:
            return Verdict.CANCELLED
        case _:
            return Verdict.NOTHING_WORKED
