"""Goes on with one of several scenarios (C-94)."""

from typing import Annotated

from scenarios.context import Context
from scenarios.engine import Ending
from scenarios.engine.splicing import branch
from scenarios.rehearsal import RehearsedStep
from scenarios.schema import ActionType, Attributes, Own
from scenarios.schema.attributes import Text
from scenarios.schema.conditions import Cases, chosen


class BranchAttributes(Attributes, frozen=True):
    cases: Annotated[Cases, Own("The cases, `{when, scenario}`, in the order in which they are tried.")] = ()
    otherwise: Annotated[Text, Own("The scenario if no case applies.")] = ""


async def execute(context: Context, written: BranchAttributes) -> Ending:
    return _branch(context, written)


def rehearse(step: RehearsedStep, written: BranchAttributes) -> Ending:
    return _branch(step, written)


def _branch(on: Context | RehearsedStep, written: BranchAttributes) -> Ending:
    name = chosen(written.cases, on.prepared.seen) or written.otherwise
    return branch(on.bot, on.step, name)


ACTION = ActionType(
    name="branch",
    help="Runs the scenario of the first case whose condition holds in this place; the next action follows its last"
    " one. If none holds, and there is no `otherwise`, the action ends as `drop`.",
    attributes=BranchAttributes,
    one_of=("cases",),
    outcomes=("completed", "failed", "drop"),
    execute=execute,
    rehearse=rehearse,
)
