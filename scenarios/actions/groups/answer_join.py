"""Answers a request to join a group."""

from core.errors import Invalid
from scenarios.context import Context
from scenarios.context.arguments import flag_of, whole_of
from scenarios.engine import Ending
from scenarios.engine.results import completed
from scenarios.schema import ActionType, Field, types
from scenarios.telegram.calls import TelegramRefused, call, required_bot, required_group

_DONE = ("USER_ALREADY_PARTICIPANT", "HIDE_REQUESTER_MISSING")
"""The errors of Telegram for a request that was answered before."""


async def execute(context: Context) -> Ending:
    """Answer a request to join. A request that was answered before counts as answered. Raises Refused."""
    context.require("manage")
    required_bot(context)
    seen, chat = context.prepared.seen, required_group(context)
    person, approves = whole_of(seen, "user_id"), flag_of(seen, "approve", default=True)
    if person is None:
        raise Invalid("FIELD_INVALID", "user_id is missing: who asks to join", "user_id")
    method = "approveChatJoinRequest" if approves else "declineChatJoinRequest"
    try:
        await call(context, method, chat_id=chat, user_id=person)
    except TelegramRefused as error:
        if not any(text in error.detail for text in _DONE):
            raise
    return completed()


ACTION = ActionType(
    name="answer_join",
    needs=("telegram",),
    help="Approves or declines a person's request to join the group (an event `join_request`).",
    fields=(
        Field("approve", types.FLAG, "Whether the person may join.", default=True),
        Field("user_id", types.WHOLE, "The person, instead of that of the event."),
        Field("chat_id", types.TEXT, "The id or @name of the group, instead of that of the event."),
    ),
    execute=execute,
)
