"""Checks values, and sets variables (C-58 to C-62)."""

from scenarios import validator
from scenarios.context import Context
from scenarios.engine import Ending
from scenarios.schema import ActionType, Field
from scenarios.schema.rules import VALIDATOR_RULES


async def execute(context: Context) -> Ending:
    return validator.ending(context.prepared, _is_member)


def _is_member(_: validator.Rule) -> bool:
    raise validator.RuleUnusable("membership cannot be checked here")


ACTION = ActionType(
    name="validator",
    help="Completes if all rules hold, otherwise fails. Further fields are variables for later actions.",
    other_fields=True,
    outcomes=("completed", "failed", "drop"),
    fields=(Field("rules", VALIDATOR_RULES, "The rules of each field."),),
    returns={"(its other fields)": "their values"},
    execute=execute,
)
