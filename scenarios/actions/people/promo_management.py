"""Lists promo codes (C-87)."""

import re
from collections.abc import Callable

from core.model.clock import to_ms
from scenarios.context import Context
from scenarios.context.arguments import moment_of, text_of, whole_of
from scenarios.engine import Ending
from scenarios.engine.results import completed, failed
from scenarios.schema import ActionType, Field, types
from scenarios.schema.promo import CODE, NAME
from scenarios.stores.promo import Promo, Promos, listed

NOTHING = "—"
MOST_LISTED = 50
_NUMBER = re.compile(r"\d{1,15}", re.ASCII)


async def execute(context: Context) -> Ending:
    """Execute an operation on promo codes. Raises Refused."""
    operation = text_of(context.prepared.seen, "operation") or "list"
    if operation not in _OPERATIONS:
        return failed(f"operation: {operation!r} is none of {', '.join(_OPERATIONS)}")
    found = await _OPERATIONS[operation](context)
    if operation == "details" and not found:
        return failed("there is no such promo code")
    text = listed(found, context.services.timezone) or str(context.prepared.seen.get("empty_text", NOTHING) or "")
    return completed(dict.fromkeys(("text", "response_text"), text) if text else {})


async def _list(context: Context) -> list[Promo]:
    limit = whole_of(context.prepared.own, "limit") or MOST_LISTED
    return await _promos(context).newest(min(max(limit, 1), MOST_LISTED), _filter(context))


def _filter(context: Context) -> Callable[[Promo], bool]:
    """Return whether a promo is one of those that the author wants. Raises Invalid."""
    own, zone = context.prepared.own, context.services.timezone
    name, user = text_of(own, "promo_name"), text_of(own, "user_id") or text_of(own, "user_filter")
    part, code = text_of(own, "name_pattern").casefold(), text_of(own, "promo_code").upper()
    before, after = (moment_of(own, field, zone) for field in ("expired_before", "expired_after"))

    def matches(promo: Promo) -> bool:
        return (
            name in ("", promo.name)
            and user in ("", promo.user_id)
            and part in promo.name.casefold()
            and code in ("", promo.code.upper())
            and (before is None or 0 < promo.ends < to_ms(before))
            and (after is None or not promo.ends or promo.ends > to_ms(after))
        )

    return matches


async def _details(context: Context) -> list[Promo]:
    """Return promo codes by `promo_id`, otherwise by the code or number that the author or the person has written."""
    own, seen, promos = context.prepared.own, context.prepared.seen, _promos(context)
    code = text_of(seen, "promo_code") or text_of(seen, "event_text")
    if (number := whole_of(own, "promo_id")) is not None:
        promo = await promos.with_id(number)
    else:
        promo = await promos.find(code) or (await promos.with_id(int(code)) if _NUMBER.fullmatch(code) else None)
    return [promo] if promo else []


def _promos(context: Context) -> Promos:
    return Promos(context.services.core.store, context.services.tenant)


_OPERATIONS = {"list": _list, "details": _details}

ACTION = ActionType(
    name="promo_management",
    help="Lists promo codes, newest first, or shows one. It fails if there is no such code; an empty list is no"
    " failure.",
    fields=(
        Field("operation", types.choice("list", "details"), "What to do.", default="list"),
        NAME,
        Field("name_pattern", types.TEXT, "Only codes whose name has this part."),
        CODE,
        Field("promo_id", types.WHOLE, "`details`: the number of the promo, instead of its code."),
        Field("user_id", types.TEXT, "Only codes of this person."),
        Field("user_filter", types.TEXT, "The same as `user_id`."),
        Field("expired_before", types.DATE, "Only codes that expire before this date."),
        Field("expired_after", types.DATE, "Only codes that are valid beyond this date."),
        Field("limit", types.WHOLE, f"At most so many codes, up to {MOST_LISTED}.", default=MOST_LISTED),
        Field("empty_text", types.TEXT, 'What an empty list returns as `text`; `""` for none.', default=NOTHING),
    ),
    returns={
        "text": "what was found, in HTML; it replaces the text of the next `send`",
        "response_text": "the same as `text`",
    },
    execute=execute,
)
