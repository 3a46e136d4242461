"""Decides what one attempt may still do, and records what it has done: steps and units, whose names are used once in an
iteration.

Nothing begins after the job was paused or stopped, the process was asked to end, or the attempt has ended; nothing is
written after another attempt has begun. Once the guard has raised, the attempt is over, even if the job's code catches
that and goes on.

A name has the place of the code, the item of `each` and the branch of `gather`, so that a repetition finds it again.
Results are stored as JSON. What a job gets has passed through this form also at the first run, so a repeated iteration
gets the same.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from hashlib import blake2b
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from core.errors import Invalid
from core.jobs import JobRecord, JobState, JobStorage, StoredJob
from core.jobs.record import OwnState, merged_parameters
from core.jobs.steps import UnitRecord, UnitStatus
from core.model.json_form import FAULTS, encoded
from jobs.signals import Interrupted, Lost, Suspended, Unclear, UnitFailed

UNIT: ContextVar[str] = ContextVar("unit", default="")
"""The item of `each` that is being handled."""

BRANCH: ContextVar[str] = ContextVar("branch", default="")
"""The branch of `gather` that runs."""


PROGRESS = "progress\t"
"""Begins the name under which the last heartbeat of a call is stored."""

LONGEST_NAME = 500
_HINT = "put what differs into the name, for example f'letter {id}'"


def place() -> str:
    return f"{UNIT.get()}\t{BRANCH.get()}" if BRANCH.get() else UNIT.get()


class StepNames:
    """The names that one attempt has used."""

    def __init__(self) -> None:
        self._used: set[tuple[str, str]] = set()
        self._handlers: dict[str, Callable[..., Any]] = {}

    @contextmanager
    def used(self, kind: str, name: str) -> Iterator[None]:
        """Use a name; it is free again if the body raises, so that a job may repeat what has failed.

        Raises Invalid NAME_MALFORMED, NAME_USED_TWICE.
        """
        _check(kind, name)
        if (kind, name) in self._used:
            raise Invalid("NAME_USED_TWICE", f"The {kind} {name!r} stands twice in one iteration: {_HINT}.")
        self._used.add((kind, name))
        try:
            yield
        except BaseException:  # whatever the block raises: its name may be used again
            self._used.discard((kind, name))
            raise

    def handles(self, name: str, handle: Callable[..., Any]) -> None:
        """Note that `each` with this name handles items by `handle`. Raises as `used`."""
        if name:
            _check("each", name)
        if ":" in name:
            raise Invalid("NAME_MALFORMED", f"The name of an each has no colon; this one is {name!r}.")
        if self._handlers.setdefault(name, handle) != handle:
            detail = "Two `each` with different handlers would share their items: give them names, `each(…, name=…)`."
            raise Invalid("NAME_USED_TWICE", f"{detail} This one has the name {name!r}.")


def _check(kind: str, name: object) -> None:
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
        detail = f"The name of a {kind} is a text of at most {LONGEST_NAME} characters; this one is {name!r:.100}."
        raise Invalid("NAME_MALFORMED", detail)


LARGEST_RESULT = 1024 * 1024
"""Bytes of JSON of one stored result."""

Item = TypeVar("Item")
_PAGE = 500


def stored_form(name: str, result: Any, most: int = LARGEST_RESULT) -> msgspec.Raw:
    """Return a result as it is stored. Raises Invalid RESULT_TOO_LARGE, RESULT_NOT_JSON."""
    try:
        text = encoded(result)
    except FAULTS as fault:
        raise Invalid("RESULT_NOT_JSON", f"The result of {name} cannot be stored: {fault}.") from None
    if len(text) > most:
        raise Invalid("RESULT_TOO_LARGE", f"The result of {name} has {len(text)} bytes, at most {most}.")
    return msgspec.Raw(text)


def returned_form(name: str, stored: msgspec.Raw, returns: Any) -> Any:
    """Return the result as the type that the job declares. Raises Invalid RESULT_OF_OTHER_TYPE."""
    try:
        return msgspec.json.decode(stored, type=returns)
    except msgspec.ValidationError as fault:
        raise Invalid("RESULT_OF_OTHER_TYPE", f"The result of {name} is not what `returns` says: {fault}.") from None


async def record_of(unit: str, handle: Callable[[Item], Awaitable[Any]], item: Item) -> UnitRecord:
    """Handle an item; return what is recorded of it."""
    try:
        return UnitRecord(UnitStatus.DONE, stored_form(unit, await handle(item)))
    except UnitFailed as failure:
        return UnitRecord(UnitStatus.FAILED, reason=str(failure))
    except Unclear as failure:
        return UnitRecord(UnitStatus.UNKNOWN, reason=str(failure))


def line_of(unit: str, record: UnitRecord) -> str:
    """Return the line of the live log for a unit; "" if it is done."""
    if record.status is UnitStatus.DONE:
        return ""
    what = "failed" if record.status is UnitStatus.FAILED else "may or may not have been done"
    return f"{unit.partition(':')[2]} {what}: {record.reason}"


def units_of(items: Iterable[Item], key: Callable[[Item], Any], name: str) -> list[tuple[str, Item]]:
    """Return the items with the names of their units, each once."""
    prefix = f"unit {name}:" if name else "unit:"
    named: dict[str, Item] = {}
    for item in items:
        named.setdefault(f"{prefix}{key(item)}", item)
    return list(named.items())


def pages(units: list[tuple[str, Item]]) -> Iterable[list[tuple[str, Item]]]:
    return (units[start : start + _PAGE] for start in range(0, len(units), _PAGE))


class Guard:
    """One per attempt. `holder`: the attempt's name in the store. `ending`: why it is over, None as long as it is not.
    `has_stored`: whether it has stored a result, or the progress of a call; `has_advanced`: a result. `is_replay`:
    nothing begins, and what is recorded is repeated, because the job was stopped and takes back what it has done.
    `state`: the one in which the job is all the time.
    """

    def __init__(
        self,
        storage: JobStorage,
        job: StoredJob,
        holder: str,
        is_stopping: Callable[[], bool],
        holds_lease: Callable[[], bool],
    ) -> None:
        self.job = job
        self.state = job.record.state
        self.is_replay = self.state is JobState.STOPPING
        self.ending: Interrupted | Lost | Suspended | None = None
        self.has_stored = False
        self.has_advanced = False
        self.awaited: set[str] = set()
        """The children whose end the iteration knows."""
        self._is_closed = False
        self._storage = storage
        self.holder = holder
        self._is_stopping = is_stopping
        self._holds_lease = holds_lease

    def check(self, state: str = "") -> None:
        """Check whether a job may go on. Raises Interrupted if nothing else may begin; Lost if the attempt does not
        hold the job any more. `state`: of the job, as a write has returned it; "": something new is about to begin.
        """
        if self.is_replay and state == self.state and not self._is_stopping() and not self._is_closed:
            return  # also after the end of another branch
        if self.ending is None and state == "lost":
            self.ending = Lost()
        if self.ending is None and (self.is_replay or state not in ("", self.state) or self._is_stopping()):
            self.ending = Interrupted()
        if self.ending is not None:
            raise self.ending

    def check_lease(self) -> None:
        """Check the lease of an attempt. Raises Lost if another process may have the job, because this one was frozen
        or the server was down. A request to stop does not matter here: what was begun is finished.
        """
        if self._is_closed or not self._holds_lease():
            self.ending = self.ending or Lost()
            raise Lost

    def close(self) -> None:
        """Close the attempt: nothing else begins, and nothing is sent."""
        self._is_closed = True
        self.ending = self.ending or Interrupted()

    def after_replay(self) -> "Guard":
        """Return the guard of the compensations that follow a replay."""
        guard = Guard(self._storage, self.job, self.holder, self._is_stopping, self._holds_lease)
        guard.is_replay = False
        return guard

    async def add_child(self, name: str) -> None:
        """Store the job with a child that it is about to start. Raises Interrupted if another has changed the job."""
        self.check()
        if name not in self.job.record.children:
            await self._save(replace(self.job.record, children=[*self.job.record.children, name]))

    async def change_parameters(self, changes: Mapping[str, Any]) -> Mapping[str, Any]:
        """Store the job with changed parameters, and return them all. If another has changed the job meanwhile, this
        attempt is over: raises Interrupted. Raises Invalid PARAMETERS_TOO_LARGE, PARAMETERS_MALFORMED.
        """
        record = replace(self.job.record, parameters=merged_parameters(self.job.record.parameters, changes))
        if self.is_replay:
            return record.parameters
        self.check()
        await self._save(record)
        return record.parameters

    async def _save(self, record: JobRecord) -> None:
        changed = StoredJob(self.job.id, record, self.job.version, own=self.job.own)
        saved = await self._storage.save(changed, holder=self.holder)
        if saved is None:
            self.ending = Interrupted()
            raise self.ending
        self.job = saved

    def suspend(self, until: datetime, waits_for: Sequence[str], reason: str = "") -> Suspended:
        """End the attempt; the iteration goes on at this time, or when one of these signals comes. `reason`: as the job
        shows it. In a branch only that ends. Returns what is raised for it.
        """
        self.check()
        ending = Suspended(until, waits_for, reason)
        if not BRANCH.get():
            self.ending = ending
        return ending

    async def signals(self) -> list[str]:
        """Return the signals that wait for the job, the oldest first."""
        return await self._storage.signals(self.job.id)

    async def take_signal(self, entry: str, name: str, value: str) -> bool:
        """Take a signal, and write the step that has it. Returns False if another branch has taken it. Raises as
        `check`.
        """
        state = await self._storage.take_signal(self.job.id, self.holder, entry, name, value)
        if state == "taken":
            return False
        self.check(state)
        self.has_stored = self.has_advanced = True
        return True

    async def units(self, names: list[str]) -> list[str | None]:
        """Return what is recorded of these units."""
        return await self._storage.units(self.job.id, names)

    async def check_job(self) -> None:
        """Check whether the job still has its state. Raises as `check`."""
        self.check(await self._storage.check_attempt(self.job.id, self.holder))

    async def record_step(self, name: str, value: str) -> None:
        """Write a result of the iteration. Raises as `check`."""
        state = await self._storage.write_step(self.job.id, self.holder, name, value)
        self._note_stored(state, is_result=not name.startswith(PROGRESS))
        self.check(state)

    async def record_line(self, log: str, name: str = "", value: str = "") -> None:
        """Write a line of the log, "" for none, with the mark by which a repetition knows it. Raises as `check`."""
        self.check(await self._storage.write_line(self.job.id, self.holder, log, name, value))

    async def write_unit(self, name: str, value: str, log: str = "", own: tuple[str, OwnState] | None = None) -> str:
        """Write as `JobStorage.write_unit` does, without a check, so that what was begun is finished."""
        state = await self._storage.write_unit(self.job.id, self.holder, name, value, log, own)
        self._note_stored(state, is_result=True)
        return state

    async def write_intent(self, name: str, value: str) -> str:
        """Write that an effect is about to begin, if the job has its state. Returns as `JobStorage.check_attempt`."""
        return await self._storage.write_intent(self.job.id, self.holder, self.state, name, value)

    async def forget_intent(self, name: str) -> str:
        """Remove the record of an effect. Returns as `JobStorage.check_attempt`."""
        return await self._storage.forget_intent(self.job.id, self.holder, name)

    async def write_end(self, line: str, own: OwnState | None) -> None:
        """Write what a job that is about to finish leaves: a line of the log, "" for none, and its own state."""
        if line:
            await self._storage.write_line(self.job.id, self.holder, line)
        if own:
            await self._storage.write_own_state(self.job.id, self.holder, "state\tend", own)

    async def end(self) -> None:
        """Write that the attempt ends in order, before its iteration."""
        await self._storage.end_attempt(self.job.id, self.holder)

    def _note_stored(self, state: str, *, is_result: bool) -> None:
        has_stored = state != "lost"
        self.has_stored |= has_stored
        self.has_advanced |= has_stored and is_result


class LiveLines:
    """Writes the lines of the live log, each once: a repeated iteration skips those that it has written before. A line
    is known by its text, the item in which it is written, and how often it was written.
    """

    def __init__(self, guard: Guard, steps: Mapping[str, str]) -> None:
        self._guard = guard
        self._steps = steps
        self._counts: Counter[str] = Counter()

    async def write(self, text: str) -> None:
        """Add a line, unless an earlier attempt at this iteration has. Raises as `Guard.check`."""
        name = "log\t" + blake2b(f"{place()}\n{text}".encode(errors="replace"), digest_size=8).hexdigest()
        self._counts[name] += 1
        if self._counts[name] > int(self._steps.get(name, 0)):
            await self._guard.record_line(text, name, str(self._counts[name]))
