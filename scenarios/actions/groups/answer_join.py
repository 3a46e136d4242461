"""Answers a request to join a group."""

from typing import Annotated

from core.errors import Invalid
from couriers.telegram_bot import BOT_API
from scenarios.context import Context
from scenarios.engine import Ending
from scenarios.engine.results import completed
from scenarios.schema import ActionType, Attributes, Seen
from scenarios.schema.attributes import Flag, Text, Whole
from scenarios.telegram.calls import TelegramRefused, call, required_bot, required_group
from scenarios.words import sentence

_DONE = ("USER_ALREADY_PARTICIPANT", "HIDE_REQUESTER_MISSING")
"""The errors of Telegram for a request that was answered before."""


class AnswerJoinAttributes(Attributes, frozen=True):
    approve: Annotated[Flag, Seen("Whether the person may join.")] = True
    user_id: Annotated[Whole, Seen("The person, instead of that of the event.")] = None
    chat_id: Annotated[Text, Seen("The id or @name of the group, instead of that of the event.")] = ""


async def execute(context: Context, written: AnswerJoinAttributes) -> Ending:
    """Answer a request to join. A request that was answered before counts as answered. Raises Refused."""
    context.require("manage")
    required_bot(context)
    chat = required_group(context, written.chat_id)
    if written.user_id is None:
        raise Invalid("FIELD_INVALID", sentence("user_id_missing_who_asks"), "user_id")
    method = "approveChatJoinRequest" if written.approve else "declineChatJoinRequest"
    try:
        await call(context, method, chat_id=chat, user_id=written.user_id)
    except TelegramRefused as error:
        if not any(text in error.detail for text in _DONE):
            raise
    return completed()


ACTION = ActionType(
    name="answer_join",
    needs=(BOT_API,),
    help="Approves or declines a person's request to join the group (an event `join_request`).",
    attributes=AnswerJoinAttributes,
    execute=execute,
)
