"""Shows in the chat that the bot is writing (C-102)."""

from providers.telegram_bot import CHANNEL
from scenarios.context import Context
from scenarios.engine import Ending
from scenarios.engine.results import completed
from scenarios.schema import ActionType
from scenarios.telegram.calls import call


async def execute(context: Context) -> Ending:
    """Show the mark in Telegram; other channels show none. Raises Refused."""
    context.require("send")
    if context.channel == CHANNEL:
        await call(context, "sendChatAction", chat_id=context.chat, action="typing")
    return completed()


ACTION = ActionType(
    name="typing",
    help="Shows in Telegram that the bot is writing, for five seconds or until its next message: before an action that"
    " takes a moment. In other channels it does nothing.",
    execute=execute,
)
