"""Checks values, and sets variables (C-58 to C-62)."""

from scenarios.context import Context
from scenarios.engine import Ending
from scenarios.schema import ActionType, Field, validator
from scenarios.schema.rules import MODES, RULES, VALIDATOR_RULES
from scenarios.telegram.membership import is_member


async def execute(context: Context) -> Ending:
    return validator.ending(context.prepared, await is_member(context))


ACTION = ActionType(
    name="validator",
    help="Completes if all rules hold, otherwise fails. Further fields are variables for later actions.",
    other_fields=True,
    outcomes=("completed", "failed", "drop"),
    fields=(
        Field(
            "rules",
            VALIDATOR_RULES,
            f"The rules of each field: {', '.join(RULES)}. `is_member` has its chats as `chat` (also as `value`), by"
            f" default that of the event, and `mode` ({' or '.join(MODES)}) and `target_user`.",
        ),
    ),
    returns={"(its other fields)": "their values"},
    execute=execute,
)
