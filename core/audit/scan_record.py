"""The record of one shard that a scan makes. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from core.audit.event_log import EventLog
from core.audit.invariants.conservation import Recount

# Items of one function call: it blocks the server for about a millisecond.
PAGE = 100


@dataclass(slots=True)
class SeenTasks:
    """The findings of a scan in one shard. `numbers`: (order or token, number) → the task that has it. `duplicates`:
    two tasks that have one number. `deliveries`: suffix → tenant. `broken`: tasks and deliveries that violate an
    invariant of indexes. `unread`: deliveries that changed during every read.
    """

    events: EventLog
    keys: int = 0
    tasks: set[str] = field(default_factory=set)
    lanes: set[str] = field(default_factory=set)
    deliveries: dict[str, str] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    unread: int = 0
    recount: Recount = field(default_factory=Recount)
    numbers: dict[tuple[str, str], str] = field(default_factory=dict)
    duplicates: list[tuple[str, str, str]] = field(default_factory=list)


def pages(items: Iterable[str], size: int = PAGE) -> Iterator[list[str]]:
    rest = iter(items)
    while page := list(islice(rest, size)):
        yield page
