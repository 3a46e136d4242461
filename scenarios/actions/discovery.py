"""Finds the action types: those of the modules of this folder, of the entry points `ada.actions` of installed packages,
and of the files of ADA_ACTIONS. A package that cannot be used is left out, with the reason.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pkgutil import iter_modules
from typing import Protocol, TypeVar

from msgspec import Struct

import scenarios.actions as package
from scenarios.action_files import LiveTypes
from scenarios.schema import ActionType
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


GROUP = "ada.actions"


class Actions(Struct, frozen=True):
    """`types`: name → type. `broken`: the name of an entry point that could not be used → why."""

    types: Mapping[str, ActionType]
    broken: Mapping[str, Text] = {}


@cache
def own_actions() -> Mapping[str, ActionType]:
    """Return the action types of this package, by name."""
    modules = [import_module(f"{package.__name__}.{module.name}") for module in iter_modules(package.__path__)]
    types = [one for module in modules for one in vars(module).values() if isinstance(one, ActionType)]
    return {one.name: one for one in sorted(types, key=lambda one: one.name)}


def installed_actions(points: Iterable[EntryPoint] | None = None) -> Actions:
    """Return all action types. A package that cannot be used is left out, the rest works; `points` by default those of
    the installed packages.
    """
    own = own_actions()
    added, broken = found_in_packages(ActionType, GROUP, points, own)
    return Actions(LiveTypes({**own, **added}), broken)
