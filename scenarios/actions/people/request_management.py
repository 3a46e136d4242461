"""Lists and shows stored requests (C-64, C-65)."""

import re
from datetime import UTC, datetime

from scenarios.context import Context
from scenarios.context.arguments import duration_of, moment_of, text_of, texts_of, whole_of
from scenarios.engine import Ending
from scenarios.engine.results import completed, failed
from scenarios.schema import ActionType, Field, types
from scenarios.stores.requests import MOST_LISTED, Requests, listed, shown

NOTHING = "—"
NUMBER = re.compile(r"[#№]?\s*(\d{1,15})", re.ASCII)


async def execute(context: Context) -> Ending:
    """Execute an operation on requests. Raises Refused."""
    operation = text_of(context.prepared.seen, "operation") or "list"
    if operation not in _OPERATIONS:
        return failed(f"operation: {operation!r} is none of {', '.join(_OPERATIONS)}")
    return await _OPERATIONS[operation](context)


async def _list(context: Context) -> Ending:
    """List requests. With an empty `empty_text` an empty list returns no text: the next message has the text that its
    author wrote.
    """
    seen = context.prepared.seen
    names, limit = texts_of(seen, "request_name"), whole_of(seen, "limit") or 0
    found = await _requests(context).newest(names, _since(context), limit)
    text = listed(found, context.services.timezone) if found else str(seen.get("empty_text", NOTHING) or "")
    return _found(text)


def _since(context: Context) -> datetime | None:
    """Return the latest of the limits."""
    seen = context.prepared.seen
    ages = (duration_of(seen, name) for name in ("unexpired", "time_before"))
    limits = [datetime.now(UTC) - age for age in ages if age is not None]
    limits += [date] if (date := moment_of(seen, "from_date", context.services.timezone)) else []
    return max(limits, default=None)


async def _details(context: Context) -> Ending:
    written = text_of(context.prepared.seen, "event_text")
    number = NUMBER.fullmatch(written)
    request = await _requests(context).find(int(number[1])) if number else None
    if request is None:
        return failed(f"there is no request {written[:50]!r}")
    return _found(shown(request, context.services.timezone))


def _found(text: str) -> Ending:
    return completed(dict.fromkeys(("text", "response_text"), text) if text else {})


def _requests(context: Context) -> Requests:
    return Requests(context.services.core.store, context.services.tenant)


_OPERATIONS = {"list": _list, "details": _details}

ACTION = ActionType(
    name="request_management",
    help="Lists stored requests, newest first, or shows one. It fails if there is no such request; an empty list is no"
    " failure.",
    fields=(
        Field("operation", types.choice("list", "details"), "What to do.", default="list"),
        Field("request_name", types.TEXTS, "Only requests of these kinds."),
        Field("from_date", types.DATE, "Only requests since this date."),
        Field("unexpired", types.DURATION, "Only requests that are not older."),
        Field("time_before", types.DURATION, "The same as `unexpired`."),
        Field("limit", types.WHOLE, f"At most so many requests, up to {MOST_LISTED}.", default=MOST_LISTED),
        Field("event_text", types.TEXT, "The id of the request to show, instead of the text of the event."),
        Field("empty_text", types.TEXT, 'What an empty list returns as `text`; `""` for none.', default=NOTHING),
    ),
    returns={
        "text": "what was found, in HTML; it replaces the text of the next `send`",
        "response_text": "the same as `text`",
    },
    execute=execute,
)
