"""Decides what follows from a courier's outcome for one entry: it is final, or it is postponed. Pure; the only place
where this is decided.

Sent                     final: sent
Rejected                 final: failed + reason
Deferred with a wait     postponed until then; does not count as an attempt. If it triggered a throttle of the account,
                         it may be the cause: it counts, and its pause is the longest. A provider that
                         cannot be reached is not its fault: the attempt counts only if other messages got through.
                         A wait that is the courier's guess counts, too
Deferred without a wait  postponed by the back-off; after the last attempt final: failed + reason
Halted                   postponed; the process stops, and another one continues. Does not count as an attempt
Partly                   as the outcome of its rest; the recipient has a part of the message
Unknown                  postponed while the provider remembers our random id, as a repeat is then the same message;
                         otherwise, or after the last attempt, final: unknown

Invariant I18: after an attempt that may have sent the message, whole or in part, an entry ends as sent or unknown,
never as failed; the reason of a later refusal is kept. Test: tests/couriers/sending/test_ambiguous_ends.py.
"""

from dataclasses import dataclass, replace
from datetime import timedelta

from core.model.clock import Backoff
from core.model.states import Reason, Status
from couriers.sending.interface import (
    ACCOUNT_WIDE,
    FOREVER,
    NEVER,
    Deferred,
    Halted,
    Outcome,
    Partly,
    Rejected,
    Sent,
    Unknown,
)

# Of an entry that triggered throttles.
_LONGEST_OWN_PAUSE = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Final:
    """The outcome of the entry is final. `not_shown`: as in `Sent`."""

    status: Status
    reason: str = ""
    reference: str = ""
    not_shown: tuple[str, ...] = ()


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
    outcome: Outcome,
    attempts: int,
    age: timedelta,
    remembers: timedelta,
    backoff: Backoff,
    jitter: float | None = None,
    *,
    unclear: bool = False,
    triggered: bool = False,
) -> Final | Postponed:
    """Decide what follows from an outcome. `attempts`: those that counted before this one. `age`: since the first
    attempt with an unclear end. `jitter`: from 0 to 1, the same for entries that are to be attempted together again;
    None: random. `unclear`: an earlier attempt may have sent the message. `triggered`: this attempt triggered a
    throttle.
    """
    not_sent = Status.UNKNOWN if unclear else Status.FAILED
    match outcome:
        case Sent():
            reason = Reason.IN_DAY_MESSAGE if outcome.in_day_message else ""
            return Final(Status.SENT, reason, outcome.reference, outcome.not_shown)
        case Rejected(reason):
            return Final(not_sent, reason)
        case Deferred():
            return _decide_deferred(outcome, attempts, backoff, jitter, not_sent, triggered=triggered)
        case Halted():
            return Postponed(timedelta(0), attempts, Reason.ACCOUNT_STOPPED)
        case Unknown():
            return _decide_unclear(attempts, age, remembers, backoff, jitter)
        case Partly(rest, reference):
            decision = decide(rest, attempts, age, remembers, backoff, jitter, unclear=True, triggered=triggered)
            return _decide_partly(decision, reference, age, remembers)
        case _:
            raise TypeError(f"{outcome!r} is for the runtime, not for one entry")


def _decide_deferred(
    deferred: Deferred, attempts: int, backoff: Backoff, jitter: float | None, not_sent: Status, *, triggered: bool
) -> Final | Postponed:
    """Decide what follows from a deferral. After a throttle that it triggered, an entry also waits for a pause of its
    own, which doubles each time: the others go first, and one recipient stops an account for a part of the time only,
    and not for ever.
    """
    reason, wait = deferred.reason, deferred.after
    is_trigger = triggered and deferred.scope in ACCOUNT_WIDE
    if wait is not None and not is_trigger and not deferred.is_guess:
        return Postponed(wait, attempts, reason)
    if backoff.spent(attempts + 1):
        return Final(not_sent, reason)
    if wait is not None and not is_trigger:
        return Postponed(wait, attempts + 1, reason)
    own_pause, wait = backoff.pause(attempts + 1, jitter), wait or NEVER
    if reason is not Reason.PROVIDER_DOWN:
        own_pause = max(own_pause, min(wait * (2**attempts - 1), _LONGEST_OWN_PAUSE))
    return Postponed(wait + own_pause, attempts + 1, reason)


def _decide_partly(
    decision: Final | Postponed, reference: str, age: timedelta, remembers: timedelta
) -> Final | Postponed:
    """Keep the reference of the parts that arrived. Postpone only while a repeat would not double them."""
    if isinstance(decision, Final):
        return replace(decision, reference=reference)
    if not still_remembered(age + decision.pause, remembers):
        return Final(Status.UNKNOWN, decision.reason, reference)
    return replace(decision, unclear=True)


def _decide_unclear(
    attempts: int, age: timedelta, remembers: timedelta, backoff: Backoff, jitter: float | None
) -> Final | Postponed:
    pause = backoff.pause(attempts + 1, jitter)
    if backoff.spent(attempts + 1) or not still_remembered(age + pause, remembers):
        return Final(Status.UNKNOWN, Reason.ANSWER_LOST)
    return Postponed(pause, attempts + 1, Reason.ANSWER_LOST, unclear=True)


def still_remembered(age: timedelta, remembers: timedelta) -> bool:
    """Return whether the provider still knows a random id that it first received `age` ago."""
    return remembers == FOREVER or age < remembers
