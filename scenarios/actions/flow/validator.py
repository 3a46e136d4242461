"""Checks values, and sets variables (C-58 to C-62)."""

from typing import Annotated

from scenarios.context import Context
from scenarios.engine import Ending
from scenarios.rehearsal import RehearsedStep
from scenarios.schema import ActionType, Attributes, Own, conversion, validator
from scenarios.schema.rules import MODES, RULES, VALIDATOR_RULES
from scenarios.telegram.authorisation import is_member


class ValidatorAttributes(Attributes, frozen=True):
    rules: Annotated[
        validator.Rules,
        VALIDATOR_RULES,
        conversion.mapping,
        Own(
            f"The rules of each field: {', '.join(RULES)}. `is_member` has its chats as `chat` (also as `value`), by"
            f" default that of the event, and `mode` ({' or '.join(MODES)}) and `target_user`."
        ),
    ] = {}


async def execute(context: Context, written: ValidatorAttributes) -> Ending:
    return validator.ending(context.prepared, written.rules, await is_member(context, written.rules))


def rehearse(step: RehearsedStep, written: ValidatorAttributes) -> Ending:
    """Everybody is a member."""
    return validator.ending(step.prepared, written.rules, lambda rule: True)


ACTION = ActionType(
    name="validator",
    help="Completes if all rules hold, otherwise fails. Further fields are variables for later actions.",
    attributes=ValidatorAttributes,
    other_fields=True,
    outcomes=("completed", "failed", "drop"),
    returns={"(its other fields)": "their values"},
    execute=execute,
    rehearse=rehearse,
)
