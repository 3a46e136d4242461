"""Removes a message."""

from typing import Annotated

from core.errors import Invalid
from couriers.telegram_bot import BOT_API
from scenarios.context import Context
from scenarios.engine import Ending
from scenarios.engine.results import completed
from scenarios.schema import ActionType, Attributes, Seen
from scenarios.schema.attributes import Anything, Whole
from scenarios.telegram.calls import TelegramRefused, call
from scenarios.words import sentence

_GONE = "message to delete not found"


class RemoveAttributes(Attributes, frozen=True):
    """`message_id`, `chat_id`: those of the event."""

    remove_message_id: Annotated[Whole, Seen("The message to remove, instead of that of the event.")] = None
    message_id: Annotated[Whole, Seen()] = None
    chat_id: Annotated[Anything, Seen()] = None


async def execute(context: Context, written: RemoveAttributes) -> Ending:
    """Remove a message. A message that is not there counts as removed. Raises Refused."""
    context.require("send")
    message = written.remove_message_id or written.message_id
    if message is None:
        raise Invalid("NO_MESSAGE", sentence("no_message_remove"))
    chat = written.chat_id or context.chat
    try:
        await call(context, "deleteMessage", chat_id=chat, message_id=message)
    except TelegramRefused as error:
        if _GONE not in error.detail:
            raise
    return completed()


ACTION = ActionType(
    name="remove",
    needs=(BOT_API,),
    help="Removes the message of the event, or another one. A message that is not there counts as removed.",
    attributes=RemoveAttributes,
    execute=execute,
)
