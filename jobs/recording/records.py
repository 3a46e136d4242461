"""Records of the steps of an iteration, and their names. Each name is used once in an iteration.

A name has the place of the code, the item of `each` and the branch of `gather`, so that a repetition finds it again.
Results are stored as JSON. What a job gets has passed through this form also at the first run, so a repeated iteration
gets the same.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import msgspec

from core.errors import Invalid
from core.jobs.steps import UnitRecord, UnitStatus
from core.model.json_form import FAULTS, encoded
from jobs.signals import Unclear, UnitFailed

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
