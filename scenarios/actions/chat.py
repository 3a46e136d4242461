"""Actions on messages that the chat of the event has: reads the last ones, removes one, copies one to another chat,
passes one on to the sender of the last message (C-115).
"""

from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import Annotated, Any

from core.errors import Invalid, NotFound
from core.model.content import AttachmentType, Content, ParseMode
from core.model.history_key import HistoryKey
from core.model.states import Verdict
from core.model.text.text_marks import cut_text
from core.redis.keys import KEYS
from core.threads import UnquotedReplies
from core.updates.events import Event, person_of
from couriers.telegram_bot import BOT_API
from scenarios.bot.data import Data
from scenarios.context import Context, Said, Waiting
from scenarios.engine import Ending, completed, skipped
from scenarios.placeholders import HTML
from scenarios.rehearsal import NUMBER, RehearsedStep
from scenarios.schema import ActionType, Attributes, Own, Seen
from scenarios.schema.attributes import Anything, Count, Duration, Flag, Moment, Text, Whole
from scenarios.sending.message import LONGEST_CAPTION, LONGEST_TEXT, BotMessage, attachments_of
from scenarios.sending.orders import reply
from scenarios.sending.results import ending_of
from scenarios.stores import step_results
from scenarios.telegram import TelegramRefused, call
from scenarios.words import sentence

DEFAULT_MESSAGES, MOST_MESSAGES = 20, 100


class HistoryAttributes(Attributes, frozen=True):
    limit: Annotated[Count, Own(f"At most so many messages, up to {MOST_MESSAGES}.", default=DEFAULT_MESSAGES)] = None
    time_before: Annotated[Duration, Own("Only messages that are not older.")] = None
    time_before_date: Annotated[Moment, Own("Only messages since this date, instead of `time_before`.")] = None
    from_chat: Annotated[Text, Own("Another chat in which the person has written to the bot.")] = ""
    reverse: Annotated[Flag, Own("Whether the oldest comes first.")] = True

    def since(self, now: datetime) -> datetime | None:
        return self.time_before_date or (now - self.time_before if self.time_before else None)


async def execute_history(context: Context, written: HistoryAttributes) -> Ending:
    """Return the last messages. Later actions escape them, as a person has written them. Raises Refused."""
    said = await context.services.conversations.last(
        person_of(context.event),
        written.from_chat or context.chat,
        limit=min(written.limit or DEFAULT_MESSAGES, MOST_MESSAGES),
        since=written.since(context.services.now()),
        without=context.run,
    )
    return _read(said if written.reverse else said[::-1], context.services.timezone)


def rehearse_history(step: RehearsedStep, written: HistoryAttributes) -> Ending:
    """The person has written once."""
    by = str(step.event.get("first_name") or "") or step.person
    return _read([Said(by, "[text]", step.now, NUMBER)], step.zone)


def _read(said: Sequence[Said], zone: tzinfo) -> Ending:
    results: dict[str, Data] = {
        "history_text": "\n".join(f"{one.by}: {one.text}" for one in said),
        "messages": [_shown(one, zone) for one in said],
        "messages_processed": len(said),
    }
    return completed(results, from_person=["history_text", "messages"])


def _shown(said: Said, zone: tzinfo) -> dict[str, Data]:
    at = said.at.astimezone(zone).isoformat(timespec="seconds")
    return {"by": said.by, "is_bot": said.is_bot, "text": said.text, "date": at, "message_id": said.message_id}


HISTORY = ActionType(
    name="history",
    help="Reads what the person wrote to the bot in this chat and what the bot answered, without this event. Only what"
    " started a scenario is stored; Telegram shows a bot no older messages, and none of other people.",
    attributes=HistoryAttributes,
    returns={
        "history_text": "one line for each message, `name: text` or `bot: text`",
        "messages": "the same as a list: `by`, `is_bot`, `text`, `date`, `message_id`",
        "messages_processed": "how many messages were found",
    },
    execute=execute_history,
    rehearse=rehearse_history,
)


_GONE = "message to delete not found"


class RemoveAttributes(Attributes, frozen=True):
    """`message_id`, `chat_id`: those of the event."""

    remove_message_id: Annotated[Whole, Seen("The message to remove, instead of that of the event.")] = None
    message_id: Annotated[Whole, Seen()] = None
    chat_id: Annotated[Anything, Seen()] = None


async def execute_remove(context: Context, written: RemoveAttributes) -> Ending:
    """Remove a message. A message that is not there counts as removed. Raises Refused."""
    context.require("send")
    message = written.remove_message_id or written.message_id
    if message is None:
        raise Invalid("NO_MESSAGE", sentence("no_message_remove"))
    chat = written.chat_id or context.chat
    try:
        await call(context, "deleteMessage", chat_id=chat, message_id=message)
    except TelegramRefused as error:
        if _GONE not in error.detail:
            raise
    return completed()


REMOVE = ActionType(
    name="remove",
    needs=(BOT_API,),
    help="Removes the message of the event, or another one. A message that is not there counts as removed.",
    attributes=RemoveAttributes,
    execute=execute_remove,
)


_COPIED_KINDS = ("text", "edited")
_QUOTED = 100
"""Characters of the message replied to, if it was not copied."""


class CopyAttributes(Attributes, frozen=True):
    chat_to: Annotated[Text, Own("The id of the chat; in Telegram also the @name of a group.")] = ""

    @property
    def chat(self) -> str:
        """The chat to copy to. Raises Invalid FIELD_INVALID."""
        if not self.chat_to:
            raise Invalid("FIELD_INVALID", sentence("chat_to_missing_id_chat"), "chat_to")
        return self.chat_to


async def execute_copy(context: Context, written: CopyAttributes) -> Ending | Waiting:
    """Orders the copy once, however often it is executed. Raises Refused."""
    context.require("send")
    event, chat = context.event, written.chat
    if event.get("kind", "text") not in _COPIED_KINDS:
        raise Invalid("NO_MESSAGE", sentence("no_message_copy"))
    replied = await _copy_of(context, chat, event.get("reply_message_id"))
    files = attachments_of(_files(event), (), context.warn)
    text = _text(event, context.services.timezone, shows_reply=not replied)
    text = cut_text(text, ParseMode.HTML, LONGEST_CAPTION if files else LONGEST_TEXT)
    content = Content(ParseMode.HTML, attachments=tuple(files), reply_to=replied)
    accepted = await reply(context, text, content, chat)
    await _remember(context, chat, accepted.key)
    return Waiting(accepted.key, one=True, is_new=not accepted.repeated)


def rehearse_copy(step: RehearsedStep, written: CopyAttributes) -> Ending:
    text = _text(step.event, step.zone, shows_reply=True)
    said = BotMessage(text, _files(step.event) or None)
    written.chat  # noqa: B018 - it is refused if it is missing
    step.sent = said
    reached: dict[str, Any] = {"delivery_id": "[delivery_id]", "verdict": str(Verdict.ALL_REACHED), "reached": 1}
    return completed({**reached, "last_message_id": NUMBER})


def _files(event: Event) -> list[Any]:
    """Return the attachments that can be sent."""
    return [one for one in event.get("attachments") or () if one["type"] in tuple(AttachmentType)]


def _text(event: Event, zone: tzinfo, *, shows_reply: bool) -> str:
    """Return the copy in HTML: who and when, what it forwards and answers, and the text with its marks."""
    lines = [_author(event, zone)]
    if event.get("is_forward"):
        lines.append(f"↪ {HTML.escape(_origin(event))}".rstrip())
    if event.get("is_reply") and shows_reply:
        lines.append(f"↩ <i>{HTML.escape(str(event.get('reply_message_text') or '…')[:_QUOTED])}</i>")
    others = [one["type"] for one in event.get("attachments") or () if one["type"] not in tuple(AttachmentType)]
    lines += [f"[{kind}]" for kind in others]
    return "\n".join([*lines, str(event.get("event_text_html") or "")]).strip()


def _author(event: Event, zone: tzinfo) -> str:
    """Return `Name · 21.11.2025 11:00 · @name`."""
    named = " ".join(str(event[field]) for field in ("first_name", "last_name") if event.get(field))
    at = datetime.fromisoformat(event["event_date"]).astimezone(zone) if event.get("event_date") else None
    who = named or event.get("username") or f"ID {event.get('user_id')}"
    parts = [f"<code>{HTML.escape(str(who))}</code>", f"{at:%d.%m.%Y %H:%M}" if at else ""]
    return " • ".join(
        [*filter(None, parts), *([f"@{HTML.escape(event['username'])}"] if event.get("username") else ())]
    )


def _origin(event: Event) -> str:
    """Return the original writer of a forwarded message."""
    names = ("forward_from_chat_title", "forward_from_user_first_name", "forward_from_user_username")
    return next((str(event[name]) for name in names if event.get(name)), "")


def _key(context: Context, chat: str, message: object) -> str:
    name = f"copy:{context.channel}:{context.chat}:{message}:{chat}"
    services = context.services
    shard = services.core.store.shard_of_person(services.tenant, context.channel, context.chat)
    return KEYS["stepresult"].at(shard, services.tenant, name)


async def _remember(context: Context, chat: str, delivery: HistoryKey) -> None:
    """Keep which delivery copies the message, for replies to it."""
    if (message := context.event.get("message_id")) is not None:
        key = _key(context, chat, message)
        await context.services.core.store.command("SET", key, str(delivery), "PX", step_results.KEPT_MS)


async def _copy_of(context: Context, chat: str, message: object) -> str:
    """Return the number of the copy of a message in the chat; "" if it was not copied."""
    stored = await context.services.core.store.command("GET", _key(context, chat, message)) if message else None
    if not stored:
        return ""
    try:
        history = await context.services.core.deliveries.read(HistoryKey.parse(stored), context.services.tenant)
    except NotFound:
        return ""
    return str(ending_of(history).returned.results.get("last_message_id", ""))


COPY = ActionType(
    name="copy",
    help="Copies the message of the event to another chat of the same channel: who wrote it and when, the text with its"
    " marks, the files. A reply to a message that was copied there within a week replies to its copy.",
    outcomes=("completed", "failed", "unknown"),
    attributes=CopyAttributes,
    one_of=("chat_to",),
    returns={
        "last_message_id": "the id of the copy",
        "delivery_id": "the id of the delivery, by which its history is found",
        "verdict": "what became of it: `all_reached`, `nothing_worked`, …",
        "reached": "1 if it was copied",
    },
    execute=execute_copy,
    rehearse=rehearse_copy,
)


_NO_REPLY = skipped(sentence("no_one_to_pass_on_to"))
_FIELDS_OF_MESSAGE = (
    *("id", "channel", "source", "kind", "user_id", "chat_id", "chat_type", "message_id", "event_text", "event_date"),
    *("attachments", "is_forward", "forward_text", "forward_files"),
    *("first_name", "last_name", "username", "language_code"),
)


async def execute_pass_on(context: Context, _: Attributes) -> Ending:
    """Pass the event on once, however often it is executed. Raises StoreError."""
    services = context.services
    core = services.core
    replies = UnquotedReplies(core.store, core.client, core.directory, services.tenant, services.office)
    event = {name: context.event[name] for name in _FIELDS_OF_MESSAGE if name in context.event}
    return completed() if await replies.take(event) else _NO_REPLY


def rehearse_pass_on(step: RehearsedStep, _: Attributes) -> Ending:
    """Nobody has written to a rehearsed person."""
    return _NO_REPLY


PASS_ON = ActionType(
    name="pass_on",
    help="Passes on what the person has written, as a reply without a quote: to the sender of the newest message of the"
    " last seven days, otherwise to the office of ADA_OFFICE. Ends as `drop` if there is neither; then the bot can"
    " answer.",
    outcomes=("completed", "drop"),
    execute=execute_pass_on,
    rehearse=rehearse_pass_on,
)
