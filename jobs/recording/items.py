"""The items of `each`: their names, and what is recorded of each."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from core.jobs.units import UnitRecord, UnitStatus
from jobs.recording.results import stored_form
from jobs.signals import Unclear, UnitFailed

Item = TypeVar("Item")

_PAGE = 500


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
