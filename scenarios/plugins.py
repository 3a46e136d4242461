"""Plugins of other packages and what they need: started in the order of their needs, each able to be missing (C-79).

Guarantees: a missing need, a cycle, a package that cannot be imported and a plugin that does not start are named in the
log; what depends on them is off, the rest runs. Neighbours: `scenarios.actions` finds action types; the process of the
scenarios starts the platform.
"""

import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import EntryPoint
from typing import Any

from msgspec import Struct, structs

from couriers.telegram_bot import BOT_API
from scenarios.action_files import LiveTypes, actions_of_files
from scenarios.actions import Actions, installed_actions
from scenarios.actions.discovery import found_in_packages
from scenarios.bot.data import Data
from scenarios.context import Context, ScenarioServices
from scenarios.engine import Ending, failed
from scenarios.schema import ActionType, Attributes
from scenarios.words import Text, sentence

GROUP = "ada.plugins"

log = logging.getLogger(__name__)


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


@dataclass(frozen=True, slots=True)
class Platform:
    """The services and action types of a process. `types`: an action that is off fails, with the reason. `off`: name →
    why.
    """

    services: ScenarioServices
    types: Mapping[str, ActionType]
    off: Mapping[str, Text]


@asynccontextmanager
async def started(
    services: ScenarioServices,
    settings: Mapping[str, Data],
    actions: Actions | None = None,
    plugins: Iterable[Plugin] | None = None,
) -> AsyncIterator[Platform]:
    """Start the platform until the end of the block, by default with what is installed. `settings`: the bot's
    settings.yaml, which may switch plugins off (C-81).
    """
    actions = actions or installed_actions()
    found, broken = installed_plugins() if plugins is None else (plugins, {})
    starter = _Starter(services, {plugin.name: plugin for plugin in found}, actions)
    off = {**_beside(actions), **broken, **starter.switched_off(settings)}
    async with AsyncExitStack() as stack:
        yield await starter.start(off, stack)


def _beside(actions: Actions) -> dict[str, Text]:
    """Return what could not be used, under names that are not those of actions that can."""
    return {name if name not in actions.types else f"a second {name}": why for name, why in actions.broken.items()}


class _Starter:
    def __init__(self, services: ScenarioServices, plugins: Mapping[str, Plugin], actions: Actions) -> None:
        self._services = services
        self._plugins = plugins
        self._actions = actions.types

    def switched_off(self, settings: Mapping[str, Data]) -> dict[str, Text]:
        """Return the plugins that are off, with the reason. So is a plugin with the name of an action, because needs
        could not distinguish them.
        """
        taken = {name: sentence("action_name") for name in self._plugins if name in self._actions}
        sections = {name: settings.get(name) for name in self._plugins}
        disabled = [name for name, one in sections.items() if isinstance(one, Mapping) and one.get("enabled") is False]
        return taken | dict.fromkeys(disabled, "settings.yaml switches it off")

    async def start(self, off: Mapping[str, Text], stack: AsyncExitStack) -> Platform:
        """Open the plugins in their order."""
        needs = {plugin.name: plugin.needs for plugin in self._plugins.values()}
        needs |= {kind.name: kind.needs for kind in self._actions.values()}
        planned = plan(needs, _present(self._services), off)
        off = dict(planned.off)
        for name in planned.order:
            if lost := next((need for need in needs[name] if need in off), None):
                off[name] = missing(lost, off)
            elif name in self._plugins:
                off |= await self._open(self._plugins[name], stack)
        for name, why in off.items():
            log.warning("%s is off: %s", name, why)
        types = {name: _usable(one, off) for name, one in self._actions.items() if name not in actions_of_files()}
        return Platform(self._services, LiveTypes(types), off)

    async def _open(self, plugin: Plugin, stack: AsyncExitStack) -> dict[str, Text]:
        """Open one; its name with the reason if it does not start."""
        try:
            opened = await stack.enter_async_context(plugin.open(self._services))
        except Exception as error:  # a foreign plugin may raise anything while it starts
            log.warning("the plugin %s does not start", plugin.name, exc_info=error)
            return {plugin.name: f"it does not start: {type(error).__name__}: {error}"}
        self._services = replace(self._services, plugins={**self._services.plugins, plugin.name: opened})
        return {}


def _present(services: ScenarioServices) -> set[str]:
    """Return what the process offers itself."""
    return {BOT_API} if services.telegram is not None else set()


def _usable(kind: ActionType, off: Mapping[str, Text]) -> ActionType:
    """Return the action; if it is off, an action that fails in its place."""
    if kind.name not in off:
        return kind
    reason = f"the action {kind.name} is off: {off[kind.name]}"

    async def execute(context: Context, _: Attributes) -> Ending:
        return failed("ACTION_OFF", reason)

    return structs.replace(kind, attributes=Attributes, execute=execute, tube="")


class Plan(Struct, frozen=True):
    """`order`: what can start, each after what it needs. `off`: what cannot, and why."""

    order: tuple[str, ...]
    off: Mapping[str, Text]


def plan(needs: Mapping[str, Collection[str]], present: Collection[str], off: Mapping[str, Text]) -> Plan:
    """Return the plan for these names and their needs. `present`: what is there already. `off`: what is known to be
    off.
    """
    off = dict(off)
    while True:
        left = {name: set(wanted) - set(present) for name, wanted in needs.items() if name not in off}
        found = _without_need(left, off) or _in_cycle(left)
        if not found:
            return Plan(tuple(TopologicalSorter(left).static_order()), off)
        off |= found


def missing(need: str, off: Mapping[str, Text]) -> str:
    """Return why something is off that has this need."""
    return f"it needs {need}, which {'is off' if need in off else 'is not there'}"


def _without_need(left: Mapping[str, Collection[str]], off: Mapping[str, Text]) -> dict[str, Text]:
    absent = {name: sorted(set(wanted) - left.keys()) for name, wanted in left.items()}
    return {name: missing(needs[0], off) for name, needs in absent.items() if needs}


def _in_cycle(left: Mapping[str, Collection[str]]) -> dict[str, Text]:
    try:
        TopologicalSorter(left).prepare()
    except CycleError as error:
        cycle = error.args[1]
        return dict.fromkeys(cycle, f"it is part of a cycle of needs: {' → '.join(cycle)}")
    return {}
