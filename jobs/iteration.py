"""One iteration of a job, as its code sees it: stored results, units, effects, the live log.

Guarantees: a result that was stored is returned again and not computed again; a unit that was recorded is never begun
again, in this iteration and in later ones; only the attempt that holds the job writes. After each unit, and each step,
the state of the job is known from the same script that has stored the result (U-11).
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from core.ai import Prompt
from core.errors import Invalid
from core.jobs.record import StoredJob
from core.jobs.states import JobState
from core.jobs.storage import JobStorage
from jobs.outside import Outside
from jobs.signals import Interrupted, Lost, NotDone, Unclear, UnitFailed

LARGEST_RESULT = 1024 * 1024
"""Bytes of JSON of one stored result."""

_PAGE = 500

Item = TypeVar("Item")
Call = Callable[..., Awaitable[Any]]


class UnitRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is stored of a unit or an effect. `status`: begun, done, failed or unknown."""

    status: str
    result: Any = None
    reason: str = ""


class Iteration:
    """`number` counts from 0. `lease`: how long this attempt holds the job without a sign of life."""

    def __init__(
        self,
        storage: JobStorage,
        job: StoredJob,
        holder: str,
        steps: Mapping[str, str],
        is_stopping: Callable[[], bool],
        holds_lease: Callable[[], bool],
        outside: Outside,
    ) -> None:
        self.user = job.id.user
        self.tenant = job.id.tenant
        self.number = job.record.iteration
        self.parameters: Mapping[str, Any] = job.record.parameters
        self._storage = storage
        self._job = job
        self._holder = holder
        self._steps = steps
        self._is_stopping = is_stopping
        self._holds_lease = holds_lease
        self._outside = outside

    async def step(self, name: str, call: Call, *arguments: Any) -> Any:
        """The result of `call(*arguments)`, stored under `name`: a repeated iteration gets it without a call.

        Results are what JSON has. Raises what the call raises; Invalid RESULT_TOO_LARGE.
        """
        if name in self._steps:
            return msgspec.json.decode(self._steps[name])
        result = await call(*arguments)
        await self._write("step", name, _encoded(name, result))
        return result

    async def each(
        self, items: Iterable[Item], handle: Callable[[Item], Awaitable[Any]], *, key: Callable[[Item], Any]
    ) -> int:
        """Handle the items one by one, those that are not recorded yet. Returns how many were handled now.

        `key`: what names an item for ever. A handler that raises UnitFailed or Unclear records that, also in the live
        log; anything else ends the iteration, which is tried again. The live log says how many were handled before.
        """
        named, handled = _named(items, key), 0
        for page in _pages(named):
            known = await self._storage.units(self._job.id, [name for name, _ in page])
            for (name, item), recorded in zip(page, known, strict=True):
                if recorded is None:
                    record = await _handled(handle, item)
                    await self._write("unit", name, _encoded(name, record), _line_of(name, record))
                    handled += 1
        if skipped := len(named) - handled:
            await self.log(f"{skipped} of {len(named)} items were handled before, and skipped")
        return handled

    async def effect(
        self, name: str, call: Call, *arguments: Any, exists: Callable[[], Awaitable[bool | None]] | None = None
    ) -> Any:
        """Do something outside once: the intent is stored before the call, its result after it.

        After a crash between the two, `exists` asks the service: True, it took place; False, it is done now; None, or
        no `exists`: raises Unclear, now and in every repetition. A call that raises NotDone leaves no intent.
        """
        record = await self._effect(name)
        if record is not None and record.status == "begun":
            record = await self._clarified(name, exists)
        if record is None:
            return await self._do(name, call, arguments)
        if record.status == "unknown":
            raise Unclear(f"whether {name} took place is not known")
        return record.result

    async def access_token(self, service: str) -> str:
        """The user's token for an outside service, refreshed if needed. Without a valid sign-in the job is paused until
        the user has signed in.
        """
        return await self._outside.access_token(self._job, service)

    async def complete(self, user: str, system: str = "", *, max_tokens: int | None = None) -> str:
        """The answer of the language model. The same question has the same answer for a day. If the user's budget of
        the day is used up, the job is paused until midnight. Raises core.ai.AiError.
        """
        return await self._outside.complete(self._job, Prompt(user, system, max_tokens=max_tokens), datetime.now(UTC))

    async def log(self, text: str) -> None:
        """Add a line to the live log. An iteration that is repeated, after a crash for example, adds it again: the log
        then has a line `iteration … goes on` before it.
        """
        self._check(await self._storage.write(self._job.id, self._holder, "", "", "", text))

    def check_lease(self) -> None:
        """Ends this attempt if another process may have the job, because this one was frozen or the server was down.

        `effect` calls it before the call. A call that then waits, for a connection for example, calls it again right
        before it sends.
        """
        if not self._holds_lease():
            raise Lost

    async def _effect(self, name: str) -> UnitRecord | None:
        (stored,) = await self._storage.units(self._job.id, [f"effect:{name}"])
        return msgspec.json.decode(stored, type=UnitRecord) if stored else None

    async def _clarified(self, name: str, exists: Callable[[], Awaitable[bool | None]] | None) -> UnitRecord | None:
        """What became of an effect whose call was interrupted; None if it did not take place."""
        answer = await exists() if exists else None
        if answer is False:
            return None
        record = UnitRecord("done") if answer else UnitRecord("unknown")
        await self._write_effect(name, record)
        return record

    async def _do(self, name: str, call: Call, arguments: tuple[Any, ...]) -> Any:
        await self._write_effect(name, UnitRecord("begun"))
        self.check_lease()
        try:
            result = await call(*arguments)
        except NotDone:
            await self._write_effect(name, None)
            raise
        await self._write_effect(name, UnitRecord("done", result))
        return result

    async def _write_effect(self, name: str, record: UnitRecord | None) -> None:
        """The state of the job is not checked: what was begun is finished."""
        value = _encoded(name, record) if record else ""
        if await self._storage.write(self._job.id, self._holder, "unit", f"effect:{name}", value) == "lost":
            raise Lost

    async def _write(self, kind: str, name: str, value: str, log: str = "") -> None:
        self._check(await self._storage.write(self._job.id, self._holder, kind, name, value, log))

    def _check(self, state: str) -> None:
        """Raises Lost, or Interrupted if nothing else may begin."""
        if state == "lost":
            raise Lost
        if state != JobState.RUNNING or self._is_stopping():
            raise Interrupted


async def _handled(handle: Callable[[Item], Awaitable[Any]], item: Item) -> UnitRecord:
    try:
        return UnitRecord("done", await handle(item))
    except UnitFailed as failure:
        return UnitRecord("failed", reason=str(failure))
    except Unclear as failure:
        return UnitRecord("unknown", reason=str(failure))


def _line_of(name: str, record: UnitRecord) -> str:
    """What the live log says of a unit; nothing of one that is done."""
    if record.status == "done":
        return ""
    what = "failed" if record.status == "failed" else "may or may not have been done"
    return f"{name.removeprefix('unit:')} {what}: {record.reason}"


def _named(items: Iterable[Item], key: Callable[[Item], Any]) -> list[tuple[str, Item]]:
    """The items with the names of their units, each once."""
    named: dict[str, Item] = {}
    for item in items:
        named.setdefault(f"unit:{key(item)}", item)
    return list(named.items())


def _pages(units: list[tuple[str, Item]]) -> Iterable[list[tuple[str, Item]]]:
    return (units[start : start + _PAGE] for start in range(0, len(units), _PAGE))


def _encoded(name: str, result: Any) -> str:
    """Raises Invalid RESULT_TOO_LARGE, RESULT_NOT_JSON."""
    try:
        text = msgspec.json.encode(result)
    except (TypeError, OverflowError, RecursionError) as fault:
        raise Invalid("RESULT_NOT_JSON", f"The result of {name} cannot be stored: {fault}.") from None
    if len(text) > LARGEST_RESULT:
        raise Invalid("RESULT_TOO_LARGE", f"The result of {name} has {len(text)} bytes, at most {LARGEST_RESULT}.")
    return text.decode()
