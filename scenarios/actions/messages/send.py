"""Sends a message to the chat of the event (C-40 to C-49), or to other people."""

from core.model.delivery import Repeat
from core.model.states import DeliveryState
from scenarios.context import Context, Waiting
from scenarios.engine import Ending
from scenarios.engine.results import failed
from scenarios.schema import ActionType, Field, types
from scenarios.schema.addressees import ADDRESSEES
from scenarios.sending import orders
from scenarios.sending.attachments import resolve
from scenarios.sending.content import content_of, is_private
from scenarios.sending.menu_keyboard import remember, with_keyboard
from scenarios.sending.message import message
from scenarios.sending.reply_limit import MOST_REPLIES, may_reply
from scenarios.sending.results import stored


async def execute(context: Context) -> Ending | Waiting:
    """Orders the delivery once, however often it is executed. Raises Refused."""
    seen = context.prepared.seen
    files = resolve(seen.get("attachment"), context.folders)
    for warning in files.warnings:
        context.warn(warning)
    said = message({**seen, "attachment": files.attachments})
    if said is None:
        return failed("there is nothing to send: no text and no attachment")
    is_old = "answer" in context.step.values.results  # the event is older than the person's last message
    to, private = context.prepared.own.get("to"), is_private(said, context.event)
    event = {} if is_old else context.event
    content = content_of(said, files.attachments, event, same_chat=not to and not private)
    content, keyboard = await with_keyboard(context, content)
    if to or content.remove:
        context.require("send")
    if to:
        order, caller = await orders.broadcast(context, said["text"], content, to)
    else:
        address = context.person if private else context.chat
        if not await may_reply(context, address):
            return failed(f"this address has got {MOST_REPLIES} messages in a day, and gets no more")
        order, caller = orders.to_person(context, said["text"], content, address)
    repeat = Repeat(context.identity, "scenario", is_own=not to)
    accepted = await context.services.core.sending.send(order, caller, repeat)
    await remember(context, keyboard)
    if accepted.state is DeliveryState.SCHEDULED:
        return stored(accepted.key)
    return Waiting(accepted.key, one=not to, is_new=not accepted.repeated)


ACTION = ActionType(
    name="send",
    help="Sends a message to the chat of the event, or with `to` to other people.",
    placeholder=True,
    outcomes=("completed", "failed", "unknown"),
    fields=(
        Field("text", types.TEXT, "The text of the message, in HTML unless `parse_mode` says otherwise."),
        Field("additional_text", types.TEXT, "Appended to the text."),
        Field(
            "inline",
            types.KEYBOARD,
            "Buttons below the message: a text, `{text: scenario}` or `{text: address}`. Wins over `reply`.",
        ),
        Field(
            "reply",
            types.KEYS,
            "Buttons in place of the person's keyboard; `[]` removes them. `{text: request_contact}` asks for the"
            " person's contact, in private chats in Telegram and MAX.",
        ),
        Field(
            "keyboard",
            types.KEYS,
            "The keyboard of all people, for settings.yaml. It comes once with a message, again with a new version.",
        ),
        Field("keyboard_version", types.TEXT, "Its version; raise it after each change.", default="1"),
        Field("keyboard_of_role", types.MAPPING, "Other keyboards by role; the first role that a person has decides."),
        Field("message_reply", types.FLAG, "Whether the message replies to the message of the event.", default=False),
        Field("callback_edit", types.FLAG, "Whether the message of a pressed button is edited instead.", default=True),
        Field("remove", types.FLAG, "Whether the message of the event is removed first.", default=False),
        Field(
            "attachment",
            types.ATTACHMENT,
            "Files of the bot's folder, addresses or ids of the provider. The text becomes the first caption.",
        ),
        Field("parse_mode", types.choice("HTML", "MarkdownV2"), "How marks in the text are written.", default="HTML"),
        Field(
            "private_answer", types.FLAG, "Whether the message goes to the person instead of the group.", default=False
        ),
        Field(
            "exact_message_id",
            types.WHOLE,
            "The message to edit, instead of that of the event. Its files stay unless `attachment` names others.",
        ),
        Field("remove_message_id", types.WHOLE, "The message to remove, instead of that of the event."),
        Field(
            "to",
            ADDRESSEES,
            "Other people instead of the chat: `{group: ИВТ-21}`, `{supergroup: …}`, `{id: 42}`, a contact such as"
            " `sms:+7…`, or a list. Quiet hours and quotas hold.",
        ),
        Field(
            "channels",
            types.TEXTS,
            "The channels of a message with `to`; without it all of them: who has two contacts gets the message twice.",
        ),
        Field(
            "deliver_at",
            types.DATE,
            "When to send it, in the bot's time zone if it has none. The action completes when it is stored.",
        ),
        Field("delay", types.DURATION, "How long after this step to send it, instead of `deliver_at`."),
        Field("far", types.FLAG, "Whether it may be sent more than a year ahead.", default=False),
        Field("tag", types.TEXT, "A name by which `cancel` finds a message that is to be sent later."),
    ),
    returns={
        "last_message_id": "the id of the message that was sent last",
        "delivery_id": "the id of the delivery, by which its history is found",
        "verdict": "what became of it: `all_reached`, `some_reached`, `nothing_worked`, `scheduled`, …",
        "reached": "how many people it reached",
    },
    execute=execute,
)
