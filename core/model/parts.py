"""The parts of `./ada up`: the programs that it is to keep running, and how each does. Pure.

Written by `cli.processes.parts`, read by `core.processes.register`.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from enum import StrEnum

from msgspec import Struct

from core.model.clock import in_ms

STABLE_AFTER = timedelta(minutes=1)
"""A part that ran so long has recovered: its next end counts as the first."""
START_PATIENCE = timedelta(minutes=2)
"""A part that is not ready after so long is faulty."""
_REPEATED = 2
"""Ends in a row after which a part is faulty. After a single one it is simply started again."""


class PartState(StrEnum):
    """`restarting`: it has ended and is started again after a pause; `stopped`: it has ended for good."""

    STARTING = "starting"
    RUNNING = "running"
    RESTARTING = "restarting"
    STOPPED = "stopped"


class UpPart(Struct, frozen=True, kw_only=True):
    """`name`: as in the output of `./ada up`. `ends`: how often it has ended in a row; `reason`: the last time how.
    Unix ms: `at`: when `state` began; `since`: of the first of these ends, or of the start if there was none;
    of the last end if it has stopped for good.
    """

    name: str
    state: PartState = PartState.STARTING
    at: int
    since: int
    ends: int = 0
    reason: str = ""

    def is_faulty(self, now: int) -> bool:
        """Return whether it does not run as it should. `now`: Unix ms."""
        if self.state is PartState.STOPPED:
            return True
        lasts = now - self.at
        if self.ends >= _REPEATED:
            return self.state is not PartState.RUNNING or lasts < in_ms(STABLE_AFTER)
        return self.state is PartState.STARTING and lasts > in_ms(START_PATIENCE)

    @property
    def fault(self) -> str:
        """Return what is wrong with a faulty part."""
        if self.state is PartState.STOPPED:
            return f"should run and has stopped for good: {self.reason}"
        if self.ends >= _REPEATED:
            return f"should run and has ended {self.ends} times in a row, the last time with {self.reason}"
        return "should run and is not ready"


def faulty(parts: Iterable[UpPart], now: int) -> Sequence[UpPart]:
    """Return the parts that do not run as they should. `now`: Unix ms."""
    return [part for part in parts if part.is_faulty(now)]
