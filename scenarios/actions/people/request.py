"""Stores a request of a person (C-63)."""

from collections.abc import Mapping
from typing import Any

from scenarios.context import Context
from scenarios.context.arguments import text_of
from scenarios.engine import Ending
from scenarios.engine.results import completed
from scenarios.placeholders.values import as_text, is_list
from scenarios.schema import ActionType, Field, types
from scenarios.stores.requests import NewRequest, Requests

DEFAULT_NAME = "request"


async def execute(context: Context) -> Ending:
    """Store the request once, however often it is executed."""
    request = request_of(context.channel, context.prepared.seen)
    number = await Requests(context.services.core.store, context.services.tenant).store(context.identity, request)
    return completed({"request_text": request.text, "request_id": number}, from_person=["request_text"])


def request_of(channel: str, seen: Mapping[str, Any]) -> NewRequest:
    """Return the request of the event's person."""
    attachments = seen.get("attachments") or ()
    return NewRequest(
        name=text_of(seen, "request_name") or DEFAULT_NAME,
        channel=channel,
        user_id=text_of(seen, "user_id"),
        username=text_of(seen, "username"),
        first_name=text_of(seen, "first_name"),
        last_name=text_of(seen, "last_name"),
        chat_id=text_of(seen, "chat_id"),
        text=as_text(seen.get("event_text")),
        attachments=tuple(attachments) if is_list(attachments) else (attachments,),
        info=as_text(seen.get("request_info")),
    )


ACTION = ActionType(
    name="request",
    help="Stores a request of the person: name, text, attachments. It is kept for 400 days.",
    fields=(
        Field("request_name", types.TEXT, "The kind of request.", default=DEFAULT_NAME),
        Field("request_info", types.TEXT, "A note that is stored with it."),
        Field("event_text", types.TEXT, "Its text, instead of that of the event."),
        Field("attachments", types.ANY, "Its attachments, instead of those of the event."),
    ),
    returns={"request_text": "the stored text", "request_id": "the number of the request"},
    execute=execute,
)
