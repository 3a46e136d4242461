"""Recognises scenarios that are written for Coreness 1.x: `trigger` and `step` in place of triggers.yaml and `actions`.

Ada reads the dialect of Coreness 0.x. Without this, each scenario would be one without actions.
"""

from scenarios.bot import Place
from scenarios.bot.nodes import ListNode, MapNode, Node
from scenarios.loader.problem import Problems
from scenarios.words import sentence

_MARKS = (("step", "action"), ("trigger", "event_type"))
"""A field of a scenario, and what each entry of its list has."""


def is_later(scenario: Node) -> bool:
    """Return whether a scenario is one of Coreness 1.x."""
    if not isinstance(scenario, MapNode) or scenario.get("actions") is not None:
        return False
    lists = [(scenario.get(field), mark) for field, mark in _MARKS]
    return any(
        isinstance(entry, MapNode) and entry.get(mark) is not None
        for listed, mark in lists
        for entry in (listed.items if isinstance(listed, ListNode) else ())
    )


def report_later(places: list[Place], problems: Problems) -> None:
    """Report one error for all scenarios of Coreness 1.x; what their files would have had is not missed elsewhere."""
    if not places:
        return
    problems.unread |= {place.file for place in places}
    code = "scenario_dialect_coreness_x" if len(places) == 1 else "scenarios_dialect_coreness_x"
    message = sentence(code, count=len(places))
    problems.error(places[0], "LATER_DIALECT", message)
