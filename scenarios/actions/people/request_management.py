"""Lists and shows stored requests (C-64, C-65)."""

import re
from datetime import datetime
from typing import Annotated

from core.model.clock import to_ms
from scenarios.actions.people.request import DEFAULT_NAME
from scenarios.context import Context
from scenarios.engine import Ending
from scenarios.engine.results import completed, failed
from scenarios.rehearsal import NUMBER, RehearsedStep
from scenarios.schema import ActionType, Attributes, Seen, conversion, types
from scenarios.schema.attributes import Duration, Moment, Text, TextOrEmpty, Texts, Whole
from scenarios.stores.requests import MOST_LISTED, PersonRequest, Requests, listed, shown
from scenarios.words import sentence

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


async def execute(context: Context, written: RequestManagementAttributes) -> Ending:
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


def rehearse(step: RehearsedStep, written: RequestManagementAttributes) -> Ending:
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
    return failed(sentence("no_request", name=written.event_text[:50]))


def _found(text: str | None) -> Ending:
    return completed(dict.fromkeys(("text", "response_text"), text) if text else {})


ACTION = ActionType(
    name="request_management",
    help="Lists stored requests, newest first, or shows one. It fails if there is no such request; an empty list is no"
    " failure.",
    attributes=RequestManagementAttributes,
    returns={
        "text": "what was found, in HTML; it replaces the text of the next `send`",
        "response_text": "the same as `text`",
    },
    execute=execute,
    rehearse=rehearse,
)
