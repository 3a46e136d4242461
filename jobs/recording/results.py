"""Results of steps and of the items of `each` as they are stored: JSON.

What a job gets has passed through this form also at the first run, so a repeated iteration gets the same.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

import msgspec

from core.errors import Invalid
from core.jobs.units import UnitRecord, UnitStatus
from core.model.json_form import FAULTS, encoded
from jobs.signals import Unclear, UnitFailed

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
