"""The outcomes of actions that the caller of a dry run or a test of a bot sets."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from scenarios.bot.data import Data
from scenarios.engine import Ending, Step
from scenarios.engine.graph import node_id
from scenarios.engine.results import failed, unknown
from scenarios.words import sentence


@dataclass(frozen=True, slots=True)
class Outcomes:
    """By the type of an action or by its name in the graph (`menu.start:2`): which fail, of which it is unknown, and
    what they return.
    """

    fail: Collection[str] = ()
    unclear: Collection[str] = ()
    returns: Mapping[str, Mapping[str, Data]] = field(default_factory=dict)

    def of(self, step: Step) -> Ending | None:
        """Return the end that is set for a step, None for none."""
        names = {step.action.type, node_of(step)}
        if names & set(self.fail):
            return failed(sentence("outcome_set_failed"))
        return unknown(sentence("outcome_set_unknown")) if names & set(self.unclear) else None

    def returned(self, step: Step) -> Mapping[str, Data] | None:
        """Return what is set that a step returns, None for nothing."""
        return self.returns.get(node_of(step), self.returns.get(step.action.type))


def node_of(step: Step) -> str:
    return node_id(step.scenario, step.path[-1] + 1)
