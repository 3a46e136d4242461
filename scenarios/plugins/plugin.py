"""The declaration of a plugin, and the discovery of those of installed packages."""

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from importlib.metadata import EntryPoint
from typing import Any

from msgspec import Struct

from scenarios.context import ScenarioServices
from scenarios.schema.entry_points import found_in_packages
from scenarios.words import Text

GROUP = "ada.plugins"


class Plugin(Struct, frozen=True):
    """Something that actions use: a connection, a client. `open`: opens it for the time of the process; its value is
    `ScenarioServices.plugins[name]`. `needs`: names of other plugins, and `telegram`; they are open before.
    """

    name: str
    open: Callable[[ScenarioServices], AbstractAsyncContextManager[Any]]
    needs: tuple[str, ...] = ()


def installed_plugins(points: Iterable[EntryPoint] | None = None) -> tuple[list[Plugin], dict[str, Text]]:
    """Return the plugins, and the names of those that cannot be used with the reason; `points` by default those of the
    installed packages.
    """
    plugins, broken = found_in_packages(Plugin, GROUP, points)
    return list(plugins.values()), broken
