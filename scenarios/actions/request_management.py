"""Lists and shows stored requests (C-64, C-65)."""

from scenarios.schema import ActionType, Field, types

ACTION = ActionType(
    name="request_management",
    help="Lists stored requests, newest first, or shows one.",
    fields=(
        Field("operation", types.choice("list", "details"), "What to do."),
        Field("request_name", types.TEXTS, "Only requests of these kinds."),
        Field("from_date", types.DATE, "Only requests since this date."),
        Field("unexpired", types.DURATION, "Only requests that are not older."),
        Field("limit", types.WHOLE, "At most so many requests."),
        Field("event_text", types.TEXT, "The id of the request to show, instead of the text of the event."),
    ),
    returns={"text": "what was found; it replaces the text of the next `send`"},
)
