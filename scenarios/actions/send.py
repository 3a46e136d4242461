"""Sends a message to the chat of the event (C-40 to C-49), or to other people.

A bot may give a keyboard to all people, by version (U-18): the next message to a person in private that has no buttons
of its own, and edits nothing, brings it, and the person's record remembers its version. After a change of the version
the same happens once more. People with a role of `keyboard_of_role` have the keyboard of the first such role.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Annotated

from msgspec.structs import replace

from core.admission.quotas import MOST_REPLIES
from core.errors import Invalid
from core.model.clock import is_skipped, to_utc
from core.model.content import Content
from core.model.delivery import Audience, Repeat
from core.model.states import DeliveryState, Verdict
from core.orders import Addressee
from core.orders.check import check_time
from scenarios.bot import Bot
from scenarios.bot.data import Data
from scenarios.bot.times import read_duration
from scenarios.context import Context, Waiting
from scenarios.engine import Ending, Step, completed, failed
from scenarios.engine.triggers import chat_kind
from scenarios.placeholders.values import as_moment, as_text, in_utc
from scenarios.rehearsal import NUMBER, RehearsedStep
from scenarios.schema import ActionType, Own, Seen, conversion, types
from scenarios.schema.attributes import Elements, Flag, Text, Verbatim
from scenarios.sending import orders
from scenarios.sending.addressees import (
    AUDIENCE,
    BotPeople,
    EventPerson,
    audience,
    nobody_addressed,
    parts,
    read_audience,
)
from scenarios.sending.message import (
    BotMessage,
    Files,
    Inline,
    MessageAttributes,
    MessageId,
    Reply,
    ReplyKeyboard,
    attachments_of,
    content_of,
    is_private,
    message,
    refusal_of,
    reply_keyboard,
)
from scenarios.sending.results import stored
from scenarios.stores.people import People
from scenarios.telegram import denial
from scenarios.words import sentence

_NOTHING = failed("NOTHING_TO_SEND", sentence("nothing_send_no_text"))


def _delay(value: Data, name: str, zone: tzinfo) -> timedelta | None:
    found = None if value in (None, "") else read_duration(value)
    if found is None and value not in (None, ""):
        raise Invalid("DELAY_MALFORMED", sentence("no_duration_example_d_h", value=as_text(value)), name)
    return found


def _moment(value: Data, name: str, zone: tzinfo) -> datetime | None:
    """Return a moment as it is written: without a zone it is one of the wall clock."""
    found = None if value in (None, "") or in_utc(value, zone) is None else as_moment(value, zone)
    if found is None and value not in (None, ""):
        raise Invalid("TIME_MALFORMED", sentence("no_moment_example_t", value=as_text(value)), name)
    return found


def _keyboards(value: Data, name: str, zone: tzinfo) -> Mapping[str, ReplyKeyboard]:
    written = conversion.mapping(value, name, zone) or {}
    return {str(role): reply_keyboard(rows) for role, rows in written.items()}


class SendAttributes(MessageAttributes, frozen=True):
    text: Annotated[
        Verbatim, Seen("The text of the message, in HTML unless `parse_mode` says otherwise.", may_be_empty=True)
    ] = ""
    additional_text: Annotated[Verbatim, Seen("Appended to the text.", may_be_empty=True)] = ""
    inline: Annotated[
        Inline,
        Seen(
            "Buttons below the message: a text, `{text: scenario}`, `{text: scenario?value}` or `{text: address}`. Wins"
            " over `reply`.",
            may_be_empty=True,
        ),
    ] = ()
    reply: Annotated[
        Reply,
        Seen(
            "Buttons in place of the person's keyboard; `[]` removes them. `{text: request_contact}` asks for the"
            " person's contact, in private chats in Telegram and MAX.",
            may_be_empty=True,
        ),
    ] = None
    keyboard: Annotated[
        Reply,
        Own("The keyboard of all people, for settings.yaml. It comes once with a message, again with a new version."),
    ] = None
    keyboard_version: Annotated[Text, Own("Its version; raise it after each change.")] = "1"
    keyboard_of_role: Annotated[
        Mapping[str, ReplyKeyboard],
        types.MAPPING,
        _keyboards,
        Own("Other keyboards by role; the first role that a person has decides."),
    ] = {}
    message_reply: Annotated[Flag, Seen("Whether the message replies to the message of the event.")] = False
    callback_edit: Annotated[Flag, Seen("Whether the message of a pressed button is edited instead.")] = True
    limited_in: Annotated[
        Elements,
        Own(
            f"Channels in which an address gets at most {MOST_REPLIES} messages in a day, because a machine may answer"
            " there; for settings.yaml, where it holds for all actions that reply. By SMS and e-mail this is always so."
        ),
    ] = ()
    remove: Annotated[Flag, Seen("Whether the message of the event is removed first.")] = False
    attachment: Annotated[
        Files,
        Seen(
            "Files of the bot's folder, addresses or ids of the provider. The text becomes the first caption.",
            may_be_empty=True,
        ),
    ] = None
    parse_mode: Annotated[
        str,
        types.choice("HTML", "MarkdownV2"),
        conversion.text,
        Seen("How marks in the text are written.", default="HTML"),
    ] = ""
    private_answer: Annotated[Flag, Seen("Whether the message goes to the person instead of the group.")] = False
    exact_message_id: Annotated[
        MessageId,
        Seen(
            "The message to edit, instead of that of the event. Its files stay unless `attachment` names others.",
            may_be_empty=True,
        ),
    ] = None
    remove_message_id: Annotated[MessageId, Seen("The message to remove, instead of that of the event.")] = None
    to: Annotated[
        Sequence[Addressee | EventPerson | BotPeople],
        AUDIENCE,
        read_audience,
        Own(
            "Other people instead of the chat: `{group: ИВТ-21}`, `{supergroup: …}`, `{id: 42}`, a contact such as"
            " `sms:+7…`, `person` for that of the event in other channels, `{people: true}` for all people of the bot,"
            " with `when` those whose variables fulfil it, or a list. Quiet hours and quotas hold."
        ),
    ] = ()
    channels: Annotated[
        orders.Channels,
        Own(
            "The channels of a message with `to`, in the order in which they are tried until one reaches the person."
            " Without it all of them, those that are paid for last. With `all` among them it is sent in each."
        ),
    ] = orders.WrittenChannels()
    deliver_at: Annotated[
        datetime | None,
        types.DATE,
        _moment,
        Own("When to send it, in the bot's time zone if it has none. The action completes when it is stored."),
    ] = None
    delay: Annotated[
        timedelta | None,
        types.DURATION,
        _delay,
        Own("How long after this step to send it, instead of `deliver_at`."),
    ] = None
    far: Annotated[Flag, Own("Whether it may be sent more than a year ahead.")] = False
    personal: Annotated[
        Flag, Own(r"Whether `\{\{first_name\}\}` in the text of a message with `to` is filled for each recipient.")
    ] = False
    audience: orders.WrittenAudience = None
    answer: Annotated[orders.Asked, Own("Asks with the message: " + orders.ASKED_HELP)] = ()
    tag: Annotated[Verbatim, Own("A name by which `cancel` finds a message that is to be sent later.")] = ""

    @property
    def is_later(self) -> bool:
        return self.delay is not None or self.deliver_at is not None


async def execute(context: Context, written: SendAttributes) -> Ending | Waiting:
    """Orders the delivery once, however often it is executed. Raises Refused."""
    files = attachments_of(written.attachment, context.folders, context.warn)
    said = message(written, bool(files))
    if said is None:
        return _NOTHING
    is_old = "answer" in context.step.values.results  # the event is older than the person's last message
    private = is_private(said, context.event)
    same_chat = not written.to and not private
    content = content_of(said, files, {} if is_old else context.event, same_chat=same_chat)
    content, keyboard = await _with_keyboard(context, content, written)
    if written.to or content.remove:
        context.require("send")
    due = _due(context, written)
    tags, question = orders.tags(context.event, written.tag), orders.question_of(written.answer, said.text)
    terms = orders.Terms(due, written.far, tags, written.personal, _audience(written), question)
    if written.to:
        return await _broadcast(context, said.text, content, written, terms)
    address = context.person if private else context.chat
    accepted = await orders.reply(context, said.text, content, address, terms, limited_in=written.limited_in)
    if keyboard:
        await _people(context).set_keyboard(context.channel, context.person, keyboard)
    if accepted.state is DeliveryState.SCHEDULED:
        return stored(accepted.key, 1)
    return Waiting(accepted.key, one=True, is_new=not accepted.repeated)


def _due(context: Context, written: SendAttributes) -> datetime | None:
    """Return the moment after `delay`, or `deliver_at`, in UTC; None: at once. A time without a zone is the bot's; if
    the clock is put forward over it, the next minute, with a warning.
    """
    now, zone, at = context.services.now(), context.services.timezone, written.deliver_at
    if written.delay is not None:
        return now + written.delay
    if at is None:
        return None
    if not at.tzinfo and is_skipped(at, zone):
        context.warn(sentence("deliver_at_clock_put_forward", moment=f"{at:%d.%m.%Y %H:%M}"))
    return to_utc(at, zone, now)


def _audience(written: SendAttributes) -> Audience:
    """Raises Invalid NOBODY_ADDRESSED for an audience of nobody, which belongs to `to`."""
    if written.audience and not written.to:
        raise nobody_addressed()
    return written.audience or Audience.STUDENTS


async def _broadcast(
    context: Context, text: str, content: Content, written: SendAttributes, terms: orders.Terms
) -> Ending | Waiting:
    """Order the message to other people, in several deliveries if there are more than one may have."""
    to = await audience(context, written.to, in_chats=not written.channels.named)
    accepted = []
    for number, part in enumerate(await parts(context, to)):
        order, caller = await orders.broadcast(context, text, content, part, written.channels, terms)
        identity = f"{context.identity}:{number}" if number else context.identity
        accepted.append(await context.services.core.sending.send(order, caller, Repeat(identity, "scenario")))
    first, *others = accepted
    if first.state is DeliveryState.SCHEDULED:
        return stored(first.key, sum(one.recipients for one in accepted))
    return Waiting(first.key, is_new=not first.repeated, others=tuple(one.key for one in others))


def sent(bot: Bot, step: Step, written: SendAttributes) -> BotMessage | None:
    return message(written)


def rehearse(step: RehearsedStep, written: SendAttributes) -> Ending:
    said = message(written)
    if said is None:
        return _NOTHING
    if refusal := refusal_of(said):
        raise refusal
    _audience(written)
    now, zone = step.now, step.zone
    at = to_utc(written.deliver_at, zone, now) if written.deliver_at else now
    if written.delay:
        at = now + written.delay
    step.sent = said
    check_time(at, now, is_far=written.far)
    results: dict[str, Data] = {"delivery_id": "[delivery_id]", "people": 1}
    if written.is_later:
        return completed({**results, "verdict": str(Verdict.SCHEDULED), "reached": 0})
    return completed({**results, "verdict": str(Verdict.ALL_REACHED), "reached": 1, "last_message_id": NUMBER})


async def _with_keyboard(context: Context, content: Content, written: SendAttributes) -> tuple[Content, str]:
    """Return the content, with the keyboard if the person lacks it; and its version, to be remembered, or ""."""
    has_buttons = bool(content.inline) or content.reply is not None
    is_elsewhere = bool(written.to) or written.is_later or chat_kind(context.event) != "private"
    if not written.keyboard or not written.keyboard.rows or has_buttons or content.edit or is_elsewhere:
        return content, ""
    role, keyboard = await _keyboard(context, written, written.keyboard)
    version = f"{written.keyboard_version} {role}".strip()
    if await _people(context).keyboard(context.channel, context.person) == version:
        return content, ""
    return replace(content, reply=keyboard.rows, request_contact=keyboard.asking), version


async def _keyboard(context: Context, written: SendAttributes, of_all: ReplyKeyboard) -> tuple[str, ReplyKeyboard]:
    """Return the role that decides, "" for none, and its keyboard."""
    for role, keyboard in written.keyboard_of_role.items():
        if not await denial(context, {"required_role": role}):
            return role, keyboard
    return "", of_all


def _people(context: Context) -> People:
    return People(context.services.core.store, context.services.tenant)


ACTION = ActionType(
    name="send",
    help="Sends a message to the chat of the event, or with `to` to other people.",
    attributes=SendAttributes,
    placeholder=True,
    outcomes=("completed", "failed", "unknown"),
    returns={
        "last_message_id": "the id of the message that was sent last",
        "delivery_id": "the id of the delivery, by which its history is found",
        "verdict": "what became of it: `all_reached`, `some_reached`, `nothing_worked`, `scheduled`, …",
        "reached": "how many people it reached",
        "people": "how many people it is for",
    },
    execute=execute,
    rehearse=rehearse,
    message=sent,
)
