"""Cancels what was scheduled for later."""

from typing import Annotated

from scenarios.context import Context
from scenarios.engine import Ending
from scenarios.engine.results import completed, failed
from scenarios.schema import ActionType, Attributes, Own
from scenarios.schema.attributes import Verbatim
from scenarios.sending.orders import personal_tag
from scenarios.words import sentence


class CancelAttributes(Attributes, frozen=True):
    tag: Annotated[Verbatim, Own("The `tag` of the `send` that scheduled them.")] = ""


async def execute(context: Context, written: CancelAttributes) -> Ending:
    context.require("send")
    if not written.tag:
        return failed(sentence("no_tag_given"))
    tenant, tag = context.services.tenant, personal_tag(context.event, written.tag)
    return completed({"cancelled": await context.services.core.deliveries.cancel_by(tenant, "tag", tag)})


ACTION = ActionType(
    name="cancel",
    help="Cancels the messages that scenarios of this person have scheduled under a tag, as far as they are not sent.",
    placeholder=True,
    one_of=("tag",),
    attributes=CancelAttributes,
    returns={"cancelled": "how many deliveries were cancelled"},
    execute=execute,
    samples={"cancelled": 1},
)
