"""Copies a person's message to another chat, with who wrote it and when."""

from datetime import datetime, tzinfo
from typing import Annotated, Any

from core.errors import Invalid, NotFound
from core.model.content import AttachmentType, Content, ParseMode
from core.model.history_key import HistoryKey
from core.model.states import Verdict
from core.model.text.text_marks import cut_text
from core.redis.keys import KEYS
from core.updates.events import Event
from scenarios.context import Context, Waiting
from scenarios.engine import Ending
from scenarios.engine.results import completed
from scenarios.placeholders import HTML
from scenarios.rehearsal import NUMBER, RehearsedStep
from scenarios.schema import ActionType, Attributes, Own
from scenarios.schema.attributes import Text
from scenarios.sending.attachments import resolve
from scenarios.sending.message import LONGEST_CAPTION, LONGEST_TEXT, BotMessage
from scenarios.sending.orders import reply
from scenarios.sending.results import ending_of
from scenarios.stores import step_results
from scenarios.words import sentence

_KINDS = ("text", "edited")
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


async def execute(context: Context, written: CopyAttributes) -> Ending | Waiting:
    """Orders the copy once, however often it is executed. Raises Refused."""
    context.require("send")
    event, chat = context.event, written.chat
    if event.get("kind", "text") not in _KINDS:
        raise Invalid("NO_MESSAGE", sentence("no_message_copy"))
    replied = await _copy_of(context, chat, event.get("reply_message_id"))
    files = resolve(_files(event), ())
    text = _text(event, context.services.timezone, shows_reply=not replied)
    text = cut_text(text, ParseMode.HTML, LONGEST_CAPTION if files.attachments else LONGEST_TEXT)
    content = Content(ParseMode.HTML, attachments=tuple(files.attachments), reply_to=replied)
    accepted = await reply(context, text, content, chat)
    await _remember(context, chat, accepted.key)
    return Waiting(accepted.key, one=True, is_new=not accepted.repeated)


def rehearse(step: RehearsedStep, written: CopyAttributes) -> Ending:
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


ACTION = ActionType(
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
    execute=execute,
    rehearse=rehearse,
)
