"""Orders the messages of actions: to the event's person, or a broadcast with `to`.

A message to the person counts towards no quota and is not moved out of quiet hours, because the person writes at this
moment; a message that was not sent within an hour is given up. A broadcast follows the rules of the installation: its
sender is the person if the directory knows it, otherwise the bot.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Annotated

from msgspec import Struct
from msgspec.structs import replace

from core.admission import quotas
from core.errors import Invalid, Refused, TooMany
from core.model.clock import from_ms, to_ms
from core.model.content import Content, ParseMode
from core.model.delivery import Accepted, Audience, NewDelivery, Recipient, Repeat, Sender, Strategy
from core.model.history_key import HistoryKey
from core.model.question import AnswerKind, Option, Question
from core.model.text.characters import nfc
from core.orders import Caller, Order
from core.orders.order import AnyAddressee
from core.orders.question_rules import check_question, options_of
from core.queue import own_name
from core.redis.store import Store
from core.sentence import language_of, language_of_text
from core.updates.rights import origin_of
from couriers.channel import channels
from scenarios.bot.data import Data, ListNode, Node, Scalar
from scenarios.context import Context
from scenarios.schema import Own, conversion, types
from scenarios.sending.message import MessageAttributes, attachments_of, content_of, message
from scenarios.words import sentence, why_refused

KIND = "reply"
"""The kind of messages to the event's person; the same as that of the other bots."""

REPLIES_USED_UP = "REPLIES_USED_UP"
_BOT = Sender("bot")
_EXPIRES = timedelta(hours=1)
_PRIORITY = 1


class Terms(Struct, frozen=True):
    """Moment of the sending, None: at once; whether that may be far ahead; its tags; whether `{{field}}` in its text
    stands for a value of each recipient; who gets it; what it asks, None for nothing.
    """

    deliver_at: datetime | None = None
    far: bool = False
    tags: Sequence[str] = ()
    personal: bool = False
    audience: Audience = Audience.STUDENTS
    question: Question | None = None


def _audience(value: Data, name: str, zone: tzinfo) -> Audience | None:
    written = conversion.text(value, name, zone)
    return Audience(written) if written else None


WrittenAudience = Annotated[
    Audience | None,
    types.choice(*Audience),
    _audience,
    Own("Who gets a message with `to`: these people, their guardians in the directory, or both.", default="students"),
]


class WrittenChannels(Struct, frozen=True):
    """The channels of a message, none for all of them, and how they are used if the author says it."""

    named: tuple[str, ...] = ()
    strategy: Strategy | None = None


def _channels(value: Data, name: str, zone: tzinfo) -> WrittenChannels:
    """Read names, of which `first` and `all` say how the channels are used."""
    written = conversion.elements(value, name, zone)
    strategies = [Strategy(one) for one in written if one in tuple(Strategy)]
    return WrittenChannels(
        tuple(one for one in written if one not in tuple(Strategy)), strategies[0] if strategies else None
    )


Channels = Annotated[WrittenChannels, types.TEXTS, _channels]


ASKED = tuple(str(kind) for kind in AnswerKind if kind is not AnswerKind.CHOICE)
"""The questions that an author writes by their kind."""


NOTHING_ASKED = "none"

ASKED_HELP = (
    "`confirm`, `text`, `number`, `date`, `file`, or the texts of two or more buttons, a list or one on a line."
    " The history says who has answered. `none` asks nothing."
)


def _asked(value: Data, name: str, zone: tzinfo) -> tuple[str, ...]:
    """Return the kind of a question, or the texts of its buttons; nothing for a message that asks nothing."""
    written = conversion.elements(value, name, zone)
    if len(written) == 1:
        written = tuple(line for one in written[0].splitlines() if (line := one.strip()))
    if written == (NOTHING_ASKED,):
        return ()
    if len(written) == 1 and written[0] not in ASKED:
        raise Invalid("ANSWER_MALFORMED", sentence("no_question", kinds=", ".join(ASKED)), name)
    return written


def question_of(written: Sequence[str], text: str, until: datetime | None = None) -> Question | None:
    """Return what a message asks until a moment: a kind, or the texts of buttons, which are counted by their
    numbers.
    """
    if not written:
        return None
    locale, closes = language_of(language_of_text(text)), to_ms(until) if until else 0
    if len(written) == 1:
        kind = AnswerKind(written[0])
        return Question(kind, options_of(kind, (), locale), locale, until=closes)
    options = [Option(str(number), one) for number, one in enumerate(written, 1)]
    return Question(AnswerKind.CHOICE, options, locale, until=closes)


def _complaints(node: Node) -> Iterator[types.Complaint]:
    """Emit why a question without placeholders would be refused whenever it is asked."""
    items = node.items if isinstance(node, ListNode) else (node,)
    yield from types.TEXTS.complaints(node)
    if not all(isinstance(one, Scalar) and not types.has_placeholder(one) for one in items):
        return
    try:
        question = question_of(_asked([one.text for one in items if isinstance(one, Scalar)], "answer", UTC), "")
        if question:
            check_question(question, None, datetime.now(UTC))
    except Invalid as invalid:
        yield node, invalid.said


Asked = Annotated[tuple[str, ...], replace(types.TEXTS, complaints=_complaints), _asked]


AT_ONCE = Terms()


class Chat(Struct, frozen=True):
    """The target of a reply. `origin`: of the event that it answers. `name`: of the person, as the provider has it."""

    tenant: str
    channel: str
    address: str
    origin: str
    name: str | None = None


async def reply(
    context: Context,
    text: str,
    content: Content,
    address: str,
    terms: Terms = AT_ONCE,
    *,
    name: str = "",
    limited_in: Sequence[str] | None = None,
) -> Accepted:
    """Order a message to the event's chat, or to the person in private: once for each step and `name`. All actions that
    reply do it here, so each new message counts towards the limit of the address (`is_limited`); a second try counts
    again, which only makes the limit stricter. Raises TooMany REPLIES_USED_UP; Refused.
    """
    person = str(context.event.get("first_name") or context.event.get("username") or "") or None
    chat = Chat(context.services.tenant, context.channel, address, origin_of(context.event), person)
    core = context.services.core
    if is_limited(context, limited_in) and not await may_write(core.store, chat, content):
        said = sentence("address_has_got_messages", most=quotas.MOST_REPLIES)
        raise TooMany(REPLIES_USED_UP, said, quotas.DAY)
    order, caller = reply_to(chat, text, content, _now(context), terms)
    identity = f"{context.identity}:{name}" if name else context.identity
    return await core.sending.send(order, caller, Repeat(identity, "scenario", is_own=True))


def is_limited(context: Context, limited_in: Sequence[str] | None = None) -> bool:
    """Return whether an address gets only so many messages in a day in the channel of the event: by SMS and e-mail, and
    in the channels `limited_in`; None for those that settings.yaml has for `send`.
    """
    record, section = channels().get(context.channel), context.bot.settings.get("send")
    if limited_in is None:
        limited_in = conversion.elements(section.get("limited_in") if isinstance(section, Mapping) else None)
    return bool(record and record.limits_replies) or context.channel in limited_in


async def may_write(store: Store, chat: Chat, content: Content) -> bool:
    """Count a message to a chat; return whether it may be sent. An edit is no message. Raises StoreError."""
    return bool(content.edit) or await quotas.may_reply(store, chat.tenant, chat.channel, chat.address)


def reply_to(chat: Chat, text: str, content: Content, now: datetime, terms: Terms = AT_ONCE) -> tuple[Order, Caller]:
    """Return a message to a chat. The messages of a chat keep their order."""
    delivery = NewDelivery(
        tenant=chat.tenant,
        sender=_BOT,
        text=text,
        recipients=(),
        channels=[chat.channel],
        origin=chat.origin,
        deliver_at=terms.deliver_at,
        expires_at=(terms.deliver_at or now) + _EXPIRES,
        lane=own_name(chat.tenant, f"{chat.channel}:{chat.address}"),
        priority=_PRIORITY,
        kind=KIND,
        tags=terms.tags,
        content=needed(content, text),
        question=terms.question,
    )
    recipient = Recipient(chat.address, chat.name, contacts={chat.channel: [chat.address]})
    order = Order(delivery, [recipient], urgent=True, far=terms.far)
    return order, Caller(chat.tenant, is_admin=True, may_be_urgent=True)


async def broadcast(
    context: Context, text: str, content: Content, to: Sequence[AnyAddressee], channels: WrittenChannels, terms: Terms
) -> tuple[Order, Caller]:
    """Return a message to other people."""
    services = context.services
    delivery = NewDelivery(
        tenant=services.tenant,
        sender=await _sender(context),
        text=text,
        recipients=(),
        channels=channels.named,
        strategy=channels.strategy or Strategy.FIRST,
        origin=origin_of(context.event),
        deliver_at=terms.deliver_at,
        tags=terms.tags,
        content=needed(content, text),
        question=terms.question,
    )
    order = Order(delivery, to, far=terms.far, personal=terms.personal or None, audience=terms.audience)
    return order, Caller(delivery.tenant)


async def _sender(context: Context) -> Sender:
    """Return the person of the event as the directory knows it, with the quota and the groups of its role; or the
    bot."""
    services = context.services
    address = str(context.event.get("user_id") or "")
    user = (
        await services.core.directory.users.by_contact(services.tenant, context.channel, address) if address else None
    )
    return Sender(user.id, user.name) if user else _BOT


async def say(
    context: Context, written: MessageAttributes, name: str, press: Mapping[str, Data] | None = None
) -> HistoryKey | None:
    """Order a message to the chat of the event beside the result of its action: a question, a hint, a reminder; once
    for each step and name. Return its delivery, None if there is nothing to say. It edits the message whose button was
    pressed now, or that of `exact_message_id`, and never that of the run's event, which may be long ago. A further
    message, which has a name, is left out with a warning if it is refused, or the address gets no more. Raises Refused.
    """
    files = attachments_of(written.attachment, context.folders, context.warn)
    if (said := message(written, bool(files))) is None:
        return None
    same_chat = press is not None or said.exact_message_id is not None
    content = content_of(said, files, press or {}, same_chat=same_chat)
    try:
        return (await reply(context, said.text, content, context.chat, name=name)).key
    except Refused as refusal:
        if not name:
            raise
        context.warn(why_refused(refusal))
        return None


def tags(event: Mapping[str, Data], tag: str) -> Sequence[str]:
    """Return the author's tag, and the same for this person alone, by which the action `cancel` finds the delivery."""
    return (_line(tag), personal_tag(event, tag)) if tag else ()


def personal_tag(event: Mapping[str, Data], tag: str) -> str:
    """Return the tag of this person's deliveries under `tag`."""
    return _line(f"{event['channel']}:{event.get('user_id')}:{tag}")


def needed(content: Content, text: str) -> Content | None:
    """Return the content; None if a plain text is enough."""
    if content != Content(parse_mode=ParseMode.HTML) or "<" in text or "&" in text:
        return content
    return None


def _now(context: Context) -> datetime:
    return from_ms(context.services.now_ms())


def _line(text: str) -> str:
    return " ".join(nfc(text).split())
