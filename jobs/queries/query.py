"""A query, for the developer of a job: a function of its class that answers from what is stored, and changes nothing.

    class Hunt(Job):
        @query
        def left_today(self, job: Snapshot) -> int:
            return 3 - job.state.sent

It may be asked whatever the job does: it works, sleeps, waits or has ended.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Any

from core.errors import SetupError
from core.jobs.views import JobView


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A job at one moment. `facts`: as `./ada jobs show` has them; `state`: its own, of the class that it declares;
    `steps`: the results of the steps of the iteration that has begun, by their names.
    """

    facts: JobView
    parameters: Mapping[str, Any]
    state: Any
    steps: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Query:
    """A function that was declared with `query`."""

    function: Callable[..., Any]


def query(function: Callable[..., Any]) -> Query:
    """Declare a query: it gets a `Snapshot`, and the parameters of who asks by their names. Raises SetupError for a
    coroutine: a query waits for nothing.
    """
    if iscoroutinefunction(function):
        raise SetupError(f"the query {function.__qualname__} needs to be `def`, not `async def`")
    return Query(function)


def queries_of(kind: type) -> dict[str, Query]:
    """Return the queries of a class by their names."""
    members = ((name, getattr(kind, name, None)) for name in dir(kind))
    return {name: member for name, member in members if isinstance(member, Query)}
