"""The points at which a process of jobs may be killed, and doubles of what jobs do outside."""

from collections.abc import Awaitable
from typing import Any

from core.jobs import JobId, JobStorage
from core.redis.store import Store

_LONGEST_POINT = 100


class Killed(BaseException):
    """The process of the job was killed at this point."""


class Crashes:
    """Counts the points at which a process may be killed: before and after each thing that it stores or does outside.
    `at`: the number of the one at which it is killed, from 1; 0: at none.
    """

    def __init__(self, at: int = 0) -> None:
        self.at = at
        self.points: list[str] = []
        self._is_dead = False

    def pass_point(self, name: str) -> None:
        """Raises Killed here, and at every point after it until `revive`."""
        if not self._is_dead:
            self.points.append(name)
            self._is_dead = len(self.points) == self.at
        if self._is_dead:
            raise Killed(name)

    def revive(self) -> None:
        """Begin another process."""
        self._is_dead = False


class Double:
    """Stands for a function that a job calls. `calls`: the arguments of those that took place. `answer`: what it
    returns, or a function that makes that of the arguments; an exception is raised.
    """

    def __init__(self, name: str, answer: Any, crashes: Crashes) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.answer = answer
        self._name = name
        self._crashes = crashes
        self._keys: dict[str, Any] = {}

    async def __call__(self, *arguments: Any, idempotency_key: str = "") -> Any:
        """Take place, unless a call with this key has."""
        self._crashes.pass_point(f"before {self._name}")
        if not idempotency_key or idempotency_key not in self._keys:
            answer = self.answer(*arguments) if callable(self.answer) else self.answer
            if isinstance(answer, BaseException):
                raise answer
            self.calls.append(arguments)
            self._keys[idempotency_key] = answer
        self._crashes.pass_point(f"after {self._name}")
        return self._keys[idempotency_key]

    async def has_taken_place(self, *arguments: Any) -> bool:
        """Return whether a call with these arguments took place: for `exists`."""
        return arguments in self.calls


class CrashingStorage(JobStorage):
    """Has a point before and after everything that an attempt stores."""

    def __init__(self, store: Store, crashes: Crashes) -> None:
        super().__init__(store)
        self._crashes = crashes

    async def _passing(self, name: str, writing: Awaitable[Any]) -> Any:
        try:
            self._crashes.pass_point(f"before {name}")
        except Killed:
            writing.close()  # type: ignore[attr-defined]
            raise
        result = await writing
        self._crashes.pass_point(f"after {name}")
        return result

    async def save(self, *arguments: Any, **options: Any) -> Any:
        return await self._passing("the change of the job", super().save(*arguments, **options))

    async def begin_iteration(self, *arguments: Any) -> Any:
        return await self._passing("the beginning of the iteration", super().begin_iteration(*arguments))

    async def end_iteration(self, *arguments: Any, **options: Any) -> Any:
        return await self._passing("the end of the iteration", super().end_iteration(*arguments, **options))

    async def _run_for(self, verb: str, job_id: JobId, holder: str, *words: str) -> str:
        point = " ".join((verb, *words))[:_LONGEST_POINT]
        return str(await self._passing(point, super()._run_for(verb, job_id, holder, *words)))
