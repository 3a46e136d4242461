"""Where in an iteration its code is, so that what it does there has the same name in a repetition."""

from contextvars import ContextVar

UNIT: ContextVar[str] = ContextVar("unit", default="")
"""The item of `each` that is being handled."""

BRANCH: ContextVar[str] = ContextVar("branch", default="")
"""The branch of `gather` that runs."""


PROGRESS = "progress\t"
"""Begins the name under which the last heartbeat of a call is stored."""


def place() -> str:
    """Return the name of the place."""
    return f"{UNIT.get()}\t{BRANCH.get()}" if BRANCH.get() else UNIT.get()
