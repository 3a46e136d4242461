"""What follows from a courier's outcome for one entry: it is closed, or put off. Pure: the one place where this is
decided.

Sent                     closed: sent
Rejected                 closed: failed + reason
Deferred, wait named     put off until then; does not count as an attempt
Deferred, no wait        put off by the back-off; after the last attempt closed: failed + reason
Unknown                  put off while the provider remembers our random id (a repeat is the same message to it);
                         then, or after the last attempt, closed: unknown
"""

from dataclasses import dataclass
from datetime import timedelta

from core.courier.interface import FOREVER, NEVER, Deferred, Outcome, Rejected, Sent, Unknown
from core.model.backoff import Backoff
from core.model.states import Reason, Status


@dataclass(frozen=True, slots=True)
class Final:
    """The entry has its end."""

    status: Status
    reason: str = ""
    reference: str = ""


@dataclass(frozen=True, slots=True)
class Postponed:
    """The entry is tried again after `pause`. `attempts`: how many count by now. `unclear`: this one may have been
    sent.
    """

    pause: timedelta
    attempts: int
    reason: str
    unclear: bool = False


def decide(
    outcome: Outcome, attempts: int, age: timedelta, remembers: timedelta, backoff: Backoff, chance: float | None = None
) -> Final | Postponed:
    """`attempts`: those that counted before this one; `age`: since the first attempt whose end is unclear; `chance`: of
    the back-off, the same for those who are to be tried again together.
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
            return Postponed(backoff.pause(attempts + 1, chance), attempts + 1, reason)
        case Unknown():
            return _unclear(attempts, age, remembers, backoff, chance)
        case _:
            raise TypeError(f"{outcome!r} is for the runtime, not for one entry")


def _unclear(
    attempts: int, age: timedelta, remembers: timedelta, backoff: Backoff, chance: float | None
) -> Final | Postponed:
    pause = backoff.pause(attempts + 1, chance)
    if backoff.spent(attempts + 1) or not covered(age + pause, remembers):
        return Final(Status.UNKNOWN, Reason.CRASHED if remembers == NEVER else Reason.PROVIDER_DOWN)
    return Postponed(pause, attempts + 1, Reason.PROVIDER_DOWN, unclear=True)


def covered(age: timedelta, remembers: timedelta) -> bool:
    """Whether the provider still knows a random id it first saw `age` ago."""
    return remembers == FOREVER or age < remembers
