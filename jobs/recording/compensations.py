"""Compensations: they take back the steps of an iteration, in reverse order, if it is rolled back or stopped."""

from datetime import timedelta
from typing import Any

from core.errors import Invalid
from jobs.recording.effects import Call, Effect, Exists, JobEffects
from jobs.recording.places import UNIT

_IN_ITEM = (
    "A handler of `each` names no compensation: it is not called again for a recorded item, so a repeated iteration "
    "would not know it. Loop over the items with effects, and name it there."
)


class Compensations:
    """Those of one attempt: the code of the job names them again in each repetition."""

    def __init__(self) -> None:
        self._named: list[Effect] = []

    def add(
        self, name: str, call: Call, arguments: tuple[Any, ...], exists: Exists | None, idempotent_for: timedelta | None
    ) -> None:
        """Note what takes back what was done last. Raises Invalid COMPENSATION_IN_ITEM."""
        if UNIT.get():
            raise Invalid("COMPENSATION_IN_ITEM", _IN_ITEM)
        self._named.append(Effect(f"compensate {name}", call, arguments, exists, True, idempotent_for, Any))

    async def run(self, effects: JobEffects) -> None:
        """Call all of them, the last one first; those that are recorded are skipped. Raises what a call raises."""
        for effect in reversed(self._named):
            await effects.do(effect)
