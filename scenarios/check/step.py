"""An action together with its nodes, which know the places, and the names that it sees."""

from msgspec import Struct

from scenarios.bot import Action, Scenario
from scenarios.bot.nodes import ListNode, MapNode, Node
from scenarios.check.visible import VisibleNames


class CheckedStep(Struct, frozen=True):
    """One action of a scenario."""

    scenario: Scenario
    action: Action
    node: MapNode
    seen: VisibleNames


def conditions_of(step: CheckedStep) -> list[Node]:
    """Return the field `when` of an action, and those of the cases of a `branch`."""
    cases = step.node.get("cases") if step.action.type == "branch" else None
    listed = cases.items if isinstance(cases, ListNode) else ()
    conditions = [step.node.get("when"), *(one.get("when") for one in listed if isinstance(one, MapNode))]
    return [one for one in conditions if one is not None]
