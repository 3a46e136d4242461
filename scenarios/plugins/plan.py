"""The order in which things start that need each other, and what cannot start. Pure."""

from collections.abc import Collection, Mapping
from graphlib import CycleError, TopologicalSorter

from msgspec import Struct

from scenarios.words import Text


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
