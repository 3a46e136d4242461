"""The names under which an iteration stores its results. Each name is used once in an iteration.

A name has the place of the code, the item of `each` and the branch of `gather`, so that a repetition finds it again.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from core.errors import Invalid

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
