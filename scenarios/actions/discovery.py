"""Finds the action types: the files of this package, and the entry points `ada.actions` of installed packages."""

from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint
from pkgutil import iter_modules

from msgspec import Struct

import scenarios.actions as package
from scenarios.packages import found_in_packages
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
    own = own_actions()
    added, broken = found_in_packages(ActionType, GROUP, points, own)
    return Actions({**own, **added}, broken)
