"""Finds the action types: those of the modules of this folder, of the entry points `ada.actions` of installed packages,
and of the files of ADA_ACTIONS.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint
from pkgutil import iter_modules

from msgspec import Struct

import scenarios.actions as package
from scenarios.action_files import LiveTypes
from scenarios.schema import ActionType
from scenarios.schema.entry_points import found_in_packages
from scenarios.words import Text

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
