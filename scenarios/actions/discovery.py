"""Finds the action types: the files of this package, and the entry points `ada.actions` of installed packages."""

from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules

from msgspec import Struct

import scenarios.actions as package
from scenarios.schema import ActionType

GROUP = "ada.actions"


class Actions(Struct, frozen=True):
    """`types`: name → type. `broken`: the name of an entry point that could not be used → why."""

    types: Mapping[str, ActionType]
    broken: Mapping[str, str] = {}


def own_actions() -> Mapping[str, ActionType]:
    """The action types of this package, by name."""
    modules = [import_module(f"{package.__name__}.{module.name}") for module in iter_modules(package.__path__)]
    types = [module.ACTION for module in modules if hasattr(module, "ACTION")]
    return {one.name: one for one in sorted(types, key=lambda one: one.name)}


def installed_actions(points: Iterable[EntryPoint] | None = None) -> Actions:
    """All action types. A package that cannot be used is left out, the rest works; `points` by default those of the
    installed packages.
    """
    types, broken = dict(own_actions()), {}
    for point in entry_points(group=GROUP) if points is None else points:
        found = declared_by(point)
        if isinstance(found, str):
            broken[point.name] = found
        elif found.name in types:
            broken[point.name] = f"there is already an action {found.name}"
        else:
            types[found.name] = found
    return Actions(types, broken)


def declared_by(point: EntryPoint) -> ActionType | str:
    """The declaration that an entry point names, or why there is none."""
    try:
        found = point.load()
    except Exception as error:  # noqa: BLE001 - a foreign package may raise anything while it is imported
        return f"{point.value} cannot be imported: {type(error).__name__}: {error}"
    return found if isinstance(found, ActionType) else f"{point.value} is not an ActionType"
