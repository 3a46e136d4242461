"""Compensations: they take back the steps of an iteration, in reverse order, if it is rolled back."""

from datetime import timedelta
from typing import Any

from jobs.recording.effects import Call, Effect, Effects, Exists


class Compensations:
    """Those of one attempt: the code of the job names them again in each repetition."""

    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self._named: list[Effect] = []

    def add(
        self, name: str, call: Call, arguments: tuple[Any, ...], exists: Exists | None, idempotent_for: timedelta | None
    ) -> None:
        """Note what takes back what was done last."""
        self._named.append(Effect(f"compensate {name}", call, arguments, exists, True, idempotent_for, Any))

    async def run(self) -> None:
        """Call all of them, the last one first; those that are recorded are skipped. Raises what a call raises."""
        for effect in reversed(self._named):
            await self._effects.do(effect)
