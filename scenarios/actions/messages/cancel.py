"""Cancels what was scheduled for later."""

from scenarios.context import Context
from scenarios.engine import Ending
from scenarios.engine.results import completed, failed
from scenarios.schema import ActionType, Field, types
from scenarios.sending.orders import personal_tag


async def execute(context: Context) -> Ending:
    context.require("send")
    tag = context.prepared.own.get("tag")
    if tag in (None, ""):
        return failed("no tag is given")
    services = context.services
    found = await services.core.deliveries.cancel_by(services.tenant, "tag", personal_tag(context.event, tag))
    return completed({"cancelled": found})


ACTION = ActionType(
    name="cancel",
    help="Cancels the messages that scenarios of this person have scheduled under a tag, as far as they are not sent.",
    placeholder=True,
    one_of=("tag",),
    fields=(Field("tag", types.TEXT, "The `tag` of the `send` that scheduled them."),),
    returns={"cancelled": "how many deliveries were cancelled"},
    execute=execute,
)
