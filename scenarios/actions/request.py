"""Stores a request of a person (C-63)."""

from scenarios.schema import ActionType, Field, types

ACTION = ActionType(
    name="request",
    help="Stores a request of the person: name, text, attachments.",
    fields=(
        Field("request_name", types.TEXT, "The kind of request."),
        Field("request_info", types.TEXT, "A note that is stored with it."),
        Field("event_text", types.TEXT, "Its text, instead of that of the event."),
        Field("attachments", types.ANY, "Its attachments, instead of those of the event."),
    ),
    returns={"request_text": "the stored text"},
)
