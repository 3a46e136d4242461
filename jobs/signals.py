"""Exceptions by which a job says how it goes on; every other exception is a failure of its iteration."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from core.errors import AdaError
from core.jobs.states import Actor
from core.sentence import Text


class Pause(AdaError):
    """The job is paused: by a limit until a time, or because the sign-in to `service` has expired (U-21). The iteration
    goes on where it was when the job is resumed.
    """

    def __init__(self, by: Actor, reason: Text, until: datetime | None = None, service: str = "") -> None:
        super().__init__(reason)
        self.by = by
        self.reason = reason
        self.until = until
        self.service = service


class RollBack(AdaError):
    """The job cannot go on: what it has done is taken back by `compensate`, and it has failed."""


class Finished(AdaError):
    """The job has reached its end and stops."""


class UnitFailed(AdaError):
    """This unit cannot be done; it is recorded as failed, and the next one begins."""


class NotDone(AdaError):
    """The call of an effect certainly did nothing outside, so it may be repeated."""


class Throttled(NotDone):
    """The service has refused the call because of its rate, so it did nothing. `after`: how long the service refuses
    all calls of this limit; None if it does not say that.
    """

    def __init__(self, after: timedelta | None = None) -> None:
        super().__init__("the service refuses more calls for a time")
        self.after = after


@dataclass(frozen=True, slots=True)
class Found:
    """The result of `exists` if the effect took place and the service knows what its call returned."""

    result: Any


class Unclear(AdaError):
    """It is unknown whether an effect took place, so it is not repeated; its unit is recorded as unknown."""


class TookTooLong(AdaError):
    """The iteration took longer than `max_runtime`."""


class SelfCancelled(AdaError):
    """The code of the job has cancelled the task in which it runs."""


class Blocked(BaseException):
    """The code of a job has blocked the event loop, and with it all jobs of its process. No Exception, so that a job
    does not take it for one of its own.
    """


class Suspended(BaseException):
    """The iteration sleeps until a time, or until one of the signals `waits_for` comes; its process has nothing to do
    for it. `reason`: why, as the job shows it. Not for jobs to catch.
    """

    def __init__(self, until: datetime, waits_for: Sequence[str], reason: str = "") -> None:
        super().__init__(f"until {until}")
        self.until = until
        self.waits_for = list(waits_for)
        self.reason = reason


class Interrupted(BaseException):
    """The job was paused or stopped, or the process ends: `run` ends after the unit in hand. Not for jobs to catch."""


class Lost(BaseException):
    """Another attempt may hold the job: this process was frozen, or the server was down. Nothing more is written. Not
    for jobs to catch.
    """
