"""Asks the person of the event, and goes on when it has answered (C-95)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core.model.clock import in_ms
from core.model.history_key import HistoryKey
from scenarios.bot.button_data import PageTurn, list_id, turn_of
from scenarios.context import Asking, Context
from scenarios.engine import Ending, State
from scenarios.engine.results import failed
from scenarios.schema import ActionType, Field, types
from scenarios.schema.questions import (
    ANSWERS,
    DEFAULT_ATTEMPTS,
    DEFAULT_TIMEOUT,
    Question,
    question_of,
    with_options,
)
from scenarios.schema.rules import RULE_LIST
from scenarios.schema.variables import VARIABLE
from scenarios.sending.saying import say
from scenarios.stores.questions import AskedBy, Questions


async def execute(context: Context) -> Ending | Asking:
    """Ask once, however often it is executed; the driver ends the step. Raises Refused."""
    asked = question(context)
    if not (asked.hint or context.prepared.seen.get("attachment")):
        return failed("there is nothing to ask: no text")
    questions = Questions(context.services.core.store, context.services.tenant)
    await questions.open(context.event, AskedBy(context.run, context.step.path), asked.timeout)
    delivery = await repeat(context, asked, "")
    now = context.services.now_ms()
    remind = asked.remind
    return Asking(now + in_ms(asked.timeout), now + in_ms(remind) if remind else 0, delivery=delivery)


def question(context: Context) -> Question:
    """Return the question of a step."""
    return question_of(context.prepared.own, context.bot, context.step.path[-1] + 1)


async def repeat(context: Context, asked: Question, name: str, text: str = "") -> HistoryKey | None:
    """Send the question, or a hint in its place; return its delivery. `name`: distinguishes this message from the
    others of the step.
    """
    seen = with_options(context.prepared.seen, asked, PageTurn(list_id(context.identity), 0))
    return await say(context, {**seen, "text": text, "attachment": None} if text else seen, name)


async def turn_page(context: Context, press: Mapping[str, Any], event_run: str) -> bool:
    """Show another page of the options in the message whose button was pressed. Returns False if the button is none of
    this question's. Raises Refused.
    """
    turn = turn_of(press)
    if turn is None or turn.list_id != list_id(context.identity):
        return False
    seen = with_options(context.prepared.seen, question(context), turn)
    await say(context, seen, f"page:{event_run}", press)
    return True


async def remind(context: Context, asking: Asking) -> Asking:
    """Ask again, unless the question is still on its way; return until when the step now waits."""
    asked = question(context)
    later = context.services.now_ms() + in_ms(asked.remind) if asked.remind else 0
    if asking.under_way:
        return replace(asking, remind=later)
    delivery = await repeat(context, asked, f"remind:{asking.reminders + 1}")
    return Asking(asking.until, later, asking.reminders + 1, delivery)


def arrived(context: Context, asking: Asking, sent: Ending) -> Asking | Ending:
    """Return what follows from the end of a question's delivery: the step waits for the answer, or ends as the delivery
    did. A reminder that did not arrive ends nothing: the person has the question.
    """
    if sent.state is State.COMPLETED or asking.reminders:
        if sent.state is not State.COMPLETED:
            context.warn(f"the reminder did not arrive: {sent.error}")
        return replace(asking, verdict=str(sent.returned.results.get("verdict") or sent.state))
    return sent


ACTION = ActionType(
    name="ask",
    help="Asks the person and waits for the answer, without holding up anything. Completes with a right answer; fails"
    " after the time limit or too many wrong answers, ends as `drop` if the person begins something else. If the"
    " question does not arrive it ends at once: `failed`, or `unknown` if it may have arrived.",
    placeholder=True,
    outcomes=("completed", "failed", "unknown", "drop"),
    one_of=("text", "attachment"),
    fields=(
        Field("text", types.TEXT, "The question."),
        Field("save", VARIABLE, "The variable that gets the answer; its type is that of the answer."),
        Field(
            "answer", types.choice(*ANSWERS), "What is an answer, if no variable says so. `contact` is a phone number."
        ),
        Field("options", types.TEXTS, "The choices, as buttons; a number answers, too."),
        Field("page", types.WHOLE, "How many choices a page shows; buttons turn the pages of a longer list."),
        Field("rules", RULE_LIST, "Rules of the validator that the answer must keep."),
        Field("hint", types.TEXT, "What is said to a wrong answer, instead of the question once more."),
        Field("attempts", types.WHOLE, "After how many wrong answers the action fails.", default=DEFAULT_ATTEMPTS),
        Field("timeout", types.DURATION, "How long the answer is waited for.", default=DEFAULT_TIMEOUT),
        Field("remind", types.DURATION, "After how long without an answer the question is asked again, each time."),
        Field("form", types.TEXT, "The form in whose table the answer stands."),
        Field("field", types.TEXT, "The name of its column, instead of that of the variable."),
        Field("parse_mode", types.choice("HTML", "MarkdownV2"), "How marks in the text are written.", default="HTML"),
        Field("inline", types.KEYBOARD, "Buttons of one's own instead of one for each option."),
        Field(
            "reply",
            types.KEYS,
            "Buttons in place of the person's keyboard. `{text: request_contact}` asks for the person's contact.",
        ),
        Field("attachment", types.ATTACHMENT, "Files that come with the question."),
    ),
    returns={
        "answer": "the answer",
        "delivery_id": "the id of the delivery of the question, or of its last reminder",
        "verdict": "what became of it",
        "person": "the variables of the person",
        "chat": "the variables of the chat",
        "run": "the variables of the run",
    },
    execute=execute,
)
