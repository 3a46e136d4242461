"""Reads the additions of installed packages from entry points. A package that cannot be used is left out, with the
reason.
"""

from collections.abc import Collection, Iterable
from functools import cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import Protocol, TypeVar

from scenarios.words import Sentence, Text, sentence


class Addition(Protocol):
    """An addition. Its name is unique among those of its kind."""

    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=Addition)


def found_in_packages(
    kind: type[N], group: str, points: Iterable[EntryPoint] | None, taken: Collection[str] = ()
) -> tuple[dict[str, N], dict[str, Text]]:
    """Return (objects of this kind by their `name`, reasons by the names of entry points that could not be used).

    `points`: by default those of the group in the installed packages. `taken`: names that exist already.
    """
    found: dict[str, N] = {}
    broken: dict[str, Text] = {}
    for point in _installed(group) if points is None else points:
        one = _loaded(point, kind)
        if isinstance(one, Sentence):
            broken[point.name] = one
        elif one.name in found or one.name in taken:
            broken[point.name] = sentence("already_one_name", name=one.name)
        else:
            found[one.name] = one
    return found, broken


@cache
def _installed(group: str) -> EntryPoints:
    """Return the entry points of a group. Packages are installed before a process starts."""
    return entry_points(group=group)


def _loaded(point: EntryPoint, kind: type[N]) -> N | Sentence:
    """Return what an entry point names, or as text why it cannot be used."""
    try:
        found = point.load()
    except Exception as error:  # noqa: BLE001 - a foreign package may raise anything while it is imported
        return sentence("cannot_imported", value=point.value, why=f"{type(error).__name__}: {error}")
    return found if isinstance(found, kind) else sentence("not_type", value=point.value, type=kind.__name__)
