"""Decides what follows from a courier's outcome for one entry: it is final, or it is postponed. Pure; the only place
where this is decided.

Sent                     final: sent
Rejected                 final: failed + reason
Deferred with a wait     postponed until then; does not count as an attempt
Deferred without a wait  postponed by the back-off; after the last attempt final: failed + reason
Unknown                  postponed while the provider remembers our random id, as a repeat is then the same message;
                         otherwise, or after the last attempt, final: unknown
"""

from dataclasses import dataclass
from datetime import timedelta

from core.courier.interface import FOREVER, NEVER, Deferred, Outcome, Rejected, Sent, Unknown
from core.model.backoff import Backoff
from core.model.states import Reason, Status


@dataclass(frozen=True, slots=True)
class Final:
    """The outcome of the entry is final."""

    status: Status
    reason: str = ""
    reference: str = ""


@dataclass(frozen=True, slots=True)
class Postponed:
    """The entry is attempted again after `pause`. `attempts`: how many count so far. `unclear`: this attempt may have
    sent the message.
    """

    pause: timedelta
    attempts: int
    reason: str
    unclear: bool = False


def decide(
    outcome: Outcome, attempts: int, age: timedelta, remembers: timedelta, backoff: Backoff, jitter: float | None = None
) -> Final | Postponed:
    """`attempts`: those that counted before this one. `age`: since the first attempt with an unclear end. `jitter`:
    from 0 to 1, the same for entries that are to be attempted together again; None: random.
    """
    match outcome:
        case Sent(reference):
            return Final(Status.SENT, reference=reference)
        case Rejected(reason):
            return Final(Status.FAILED, reason)
        case Deferred(reason, after) if after is not None:
            return Postponed(after, attempts, reason)
        case Deferred(reason):
            if backoff.spent(attempts + 1):
                return Final(Status.FAILED, reason)
            return Postponed(backoff.pause(attempts + 1, jitter), attempts + 1, reason)
        case Unknown():
            return _decide_unclear(attempts, age, remembers, backoff, jitter)
        case _:
            raise TypeError(f"{outcome!r} is for the runtime, not for one entry")


def _decide_unclear(
    attempts: int, age: timedelta, remembers: timedelta, backoff: Backoff, jitter: float | None
) -> Final | Postponed:
    pause = backoff.pause(attempts + 1, jitter)
    if backoff.spent(attempts + 1) or not still_remembered(age + pause, remembers):
        return Final(Status.UNKNOWN, Reason.CRASHED if remembers == NEVER else Reason.PROVIDER_DOWN)
    return Postponed(pause, attempts + 1, Reason.PROVIDER_DOWN, unclear=True)


def still_remembered(age: timedelta, remembers: timedelta) -> bool:
    """Whether the provider still knows a random id that it first received `age` ago."""
    return remembers == FOREVER or age < remembers
