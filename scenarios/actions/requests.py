"""Stores requests of people, lists and shows them (C-63 to C-65)."""

import re
from datetime import datetime
from typing import Annotated

from core.model.clock import to_ms
from scenarios.context import Context
from scenarios.engine import Ending, completed, failed
from scenarios.placeholders.values import is_list
from scenarios.rehearsal import NUMBER, RehearsedStep
from scenarios.schema import ActionType, Attributes, Seen, conversion, types
from scenarios.schema.attributes import Anything, Duration, Moment, Text, TextOrEmpty, Texts, Whole
from scenarios.stores.requests import MOST_LISTED, NewRequest, PersonRequest, Requests, listed, shown
from scenarios.words import sentence

DEFAULT_NAME = "request"
Shown = Annotated[str, types.TEXT, conversion.shown]


class RequestAttributes(Attributes, frozen=True):
    """Attributes without a help are fields of the event."""

    request_name: Annotated[Text, Seen("The kind of request.")] = DEFAULT_NAME
    request_info: Annotated[Shown, Seen("A note that is stored with it.", may_be_empty=True)] = ""
    event_text: Annotated[Shown, Seen("Its text, instead of that of the event.", may_be_empty=True)] = ""
    attachments: Annotated[Anything, Seen("Its attachments, instead of those of the event.", may_be_empty=True)] = ()
    user_id: Annotated[Text, Seen()] = ""
    username: Annotated[Text, Seen()] = ""
    first_name: Annotated[Text, Seen()] = ""
    last_name: Annotated[Text, Seen()] = ""
    chat_id: Annotated[Text, Seen()] = ""

    def request(self, channel: str) -> NewRequest:
        """Return the request of the event's person."""
        attachments = self.attachments or ()
        return NewRequest(
            name=self.request_name,
            channel=channel,
            user_id=self.user_id,
            username=self.username,
            first_name=self.first_name,
            last_name=self.last_name,
            chat_id=self.chat_id,
            text=self.event_text,
            attachments=tuple(attachments) if is_list(attachments) else (attachments,),
            info=self.request_info,
        )


async def execute_request(context: Context, written: RequestAttributes) -> Ending:
    """Store the request once, however often it is executed."""
    request = written.request(context.channel)
    number = await Requests(context.services.core.store, context.services.tenant).store(context.identity, request)
    return _stored(request, number)


def rehearse_request(step: RehearsedStep, written: RequestAttributes) -> Ending:
    return _stored(written.request(step.channel), NUMBER)


def _stored(request: NewRequest, number: int) -> Ending:
    return completed({"request_text": request.text, "request_id": number}, from_person=["request_text"])


REQUEST = ActionType(
    name="request",
    help="Stores a request of the person: name, text, attachments. It is kept for 400 days.",
    attributes=RequestAttributes,
    returns={"request_text": "the stored text", "request_id": "the number of the request"},
    execute=execute_request,
    rehearse=rehearse_request,
)


NOTHING = "—"
_OPERATIONS = ("list", "details")
_NUMBER = re.compile(r"[#№]?\s*(\d{1,15})", re.ASCII)


class RequestManagementAttributes(Attributes, frozen=True):
    operation: Annotated[str, types.choice(*_OPERATIONS), conversion.word(*_OPERATIONS), Seen("What to do.")] = "list"
    request_name: Annotated[Texts, Seen("Only requests of these kinds.")] = ()
    from_date: Annotated[Moment, Seen("Only requests since this date.")] = None
    unexpired: Annotated[Duration, Seen("Only requests that are not older.")] = None
    time_before: Annotated[Duration, Seen(alias_of="unexpired")] = None
    limit: Annotated[
        Whole,
        Seen(f"At most so many requests, up to {MOST_LISTED}; `…` at the end: there are more.", default=MOST_LISTED),
    ] = None
    event_text: Annotated[Text, Seen("The id of the request to show, instead of the text of the event.")] = ""
    empty_text: Annotated[
        TextOrEmpty, Seen('What an empty list returns as `text`; `""` for none.', may_be_empty=True)
    ] = NOTHING

    @property
    def number(self) -> int | None:
        """The number of the request to show."""
        found = _NUMBER.fullmatch(self.event_text)
        return int(found[1]) if found else None

    def since(self, now: datetime) -> datetime | None:
        """Return the latest of the limits."""
        limits = [now - age for age in (self.unexpired, self.time_before) if age is not None]
        return max([*limits, *([self.from_date] if self.from_date else [])], default=None)


async def execute_request_management(context: Context, written: RequestManagementAttributes) -> Ending:
    """List requests, or show one. With an empty `empty_text` an empty list returns no text: the next message has the
    text that its author wrote. Raises Refused.
    """
    requests, zone = Requests(context.services.core.store, context.services.tenant), context.services.timezone
    if written.operation == "details":
        request = None if written.number is None else await requests.find(written.number)
        return _found(shown(request, zone)) if request else _missing(written)
    since, most = written.since(context.services.now()), min(max(written.limit or MOST_LISTED, 1), MOST_LISTED)
    found = await requests.newest(written.request_name, since, most + 1)
    return _found(listed(found, zone, most) if found else written.empty_text)


def rehearse_request_management(step: RehearsedStep, written: RequestManagementAttributes) -> Ending:
    """Play the action. Requests of people are not known; the person of the event stands for them."""
    event, zone = step.event, step.zone
    names = {name: str(event.get(name) or "") for name in ("username", "first_name", "last_name", "chat_id")}
    is_one = written.operation == "details"
    if is_one and written.number is None:
        return _missing(written)
    request = PersonRequest(
        name=next(iter(written.request_name), DEFAULT_NAME),
        channel=step.channel,
        user_id=step.person,
        **names,
        text="[request_text]",
        id=written.number if is_one and written.number is not None else NUMBER,
        at=to_ms(step.now),
    )
    return _found(shown(request, zone) if is_one else listed([request], zone))


def _missing(written: RequestManagementAttributes) -> Ending:
    return failed("REQUEST_NOT_FOUND", sentence("no_request", name=written.event_text[:50]))


def _found(text: str | None) -> Ending:
    return completed(dict.fromkeys(("text", "response_text"), text) if text else {})


REQUEST_MANAGEMENT = ActionType(
    name="request_management",
    help="Lists stored requests, newest first, or shows one. It fails if there is no such request; an empty list is no"
    " failure.",
    attributes=RequestManagementAttributes,
    returns={
        "text": "what was found, in HTML; it replaces the text of the next `send`",
        "response_text": "the same as `text`",
    },
    execute=execute_request_management,
    rehearse=rehearse_request_management,
)
