"""Answers the press of a button with a text over the chat (C-102)."""

from typing import Annotated

from core.errors import Conflict
from couriers.inbound import bot_calls_by_channel, longest_answer
from scenarios.context import Context
from scenarios.engine import Ending
from scenarios.engine.results import completed
from scenarios.schema import ActionType, Attributes, Own
from scenarios.schema.attributes import Flag, Text
from scenarios.words import sentence


class AnswerPressAttributes(Attributes, frozen=True):
    text: Annotated[
        Text, Own("What the person sees: up to 200 characters in Telegram, 90 in VK.", may_be_empty=True)
    ] = ""
    alert: Annotated[Flag, Own("In Telegram a window that the person closes, in place of a note.")] = False


async def execute(context: Context, written: AnswerPressAttributes) -> Ending:
    """Have the press answered by the bot's process. Raises Conflict NO_PRESS, NO_ANSWER_IN_CHANNEL; StoreError."""
    context.require("send")
    longest = longest_answer(context.channel)
    if longest is None:
        raise Conflict("NO_ANSWER_IN_CHANNEL", sentence("channel_cannot_show_answer", channel=context.channel))
    if not context.event.get("callback_id"):
        raise Conflict("NO_PRESS", sentence("event_not_pressed_button"))
    text = written.text
    if len(text) > longest:
        context.warn(sentence("answer_press_has_characters", length=len(text), most=longest))
        text = f"{text[: longest - 1]}…"
    calls = bot_calls_by_channel(context.services.core.client, context.services.tenant)[context.channel]
    if not await calls.answer_press(context.event, text, alert=written.alert):
        context.warn(sentence("press_was_answered_before"))
    return completed()


ACTION = ActionType(
    name="answer_press",
    help="Answers the pressed button with a short text over the chat, without a message: in Telegram and VK. In other"
    " channels the action fails, so that `chain: failed` can send a message. A press is answered once, and without a"
    " text when the run is over or waits: put this before what takes long.",
    attributes=AnswerPressAttributes,
    placeholder=True,
    one_of=("text",),
    execute=execute,
)
