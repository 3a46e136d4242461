"""Splices other scenarios in (C-33, C-34)."""

from datetime import tzinfo
from typing import Annotated

from scenarios.bot.data import Data
from scenarios.context import Context
from scenarios.engine import Ending
from scenarios.engine.splicing import splice
from scenarios.rehearsal import RehearsedStep
from scenarios.schema import ActionType, Attributes, Own, types
from scenarios.schema.attributes import Fields


def _names(value: Data, name: str, zone: tzinfo) -> str | tuple[str, ...] | None:
    if isinstance(value, list):
        return tuple(map(str, value)) or None
    return str(value) if value else None


Names = Annotated[str | tuple[str, ...], types.SCENARIOS, _names]


class ScenarioAttributes(Attributes, frozen=True):
    value: Annotated[Names, Own("The scenario: `file.name`, `folder.file.name` or the bare name.")] = ()
    name: Annotated[Names, Own(alias_of="value")] = ()
    with_: Annotated[Fields, Own("Its parameters, name → value; its actions see them.", may_be_empty=True)] = {}


async def execute(context: Context, written: ScenarioAttributes) -> Ending:
    return splice(context.bot, context.step, written.value or written.name, written.with_)


def rehearse(step: RehearsedStep, written: ScenarioAttributes) -> Ending:
    ending = splice(step.bot, step.step, written.value or written.name, written.with_)
    step.warnings += [ending.error] if ending.error else []
    return ending


ACTION = ActionType(
    name="scenario",
    help="Runs another scenario in this place; the next action follows its last one. Several run side by side, and the"
    " next action does not wait for them.",
    attributes=ScenarioAttributes,
    placeholder=True,
    one_of=("name", "value"),
    execute=execute,
    rehearse=rehearse,
)
