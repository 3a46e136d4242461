"""Goes on with one of several scenarios (C-94)."""

from scenarios.context import Context
from scenarios.engine import Ending
from scenarios.engine.splicing import branch
from scenarios.schema import ActionType, Field, types
from scenarios.schema.conditions import CASES, chosen


async def execute(context: Context) -> Ending:
    return branch(context.bot, context.step, chosen(context.prepared.own, context.prepared.seen))


ACTION = ActionType(
    name="branch",
    help="Runs the scenario of the first case whose condition holds in this place; the next action follows its last"
    " one. If none holds, and there is no `otherwise`, the action ends as `drop`.",
    one_of=("cases",),
    outcomes=("completed", "failed", "drop"),
    fields=(
        Field("cases", CASES, "The cases, `{when, scenario}`, in the order in which they are tried."),
        Field("otherwise", types.TEXT, "The scenario if no case applies."),
    ),
    execute=execute,
)
