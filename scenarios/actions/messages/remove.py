"""Removes a message."""

from core.errors import Invalid
from scenarios.context import Context
from scenarios.context.arguments import whole_of
from scenarios.engine import Ending
from scenarios.engine.results import completed
from scenarios.schema import ActionType, Field, types
from scenarios.telegram.calls import TelegramRefused, call

_GONE = "message to delete not found"


async def execute(context: Context) -> Ending:
    """Remove a message. A message that is not there counts as removed. Raises Refused."""
    context.require("send")
    seen = context.prepared.seen
    message = whole_of(seen, "remove_message_id") or whole_of(seen, "message_id")
    if message is None:
        raise Invalid("NO_MESSAGE", "there is no message to remove")
    chat = seen.get("chat_id") or context.chat
    try:
        await call(context, "deleteMessage", chat_id=chat, message_id=message)
    except TelegramRefused as error:
        if _GONE not in error.detail:
            raise
    return completed()


ACTION = ActionType(
    name="remove",
    needs=("telegram",),
    help="Removes the message of the event, or another one. A message that is not there counts as removed.",
    fields=(Field("remove_message_id", types.WHOLE, "The message to remove, instead of that of the event."),),
    execute=execute,
)
