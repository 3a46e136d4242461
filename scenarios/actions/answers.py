"""Answers an event without a message: a text over the chat for a press, results for an inline query, the mark that the
bot is writing (C-102).
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated

from core.errors import Conflict, Invalid
from couriers.inbound import bot_calls_by_channel, longest_answer
from couriers.telegram_bot import BOT_API
from scenarios.bot.data import Data
from scenarios.context import Context
from scenarios.engine import Ending, completed
from scenarios.placeholders.values import as_list, as_text
from scenarios.rehearsal import RehearsedStep
from scenarios.schema import ActionType, Attributes, Own, Seen
from scenarios.schema.attributes import Anything, Duration, Flag, Text
from scenarios.telegram import call, required_bot
from scenarios.words import sentence


class AnswerPressAttributes(Attributes, frozen=True):
    text: Annotated[
        Text, Own("What the person sees: up to 200 characters in Telegram, 90 in VK.", may_be_empty=True)
    ] = ""
    alert: Annotated[Flag, Own("In Telegram a window that the person closes, in place of a note.")] = False


async def execute_answer_press(context: Context, written: AnswerPressAttributes) -> Ending:
    """Have the press answered by the bot's process. Raises Conflict NO_PRESS, NO_ANSWER_IN_CHANNEL; StoreError."""
    context.require("send")
    longest = longest_answer(context.channel)
    if not longest:
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


ANSWER_PRESS = ActionType(
    name="answer_press",
    help="Answers the pressed button with a short text over the chat, without a message: in Telegram and VK. In other"
    " channels the action fails, so that `chain: failed` can send a message. A press is answered once, and without a"
    " text when the run is over or waits: put this before what takes long.",
    attributes=AnswerPressAttributes,
    placeholder=True,
    one_of=("text",),
    execute=execute_answer_press,
)


MOST_RESULTS = 50
"""Results of one answer, by Telegram's Bot API."""


class AnswerInlineAttributes(Attributes, frozen=True):
    """`inline_query_id`: that of the event."""

    results: Annotated[
        Anything,
        Seen(
            f"A list of at most {MOST_RESULTS} results: `{{title, text, description, url}}`, or texts. A text is"
            " sent as it is, without marks.",
            may_be_empty=True,
        ),
    ] = None
    personal: Annotated[Flag, Seen("Whether the answer is only for this person.")] = True
    cache_max_age: Annotated[Duration, Seen("How long Telegram may answer the same words itself.", default="0s")] = (
        timedelta()
    )
    next_offset: Annotated[
        Text, Seen("What the event of the next page has as `inline_query_offset`.", may_be_empty=True)
    ] = ""
    inline_query_id: Annotated[Text, Seen()] = ""

    @property
    def query(self) -> str:
        """The query. Raises Invalid NO_QUERY."""
        if not self.inline_query_id:
            raise Invalid("NO_QUERY", sentence("answer_inline_answers_inline_query"))
        return self.inline_query_id

    def articles(self) -> list[dict[str, Data]]:
        """Return the results in the form of the Bot API. Raises Invalid."""
        listed = [] if self.results == "" else as_list(self.results)
        if len(listed) > MOST_RESULTS:
            raise Invalid(
                "FIELD_INVALID", sentence("results_more_than", count=len(listed), most=MOST_RESULTS), "results"
            )
        return [_article(number, one) for number, one in enumerate(listed, 1)]


async def execute_answer_inline(context: Context, written: AnswerInlineAttributes) -> Ending:
    """Answer an inline query. Telegram refuses it after some seconds. Raises Refused."""
    context.require("send")
    required_bot(context)
    results = written.articles()
    await call(
        context,
        "answerInlineQuery",
        inline_query_id=written.query,
        results=results,
        cache_time=int((written.cache_max_age or timedelta()).total_seconds()),
        is_personal=written.personal,
        next_offset=written.next_offset,
    )
    return completed({"results_offered": len(results)})


def rehearse_answer_inline(step: RehearsedStep, written: AnswerInlineAttributes) -> Ending:
    assert written.query
    return completed({"results_offered": len(written.articles())})


def _article(number: int, written: Data) -> dict[str, Data]:
    about = written if isinstance(written, Mapping) else {"title": as_text(written)}
    title = as_text(about.get("title")).strip()
    text = as_text(about.get("text")).strip() or title
    if not title:
        raise Invalid("FIELD_INVALID", sentence("results_one_has_no", number=number), "results")
    article: dict[str, Data] = {
        "type": "article",
        "id": str(number),
        "title": title,
        "input_message_content": {"message_text": text},
    }
    more = {name: as_text(about.get(name)) for name in ("description", "url")}
    return {**article, **{name: value for name, value in more.items() if value}}


ANSWER_INLINE = ActionType(
    name="answer_inline",
    needs=(BOT_API,),
    help="Offers results to a person who has written the bot's name and some words in any chat (an event"
    " `inline_query`). The chosen result is sent by that person. Telegram waits for an answer only a few seconds.",
    placeholder=True,
    attributes=AnswerInlineAttributes,
    returns={"results_offered": "how many results were offered"},
    execute=execute_answer_inline,
    rehearse=rehearse_answer_inline,
)


async def execute_typing(context: Context, _: Attributes) -> Ending:
    """Have the bot's process show the mark; channels without one show none. Raises Refused, StoreError."""
    context.require("send")
    calls = bot_calls_by_channel(context.services.core.client, context.services.tenant).get(context.channel)
    if calls is not None:
        await calls.show_typing(context.event)
    return completed()


TYPING = ActionType(
    name="typing",
    help="Shows in Telegram, VK and MAX that the bot is writing, for some seconds or until its next message: before an"
    " action that takes a moment. In other channels it does nothing.",
    execute=execute_typing,
)
