"""An action together with its nodes, which know the places, and the names that it sees."""

from msgspec import Struct

from scenarios.bot import Action, Scenario
from scenarios.bot.nodes import MapNode
from scenarios.check.visible import VisibleNames


class CheckedStep(Struct, frozen=True):
    """One action of a scenario."""

    scenario: Scenario
    action: Action
    node: MapNode
    seen: VisibleNames
