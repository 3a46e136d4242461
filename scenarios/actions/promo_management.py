"""Lists promo codes (C-87)."""

from scenarios.arguments import text_of, whole_of
from scenarios.context import Context
from scenarios.endings import completed, failed
from scenarios.engine import Ending
from scenarios.promo import Promo, Promos, listed
from scenarios.schema import ActionType, Field, types
from scenarios.schema.promo import CODE, NAME

NOTHING = "—"
MOST_LISTED = 50


async def execute(context: Context) -> Ending:
    """Raises Refused."""
    operation = text_of(context.prepared.seen, "operation") or "list"
    if operation not in _OPERATIONS:
        return failed(f"operation: {operation!r} is none of {', '.join(_OPERATIONS)}")
    found = await _OPERATIONS[operation](context)
    if operation == "details" and not found:
        return failed("there is no such promo code")
    text = listed(found, context.services.timezone) or str(context.prepared.seen.get("empty_text", NOTHING) or "")
    return completed({"text": text} if text else {})


async def _list(context: Context) -> list[Promo]:
    own = context.prepared.own
    limit = whole_of(own, "limit") or MOST_LISTED
    promos, user = _promos(context), text_of(own, "user_id") or text_of(own, "user_filter")
    return await promos.newest(text_of(own, "promo_name"), user, min(max(limit, 1), MOST_LISTED))


async def _details(context: Context) -> list[Promo]:
    seen = context.prepared.seen
    promo = await _promos(context).find(text_of(seen, "promo_code") or text_of(seen, "event_text"))
    return [promo] if promo else []


def _promos(context: Context) -> Promos:
    return Promos(context.services.store, context.services.tenant)


_OPERATIONS = {"list": _list, "details": _details}

ACTION = ActionType(
    name="promo_management",
    help="Lists promo codes, newest first, or shows one. It fails if there is no such code; an empty list is no"
    " failure.",
    fields=(
        Field("operation", types.choice("list", "details"), "What to do.", default="list"),
        NAME,
        CODE,
        Field("user_id", types.TEXT, "Only codes of this person."),
        Field("user_filter", types.TEXT, "The same as `user_id`."),
        Field("limit", types.WHOLE, f"At most so many codes, up to {MOST_LISTED}.", default=MOST_LISTED),
        Field("empty_text", types.TEXT, 'What an empty list returns as `text`; `""` for none.', default=NOTHING),
    ),
    returns={"text": "what was found, in HTML; it replaces the text of the next `send`"},
    execute=execute,
)
