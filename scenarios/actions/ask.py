"""Asks the person of the event, and goes on when it has answered (C-95)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

from msgspec import structs

from core.errors import Invalid
from core.model.clock import from_ms, in_ms
from core.model.history_key import HistoryKey
from core.sentence import language_of, language_of_text
from scenarios.bot import Bot
from scenarios.bot.button_data import (
    Button,
    InlineRows,
    PageTurn,
    list_id,
    normalise,
    option_data,
    page_rows,
    turn_of,
)
from scenarios.bot.data import Data
from scenarios.bot.model import Variable
from scenarios.context import Asking, Context
from scenarios.engine import Ending, Step, failed
from scenarios.placeholders.values import as_list
from scenarios.rehearsal import RehearsedStep
from scenarios.schema import ActionType, Own, Seen, conversion, types
from scenarios.schema.attributes import Duration, Elements, StaysOpenFor, Text, Verbatim, Whole, converted
from scenarios.schema.questions import (
    ANSWERS,
    DATES,
    DEFAULT_ATTEMPTS,
    DEFAULT_TIMEOUT,
    OVER,
    TIME_COLUMNS,
    TIMES,
    AskedQuestion,
    TimeChoices,
    days_of,
    times_of,
)
from scenarios.schema.rules import RULE_LIST
from scenarios.schema.variables import VARIABLE
from scenarios.sending.message import (
    BotMessage,
    Files,
    Inline,
    MessageAttributes,
    MessageId,
    Reply,
    message,
)
from scenarios.sending.orders import say
from scenarios.stores.questions import AskedBy, Questions
from scenarios.words import in_language, sentence

_NOTHING = failed("NOTHING_TO_SEND", sentence("nothing_ask_no_text"))


class AskAttributes(MessageAttributes, frozen=True):
    """`own_text`: the question as the author wrote it, of which an earlier action may have replaced the text."""

    text: Annotated[Verbatim, Seen("The question.", may_be_empty=True)] = ""
    save: Annotated[
        str,
        VARIABLE,
        conversion.text,
        Own("The variable that gets the answer; its type is that of the answer."),
    ] = ""
    answer: Annotated[
        str,
        types.choice(*ANSWERS),
        conversion.text,
        Own("What is an answer, if no variable says so. `contact` is a phone number."),
    ] = ""
    options: Annotated[
        Elements, Own("The choices, as buttons; a number answers, too. With `answer: text` any other text does.")
    ] = ()
    dates: Annotated[
        Mapping[str, Data],
        DATES,
        conversion.mapping,
        Own("Days to choose from, as buttons: `{from: today, to: 14d}`, days or durations from now. A date answers."),
    ] = {}
    times: Annotated[
        Mapping[str, Data],
        TIMES,
        conversion.mapping,
        Own(
            'Times of day to choose from, as buttons: `{from: 8:00, to: 20:00, every: 2h}`. With `day: "{run.day}"`'
            " those of this day that are over are left out."
        ),
    ] = {}
    page: Annotated[Whole, Own("How many choices a page shows; buttons turn the pages of a longer list.")] = None
    rules: Annotated[Data, RULE_LIST, conversion.anything, Own("Rules of the validator that the answer must keep.")] = (
        None
    )
    hint: Annotated[
        Text, Own("What is said to a wrong answer, instead of the question once more.", may_be_empty=True)
    ] = ""
    attempts: Annotated[Whole, Own("After how many wrong answers the action fails.", default=DEFAULT_ATTEMPTS)] = None
    timeout: Annotated[Duration, Own("How long the answer is waited for.")] = DEFAULT_TIMEOUT
    stays_open_for: StaysOpenFor = ()
    remind: Annotated[Duration, Own("After how long without an answer the question is asked again, each time.")] = None
    form: Annotated[Text, Own("The form in whose table the answer stands.")] = ""
    field: Annotated[Text, Own("The name of its column, instead of that of the variable.")] = ""
    row: Annotated[Text, Own("The name of the row, for forms of which a person may have several.")] = ""
    parse_mode: Annotated[
        str,
        types.choice("HTML", "MarkdownV2"),
        conversion.text,
        Seen("How marks in the text are written.", default="HTML"),
    ] = ""
    inline: Annotated[
        Inline,
        Seen(
            "Buttons of one's own instead of one for each option. One that is only a text answers like these words.",
            may_be_empty=True,
        ),
    ] = ()
    reply: Annotated[
        Reply,
        Seen(
            "Buttons in place of the person's keyboard. `{text: request_contact}` asks for the person's contact.",
            may_be_empty=True,
        ),
    ] = None
    attachment: Annotated[Files, Seen("Files that come with the question.", may_be_empty=True)] = None
    exact_message_id: Annotated[
        MessageId,
        Seen("The message to edit, such as `{pressed_message_id}` of the question before.", may_be_empty=True),
    ] = None
    own_text: Annotated[str, types.TEXT, conversion.shown, Own(key="text", may_be_empty=True)] = ""

    def question(self, bot: Bot, number: int, now: datetime) -> AskedQuestion:
        """Return the question. `number`: that of the action, for the name of its column. `now`: in the bot's zone.
        Raises Invalid FIELD_INVALID.
        """
        variable = bot.declared.get(self.save, Variable())
        at = self._choices(now)
        options = at.options or self.options or variable.options
        return AskedQuestion(
            "choice" if at.options else self.answer or ("choice" if options else variable.type),
            options,
            as_list(self.rules),
            self.hint or self.own_text,
            self.attempts or DEFAULT_ATTEMPTS,
            self.timeout or DEFAULT_TIMEOUT,
            self.remind,
            self.save,
            self.form,
            self.field or self.save.rpartition(".")[2] or f"question_{number}",
            max(0, at.page if self.page is None else self.page),
            self.row,
            TIME_COLUMNS if at.options else 1,
            at.values,
            at.over,
            () if options or self.answer in ("contact", "photo") else tuple(self._answering(bot)),
        )

    def _answering(self, bot: Bot) -> Iterator[str]:
        """Yield the texts of the buttons that lead nowhere and that no trigger of `callback` names: their answers."""
        for button in (one for row in self.inline for one in row):
            text = button["text"]
            if button.get("data") == normalise(text) and not bot.names_button(text):
                yield text

    def _choices(self, now: datetime) -> TimeChoices:
        if self.dates:
            return days_of(self.dates, now, language_of(language_of_text(self.own_text)))
        return times_of(self.times, now) if self.times else TimeChoices()


def with_options(written: AskAttributes, question: AskedQuestion, shown: PageTurn) -> AskAttributes:
    """Return what a message is made of: a choice has a button for each option of the page that is shown, unless the
    author has written some. Pages are in the language of the question.
    """
    has_buttons = written.inline or (written.reply and written.reply.rows)
    if has_buttons or not question.options:
        return structs.replace(written, inline=_told_apart(written.inline, question.options))
    locale = language_of(language_of_text(written.text or written.own_text))
    words = in_language(sentence("choose_page", page="{page}", pages="{pages}"), locale)
    size = question.page or len(question.options)
    return structs.replace(written, inline=page_rows(question.options, size, shown, words, question.columns))


def _told_apart(rows: InlineRows, options: Sequence[str]) -> InlineRows:
    """Return the rows in which no two options send the same."""
    own = option_data(options)
    return tuple(tuple({**one, "data": own[one["text"]]} if _sends(one, own) else one for one in row) for row in rows)


def _sends(button: Button, own: Mapping[str, str]) -> bool:
    """Return whether a button sends the text of an option that has data of its own."""
    return button["text"] in own and button.get("data") == normalise(button["text"])


async def execute(context: Context, written: AskAttributes) -> Ending | Asking:
    """Ask once, however often it is executed; the driver ends the step. Raises Refused."""
    asked = checked(question_of(context, written))
    if not (asked.hint or written.attachment):
        return _NOTHING
    questions = Questions(context.services.core.store, context.services.tenant)
    await questions.open(context.event, AskedBy(context.run, context.step.path), asked.timeout)
    delivery = await _say(context, written, asked, "")
    now = context.services.now_ms()
    remind = asked.remind
    return Asking(now + in_ms(asked.timeout), now + in_ms(remind) if remind else 0, delivery=delivery)


def sent(bot: Bot, step: Step, written: AskAttributes) -> BotMessage | None:
    return message(with_options(written, written.question(bot, step.path[-1] + 1, datetime.now(UTC)), PageTurn("", 0)))


def rehearse(step: RehearsedStep, written: AskAttributes) -> Ending | None:
    asked = checked(written.question(step.bot, step.step.path[-1] + 1, step.now.astimezone(step.zone)))
    step.sent = message(with_options(written, asked, PageTurn("", 0)))
    return None if step.sent else _NOTHING


def attributes_of(context: Context) -> AskAttributes:
    return converted(AskAttributes, context.prepared, context.services.timezone)


def question_of(context: Context, written: AskAttributes | None = None) -> AskedQuestion:
    now = from_ms(context.services.now_ms()).astimezone(context.services.timezone)
    return (written or attributes_of(context)).question(context.bot, context.step.path[-1] + 1, now)


def checked(asked: AskedQuestion) -> AskedQuestion:
    """Return the question before it is asked. Raises Invalid FIELD_INVALID: all its days or times are over."""
    if asked.values == OVER.values:
        raise Invalid("FIELD_INVALID", sentence("choices_over"), "options")
    return asked


async def repeat(context: Context, name: str, hint: str = "") -> HistoryKey | None:
    """Send the question once more, or a hint in its place; return its delivery. `name`: distinguishes this message from
    the others of the step.
    """
    written = attributes_of(context)
    asked = question_of(context, written)
    written = structs.replace(written, exact_message_id=None)  # a message of its own
    return await _say(context, structs.replace(written, text=hint, attachment=None) if hint else written, asked, name)


async def _say(context: Context, written: AskAttributes, asked: AskedQuestion, name: str) -> HistoryKey | None:
    return await say(context, with_options(written, asked, PageTurn(list_id(context.identity), 0)), name)


async def turn_page(context: Context, press: Mapping[str, Data], event_run: str) -> bool:
    """Show another page of the options in the message whose button was pressed. Returns False if the button is none of
    this question's. Raises Refused.
    """
    turn = turn_of(press)
    if turn is None or turn.list_id != list_id(context.identity):
        return False
    written = attributes_of(context)
    await say(context, with_options(written, question_of(context, written), turn), f"page:{event_run}", press)
    return True


async def remind(context: Context, asking: Asking) -> Asking:
    """Ask again, unless the question is still on its way; return until when the step now waits."""
    asked = question_of(context)
    later = context.services.now_ms() + in_ms(asked.remind) if asked.remind else 0
    if asking.under_way:
        return replace(asking, remind=later)
    delivery = await repeat(context, f"remind:{asking.reminders + 1}")
    return Asking(asking.until, later, asking.reminders + 1, delivery)


ACTION = ActionType(
    name="ask",
    help="Asks the person and waits for the answer, without holding up anything. Completes with a right answer; fails"
    " after the time limit or too many wrong answers, ends as `drop` if the person begins something else. If the"
    " question does not arrive it ends at once: `failed`, or `unknown` if it may have arrived.",
    attributes=AskAttributes,
    placeholder=True,
    outcomes=("completed", "failed", "unknown", "drop"),
    one_of=("text", "attachment"),
    returns={
        "answer": "the answer",
        "pressed_message_id": "the message whose button was the answer, empty for a text",
        "delivery_id": "the id of the delivery of the question, or of its last reminder",
        "verdict": "what became of it",
        "person": "the variables of the person",
        "chat": "the variables of the chat",
        "run": "the variables of the run",
    },
    execute=execute,
    rehearse=rehearse,
    message=sent,
)
