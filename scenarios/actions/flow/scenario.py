"""Splices other scenarios in (C-33, C-34)."""

from scenarios.context import Context
from scenarios.engine import Ending
from scenarios.engine.splicing import splice
from scenarios.schema import ActionType, Field, types


async def execute(context: Context) -> Ending:
    return splice(context.bot, context.step, context.prepared.own)


ACTION = ActionType(
    name="scenario",
    help="Runs another scenario in this place; the next action follows its last one. Several run side by side, and the"
    " next action does not wait for them.",
    placeholder=True,
    one_of=("name", "value"),
    fields=(
        Field("value", types.SCENARIOS, "The scenario: `file.name`, `folder.file.name` or the bare name."),
        Field("name", types.SCENARIOS, "The same as `value`."),
        Field("with", types.MAPPING, "Its parameters, name → value; its actions see them."),
    ),
    execute=execute,
)
