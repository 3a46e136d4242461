"""Shows in the chat that the bot is writing (C-102)."""

from couriers.inbound import bot_calls_by_channel
from scenarios.context import Context
from scenarios.engine import Ending
from scenarios.engine.results import completed
from scenarios.schema import ActionType, Attributes


async def execute(context: Context, _: Attributes) -> Ending:
    """Have the bot's process show the mark; channels without one show none. Raises Refused, StoreError."""
    context.require("send")
    calls = bot_calls_by_channel(context.services.core.client, context.services.tenant).get(context.channel)
    if calls is not None:
        await calls.show_typing(context.event)
    return completed()


ACTION = ActionType(
    name="typing",
    help="Shows in Telegram, VK and MAX that the bot is writing, for some seconds or until its next message: before an"
    " action that takes a moment. In other channels it does nothing.",
    execute=execute,
)
