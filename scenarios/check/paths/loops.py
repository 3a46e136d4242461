"""Finds scenarios that the loop guard would stop (C-90): those that splice themselves in, directly or through others,
and those with too many actions.
"""

from scenarios.bot import Bot, Place
from scenarios.check.paths.references import Splices
from scenarios.engine import DEFAULT_LIMITS
from scenarios.loader.problem import Problems
from scenarios.words import sentence

_NAMES = 10
"""The most scenarios that are named of a loop."""


def check_loops(bot: Bot, splices: Splices, problems: Problems) -> None:
    """Report each splice that closes a loop, with the names along the loop."""
    finished: set[str] = set()
    for name in bot.scenarios:
        if name not in finished:
            for path, place in loops_from(name, splices, finished):
                problems.error(place, "SCENARIO_LOOP", sentence("these_scenarios_splice_each", path=path))


def check_sizes(bot: Bot, problems: Problems) -> None:
    """Warns of scenarios that alone have more actions than one event may start."""
    for scenario in bot.scenarios.values():
        if len(scenario.actions) > DEFAULT_LIMITS.actions:
            message = sentence("actions_one_event_may", count=len(scenario.actions), most=DEFAULT_LIMITS.actions)
            problems.warning(scenario.place, "TOO_MANY_ACTIONS", message)


def loops_from(start: str, splices: Splices, finished: set[str]) -> list[tuple[str, Place]]:
    """Return the loops that a depth-first walk from `start` closes; names it has left are added to `finished`."""
    found = []
    path, open_splices = [start], [iter(splices.get(start, ()))]
    on_path = {start}
    while path:
        splice = next(open_splices[-1], None)
        if splice is None:
            open_splices.pop()
            on_path.discard(path[-1])
            finished.add(path.pop())
            continue
        target, place = splice
        if target in on_path:
            found.append((_along([*path[path.index(target) :], target]), place))
        elif target not in finished:
            path.append(target)
            on_path.add(target)
            open_splices.append(iter(splices.get(target, ())))
    return found


def _along(names: list[str]) -> str:
    """Return the names along a loop; of a long one the first and the last."""
    shown = names if len(names) <= _NAMES else [*names[: _NAMES // 2], "…", *names[-_NAMES // 2 :]]
    return " → ".join(shown)
