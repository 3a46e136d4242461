"""The declaration of a plugin, and the discovery of those of installed packages."""

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from msgspec import Struct

from scenarios.context import Services

GROUP = "ada.plugins"


class Plugin(Struct, frozen=True):
    """Something that actions use: a connection, a client. `open`: opens it for the time of the process; its value is
    `Services.plugins[name]`. `needs`: names of other plugins, and `telegram`; they are open before.
    """

    name: str
    open: Callable[[Services], AbstractAsyncContextManager[Any]]
    needs: tuple[str, ...] = ()


def installed_plugins(points: Iterable[EntryPoint] | None = None) -> tuple[list[Plugin], dict[str, str]]:
    """The plugins, and the names of those that cannot be used with the reason; `points` by default those of the
    installed packages.
    """
    plugins: dict[str, Plugin] = {}
    broken: dict[str, str] = {}
    for point in entry_points(group=GROUP) if points is None else points:
        found = _loaded(point)
        if isinstance(found, str):
            broken[point.name] = found
        elif found.name in plugins:
            broken[point.name] = f"there is already a plugin {found.name}"
        else:
            plugins[found.name] = found
    return list(plugins.values()), broken


def _loaded(point: EntryPoint) -> Plugin | str:
    try:
        found = point.load()
    except Exception as error:  # noqa: BLE001 - a foreign package may raise anything while it is imported
        return f"{point.value} cannot be imported: {type(error).__name__}: {error}"
    return found if isinstance(found, Plugin) else f"{point.value} is not a Plugin"
