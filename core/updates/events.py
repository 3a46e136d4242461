"""Events: what happened in a chat, as the scenarios get it, and their way into the queue.

An event is one flat mapping: the fields of docs/events-fields.md, and `id`, `channel`, `kind` and `source`, the bot,
gateway or client in which the id is unique.

Guarantees: an event is put once for its tenant, channel, source and id (for a day). The events of one person with one
bot, in a group those of one person in that group, are processed one after the other in the order of arrival. What is
put has a known kind, a user and a bounded size.
"""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec
from msgspec import Struct

from core.answers import AnswerNumbers, Answers, is_anonymous_token, is_token
from core.answers.numbers import TextMeaning
from core.deliveries.received import Choices, ReceivedMessage, ReceivedMessages
from core.directory.preferences import OptOuts
from core.errors import Invalid, Refused
from core.model.clock import Backoff
from core.queue import NewTask, QueueClient, Tube, own_name

TUBE = "events"
ANSWERS_TUBE = "answers"
"""The tube of the presses that answer questions of deliveries: `core.updates.answer_worker`."""
REPLIES_TUBE = "replies"
"""The tube of replies to deliveries: `core.threads.replies`."""
SEND_REPLY = "send_reply."
"""Prefix of the data of a button that sends a reply after its author has confirmed it; the reply's name follows."""
SMALL_PICTURES = "small_pictures"
"""The field of a mail with how many pictures of signatures were left out."""
TYPED = "typed_addresses"
"""The field of a mail whose words are a file: the addresses in them."""
ANSWER_OF = "answer:"
"""Before the place of a question, where a message was passed on to: an edit of it changes the answer."""
MAIL = "mail"
"""The source of an event that came as a mail."""
ANSWER_RESULT = "answer_result"
"""The field of an event that was the press of an anonymous button: `AnonymousPress`."""
CONFIRMED = "confirmed_questions"
"""The field of a held reply that names the questions which its author has answered by sending it."""
ANSWER_TO = "answer_to"
"""The field of an event whose text answers the question of a delivery."""
PRESS_MEANT = "press_meant"
"""The field of a text that is the words of a button: what the button sends. A trigger or an open question that takes
the text has precedence.
"""
NO_ANSWER_TO = "no_answer_to"
"""The field of a reply whose words are no answer to the question of a delivery: that delivery, and the recipient."""
KINDS = (
    "text",
    "callback",
    "new_member",
    "left_member",
    "changed_member",
    "join_request",
    "edited",
    "inline_query",
    "answer",
    "reply",
)
MAX_BYTES = 128 * 1024
"""Of an event as JSON."""

MAX_ATTACHMENTS = 100

_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_CHANNEL = re.compile(r"[a-z0-9-]{1,32}")
_EXPIRES = timedelta(hours=1)
"""A person who waits for an hour no longer expects an answer."""
_BACKOFF = Backoff(timedelta(milliseconds=500), timedelta(seconds=20))

Event = Mapping[str, Any]


class AnonymousPress(Struct, frozen=True):
    """The effect of a press. `refused`: the code of a refusal; "" if there is a `result`. `locale`: of the question, ""
    if it is not kept.
    """

    result: str = ""
    locale: str = ""
    refused: str = ""


def scenarios_tube() -> Tube:
    """Return the tube of the events that scenarios process. Only an outage of the store or the death of a process takes
    an attempt: what an action raises is an outcome.
    """
    return Tube(TUBE, expires=_EXPIRES, attempts=100, backoff=_BACKOFF)


def replies_tube() -> Tube:
    """Return the tube of replies. Only an outage of the store takes an attempt."""
    return Tube(REPLIES_TUBE, attempts=10_000, backoff=_BACKOFF)


class Events:
    """Puts the events of one tenant's bot. `choices`: to see answers by number. `tube`: that of the scenarios, or of
    replies. `received`: to see which messages are quoted. `numbers`: to see answers to questions of deliveries.
    `opt_outs`: to see STOP and START.
    """

    def __init__(
        self,
        client: QueueClient,
        tenant: str,
        choices: Choices | None = None,
        tube: Tube | None = None,
        received: ReceivedMessages | None = None,
        numbers: AnswerNumbers | None = None,
        *,
        opt_outs: OptOuts | None = None,
    ) -> None:
        self._client = client
        self._tenant = tenant
        self._choices = choices
        self._opt_outs = opt_outs
        self._tube = tube or scenarios_tube()
        self._received = received
        self._numbers = numbers
        self._answers = Answers(client.store)

    async def open(self) -> None:
        await self._client.tubes.create(self._tube)

    async def put(self, source: str, event: Event) -> bool:
        """Add an event; returns False for a repeat. Raises Invalid EVENT_…; StoreError: then the provider must repeat
        it.
        """
        stored = checked({**event, "source": source})
        for name in (ANSWER_TO, ANSWER_RESULT, CONFIRMED, NO_ANSWER_TO, PRESS_MEANT):
            stored.pop(name, None)
        if is_anonymous_token(stored.get("callback_data")):
            stored = await self._without_answer(stored)
        encode(stored)  # before the store is asked with a text that cannot be encoded
        quoted, opts_out = await self._quoted(stored), await self._is_opt_out(stored)
        if not opts_out:
            stored = await self._with_meaning(stored, quoted)
        noted = await self._noted(stored)
        if self._numbers is not None and noted.startswith(ANSWER_OF):
            stored |= await self._edited_answer(stored, self._numbers, noted.removeprefix(ANSWER_OF))
        lane = own_name(self._tenant, lane_of(stored))
        task = NewTask(encode(stored), self._tenant, lane=lane, user=person_of(stored))
        unique_in = own_name(self._tenant, f"events.{stored['channel']}.{source}")
        tube = self._tube_of(stored, is_reply=opts_out or bool(noted) or quoted is not None or sends_reply(stored))
        return await self._client.queue.put_once(tube, task, source=unique_in, name=stored["id"])

    async def _with_meaning(self, event: dict[str, Any], quoted: ReceivedMessage | None) -> dict[str, Any]:
        """Return an event with what its text answers, or as the press that it means. Who was asked last whether a held
        reply is sent answers that.
        """
        pressed = event if self._choices is None else await answered(event, self._choices, self._tenant)
        worded = await self._worded(pressed) if quoted is None else pressed
        if sends_reply(press := as_press(worded)):
            return press
        if self._numbers is not None and (meant := await self._answer_in_text(event, self._numbers, quoted)):
            return {**event, ANSWER_TO: msgspec.to_builtins(meant)}
        return worded

    async def _worded(self, event: dict[str, Any]) -> dict[str, Any]:
        """Return a text with what the button sends whose words it is."""
        if self._choices is None or not is_free_text(event):
            return event
        place = str(event["channel"]), str(event.get("chat_id") or event["user_id"]), str(event.get("event_text") or "")
        button = await self._choices.worded(self._tenant, *place)
        return {**event, PRESS_MEANT: button.data} if button else event

    async def put_reply(self, event: Event) -> bool:
        """Hand an event that no bot has answered to the threads, or to the question that it answers; returns False for
        a repeat. Raises StoreError.
        """
        task = NewTask(encode(event), self._tenant, lane=own_name(self._tenant, lane_of(event)), user=person_of(event))
        source = own_name(self._tenant, f"replies.{event['channel']}.{event['source']}")
        tube = ANSWERS_TUBE if is_answer(event) else REPLIES_TUBE
        return await self._client.queue.put_once(tube, task, source=source, name=event["id"])

    async def _without_answer(self, event: Event) -> dict[str, Any]:
        """Count the press of an anonymous button at once; return an event with what came of it, and without the option.
        A repeat of the press changes nothing.
        """
        place = self._tenant, str(event["channel"]), str(event["user_id"]), str(event["callback_data"])
        stored = {**event, "callback_data": ""}
        try:
            given, _ = await self._answers.press(*place, event="", chat=str(event.get("chat_id") or ""))
            stored[ANSWER_RESULT] = AnonymousPress(given.result, given.question.locale)
        except Refused as refusal:
            locale = await self._answers.language_of_button(self._tenant, str(event["callback_data"]))
            stored[ANSWER_RESULT] = AnonymousPress(locale=locale, refused=refusal.code)
        stored[ANSWER_RESULT] = msgspec.to_builtins(stored[ANSWER_RESULT])
        return stored

    def _tube_of(self, event: Event, *, is_reply: bool) -> str:
        if is_answer(event):
            return ANSWERS_TUBE
        return REPLIES_TUBE if is_reply else self._tube.name

    async def _noted(self, event: Event) -> str:
        """Return what became of a message before its text was edited, as `ReceivedMessages.thread_of` does."""
        is_edit = event["kind"] == "edited" and (is_private(event) or event.get("topic_id"))
        if self._received is None or not is_edit:
            return ""
        place = self._tenant, str(event["channel"]), str(event["user_id"]), message_of(event)
        return await self._received.thread_of(*place, str(event.get("event_text") or "").strip())

    async def _edited_answer(self, event: Event, numbers: AnswerNumbers, place: str) -> dict[str, Any]:
        """Return the fields by which an edit of an answer is the answer that it is now."""
        channel, user, text = (str(event.get(name) or "") for name in ("channel", "user_id", "event_text"))
        meant = await numbers.read_edited(self._tenant, channel, user, text, place)
        return {"kind": "text", ANSWER_TO: msgspec.to_builtins(meant)}

    async def _is_opt_out(self, event: Event) -> bool:
        if self._opt_outs is None or event.get("kind") != "text" or not is_private(event):
            return False
        place = str(event["channel"]), str(event["user_id"]), str(event.get("event_text") or "")
        return await self._opt_outs.is_asked(*place)

    async def _quoted(self, event: Event) -> ReceivedMessage | None:
        """Return the message of a delivery to which a private message replies, if it takes replies, or the newest one
        of the topic in which a message is: no bot gets it.
        """
        if self._received is not None and is_for_topic(event):
            chat, topic = str(event["chat_id"]), str(event["topic_id"])
            return await self._received.last_in_topic(self._tenant, str(event["channel"]), chat, topic)
        reference = event.get("reply_message_id")
        if self._received is None or not reference or event.get("kind") != "text" or not is_private(event):
            return None
        place = self._tenant, str(event["channel"]), str(event["user_id"]), str(reference)
        return await self._received.quoted(*place)

    async def _answer_in_text(
        self, event: Event, numbers: AnswerNumbers, quoted: ReceivedMessage | None
    ) -> TextMeaning | None:
        """Return what a text answers: the question that it quotes, else by number, word or value. The words of an
        option are no value of another question, nor is what quotes another message. A question of the bot that waits in
        the chat has precedence over all but a quote.
        """
        text = str(event.get("event_text") or "")
        if not is_free_text(event):
            return None
        channel, user = str(event["channel"]), str(event["user_id"])
        if quoted is not None:
            return await numbers.read_quoting(self._tenant, channel, user, text, quoted)
        meant = await numbers.read(self._tenant, channel, user, text)
        if self._received is not None and (meant is None or (meant.value and not meant.is_number)):
            if event.get("reply_message_id"):  # to something else
                return None
            received = await self._received.received_since(self._tenant, channel, user, 0)
            meant = await numbers.read_option(self._tenant, channel, user, text, received) or meant
        chat = str(event.get("chat_id") or user)
        return None if meant and await numbers.is_asked_by_bot(self._tenant, channel, user, chat) else meant


def encode(event: "Event | msgspec.Struct") -> str:
    """Return the event as JSON. Raises Invalid EVENT_TOO_LARGE; EVENT_MALFORMED for values that JSON cannot have,
    such as half a surrogate pair.
    """
    try:
        body = msgspec.json.encode(event)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise Invalid("EVENT_MALFORMED", f"A value of an event cannot be stored: {type(error).__name__}.") from None
    if len(body) > MAX_BYTES:
        raise Invalid("EVENT_TOO_LARGE", f"An event has at most {MAX_BYTES // 1024} KiB.")
    return body.decode()


def decode(body: str) -> Event:
    return msgspec.json.decode(body, type=dict[str, Any])


def identity(tenant: str, event: Event) -> str:
    """Return the name of an event that was put: the same for each repeat, and for no other event of any tenant."""
    return own_name(tenant, f"{event['channel']}.{event['source']}.{event['id']}")


def person_of(event: Event) -> str:
    return f"{event['channel']}:{event['user_id']}"


def lane_of(event: Event) -> str:
    """Return the lane of an event within its tenant: one person, in a group one person in that group."""
    if is_private(event):
        return person_of(event)
    return f"{event['channel']}:{event.get('chat_id')}:{event['user_id']}"


def is_private(event: Event) -> bool:
    """Return whether the chat is between a person and the bot."""
    return event.get("chat_type") in (None, "", "private")


def message_of(event: Event) -> str:
    """Return the id of a message among those of its author: a topic is in a chat, which has numbers of its own."""
    message = str(event.get("message_id") or "")
    return f"{event.get('chat_id')}/{message}" if message and event.get("topic_id") else message


def is_for_topic(event: Event) -> bool:
    """Return whether somebody writes to the person of a topic: no command, and no reply to a colleague."""
    is_written = event.get("kind") == "text" and bool(event.get("topic_id")) and not event.get("is_bot")
    is_aside = bool(event.get("reply_user_id")) and not event.get("reply_is_bot")
    return is_written and not is_aside and not str(event.get("event_text") or "").startswith("/")


def is_free_text(event: Event) -> bool:
    """Return whether a person has written words of its own to a bot: no command, and nothing in a group."""
    is_written = event.get("kind") == "text" and is_private(event) and not event.get("is_bot")
    return is_written and not str(event.get("event_text") or "").startswith("/")


def is_answer(event: Event) -> bool:
    """Return whether an event answers the question of a delivery: the press of its button, or its number in a text."""
    return (
        ANSWER_TO in event
        or ANSWER_RESULT in event
        or (event.get("kind") == "callback" and is_token(event.get("callback_data")))
    )


def sends_reply(event: Event) -> bool:
    """Return whether an event is the press that sends a held reply."""
    return event.get("kind") == "callback" and str(event.get("callback_data")).startswith(SEND_REPLY)


def checked(event: Event) -> dict[str, Any]:
    """Return the event with its kind. Raises Invalid: EVENT_ID_MALFORMED, EVENT_CHANNEL_MALFORMED, EVENT_KIND_UNKNOWN,
    EVENT_WITHOUT_USER, EVENT_ATTACHMENTS_MALFORMED.
    """
    known = {**event, "kind": event.get("kind") or kind_of(event)}
    for name, code, is_right, wanted in _CHECKS:
        if not is_right(known.get(name)):
            raise Invalid(code, f"The {name} of an event is {wanted}.", name)
    return known


def kind_of(event: Event) -> str:
    """Return the kind that the fields of an event show."""
    if event.get("callback_data") is not None:
        return "callback"
    return "new_member" if any(name.startswith("joined_") for name in event) else "text"


def _is_event_id(value: Any) -> bool:
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def _is_channel(value: Any) -> bool:
    return isinstance(value, str) and _CHANNEL.fullmatch(value) is not None


def _is_kind(value: Any) -> bool:
    return value in KINDS


def _is_person(value: Any) -> bool:
    """Return whether a value can be a person's id: a number, or a short text such as a telephone number."""
    if isinstance(value, str):
        return 0 < len(value) <= 128 and value.isprintable()
    return isinstance(value, int) and not isinstance(value, bool)


def _are_attachments(value: Any) -> bool:
    if value is None:
        return True
    return (
        isinstance(value, list)
        and len(value) <= MAX_ATTACHMENTS
        and all(isinstance(one, dict) and isinstance(one.get("type"), str) for one in value)
    )


_CHECKS = (
    ("id", "EVENT_ID_MALFORMED", _is_event_id, "1 to 128 of letters, digits, . _ : -"),
    ("channel", "EVENT_CHANNEL_MALFORMED", _is_channel, "the name of a channel"),
    ("kind", "EVENT_KIND_UNKNOWN", _is_kind, f"one of {', '.join(KINDS)}"),
    ("user_id", "EVENT_WITHOUT_USER", _is_person, "the id of the person who caused it"),
    (
        "attachments",
        "EVENT_ATTACHMENTS_MALFORMED",
        _are_attachments,
        f"a list of at most {MAX_ATTACHMENTS} objects with a type",
    ),
)


async def answered(event: Mapping[str, Any], choices: Choices, tenant: str) -> dict[str, Any]:
    """Return the event as it is, or the press that its text means: then it has no `message_id`, as no message can be
    edited. A choice without data is a text that the button writes. Raises StoreError.
    """
    text, chat = str(event.get("event_text") or ""), str(event.get("chat_id") or event["user_id"])
    channel, is_text = str(event["channel"]), event.get("kind") == "text"
    button = await choices.button_of(tenant, channel, chat, text) if is_text else None
    if button is None:
        return dict(event)
    if not button.data:
        return {**event, "event_text": button.text}
    return as_press({**event, PRESS_MEANT: button.data})


def as_press(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return a text that means a press as that press; any other event as it is."""
    if PRESS_MEANT not in event:
        return dict(event)
    kept = {name: value for name, value in event.items() if name not in ("message_id", PRESS_MEANT)}
    return {**kept, "kind": "callback", "callback_data": event[PRESS_MEANT]}


class Arrival(Struct, frozen=True):
    """An event, or a part of one. `gathered_as`: what the parts of one event have in common, "" for a whole event;
    with it, the event's `id` names the part.
    """

    event: Event
    gathered_as: str = ""
